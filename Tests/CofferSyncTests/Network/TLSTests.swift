#if Sync
import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import NIOSSL
import Testing

@testable import CofferSync

/// Replications and listeners with encrypted connections, and who is trusted.
@Suite(
    "Encrypted connections", .enabled(if: TestCertificates.isAvailable, "there is no command openssl"),
    .timeLimit(.minutes(30)))
struct TLSTests {
    private let home = TemporaryStores()
    private let served = TemporaryStores()

    private func listener(_ tls: ListenerOptions.TLS?) async throws -> Listener {
        var options = ListenerOptions(access: .passwords(["robin": "s3cret"]))
        options.encryptionKey = { _ in TestServer.key }
        options.tls = tls
        return try await Listener(served.manager, options: options)
    }

    /// A replication that would be noticed if it tried anything again: it would take longer than a test may.
    private func options(trusting certificates: String?) -> ReplicationOptions {
        var options = ReplicationOptions()
        options.credentials = .basic(name: "robin", password: "s3cret")
        options.createsTarget = true
        options.trustedCertificates = certificates
        options.retry.firstPause = .seconds(36_000)
        return options
    }

    private func push(_ database: Database, to text: String, _ options: ReplicationOptions) async throws -> SyncError? {
        do {
            try await Replication(push: database, to: try #require(URL(string: text)), options: options).run()
            return nil
        } catch let error as SyncError {
            return error
        }
    }

    @Test(
        "Two stores exchange everything over https, by one's own authority or by the server's certificate itself")
    func everything() async throws {
        let certificates = try await TestCertificates()
        let listener = try await listener(try await certificates.identity("DNS:localhost,IP:127.0.0.1"))
        #expect(listener.url == "https://127.0.0.1:\(listener.port)")
        let one = try await home.manager.database(named: "one", encryptionKey: TestServer.key)
        let two = try await home.manager.database(named: "two", encryptionKey: TestServer.key)
        let large = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        try one.write("large", ["a": 1], attachment: ("film.mp4", large))
        for number in 0..<100 { try one.write("doc-\(number)", ["n": .number(.init(Int64(number)))]) }
        #expect(try await push(one, to: listener.url + "/people", options(trusting: certificates.authority)) == nil)
        var pulling = options(trusting: certificates.authority)
        pulling.createsTarget = false
        pulling.credentials = .session(name: "robin", password: "s3cret")
        let url = try #require(URL(string: "https://localhost:\(listener.port)/people"))
        try await Replication(pull: url, into: two, options: pulling).run()
        #expect(try Contents(two) == Contents(one))
        await listener.stop()
    }

    @Test("A certificate that nobody who is trusted has signed, of another host, or expired, is refused at once")
    func refused() async throws {
        let certificates = try await TestCertificates()
        let stranger = try await TestCertificates()
        let database = try await home.manager.database(named: "db", encryptionKey: TestServer.key)
        try database.write("a", [:])
        let good = try await certificates.identity("IP:127.0.0.1")
        for (identity, trusted, words) in [
            (good, nil, "not signed by anybody who is trusted"), (good, stranger.authority, "not signed"),
            (try await certificates.identity("DNS:example.com,IP:127.0.0.2"), certificates.authority, "another host's"),
            (try await certificates.identity("IP:127.0.0.1", days: 0), certificates.authority, "has expired"),
        ] as [(ListenerOptions.TLS, String?, String)] {
            let listener = try await listener(identity)
            var options = options(trusting: trusted)
            for isContinuous in [false, true] {
                options.isContinuous = isContinuous
                let error = try await push(database, to: listener.url + "/people", options)
                #expect(error?.status == 495 && error?.detail.contains(words) == true, "\(String(describing: error))")
            }
            await listener.stop()
        }
        #expect(try served.manager.allDatabaseNames == [])
    }

    @Test("Certificates and keys that are none, or don't belong together, are a 400") func badIdentity() async throws {
        let certificates = try await TestCertificates()
        let (one, two) = (
            try await certificates.identity("IP:127.0.0.1"), try await certificates.identity("IP:127.0.0.1")
        )
        for identity in [
            ListenerOptions.TLS(certificateChain: one.certificateChain, privateKey: two.privateKey),
            ListenerOptions.TLS(certificateChain: one.certificateChain, privateKey: ""),
            ListenerOptions.TLS(certificateChain: "no PEM", privateKey: one.privateKey),
            ListenerOptions.TLS(certificateChain: one.privateKey, privateKey: one.certificateChain),
        ] {
            let error = await #expect(throws: SyncError.self) { try await listener(identity) }
            #expect(error?.status == 400)
        }
        let database = try await home.manager.database(named: "db")
        for text in ["", "no PEM", one.privateKey] {
            let error = try await push(database, to: "https://127.0.0.1:1/x", options(trusting: text))
            #expect(error?.status == 400)
        }
    }

    @Test("A client that speaks TLS to a server that does not, or the other way, is told so") func mismatch()
        async throws
    {
        let certificates = try await TestCertificates()
        let database = try await home.manager.database(named: "db")
        var options = options(trusting: certificates.authority)
        options.retry.attemptCount = 1
        let plain = try await listener(nil)
        let error = try await push(database, to: "https://127.0.0.1:\(plain.port)/people", options)
        #expect(error?.status == 502 && error?.detail.contains("TLS") == true, "\(String(describing: error))")
        let secure = try await listener(try await certificates.identity("IP:127.0.0.1"))
        let other = try await push(database, to: "http://127.0.0.1:\(secure.port)/people", options)
        #expect([502, 503].contains(other?.status), "\(String(describing: other))")
        await plain.stop()
        await secure.stop()
    }
}

/// Where requests go, and where they don't.
@Suite("Where requests go") struct RouteTests {
    /// A server that keeps what it was asked, and answers all the same.
    private final class Recorder: Sendable {
        let requests = Lock<[HTTPRequest]>([])

        func start(
            answering response: HTTPResponse, idleTimeout: Duration = .seconds(60)
        ) async throws -> NetworkServer {
            let server = try await NetworkServer(
                host: "127.0.0.1", port: 0, limits: .init(connectionCount: 10, idleTimeout: idleTimeout)
            ) { request in
                self.requests.withLock { $0.append(request) }
                return response
            }
            server.start()
            return server
        }
    }

    private func run(_ url: String, _ change: (inout ReplicationOptions) -> Void) async throws -> SyncError? {
        let stores = TemporaryStores()
        let database = try await stores.manager.database(named: "db")
        var options = ReplicationOptions()
        options.retry.attemptCount = 1
        change(&options)
        let pull = try Replication(pull: try #require(URL(string: url)), into: database, options: options)
        return await #expect(throws: SyncError.self) { try await pull.run() }
    }

    @Test("A server that sends elsewhere is not followed, and nobody else sees a password", arguments: [false, true])
    func redirect(usesSession: Bool) async throws {
        let (one, other) = (Recorder(), Recorder())
        let elsewhere = try await other.start(answering: HTTPResponse(200))
        for status in [301, 302, 307, 308] {
            let server = try await one.start(
                answering: HTTPResponse(
                    status,
                    fields: ["Location": "http://127.0.0.1:\(elsewhere.port)/db", "Set-Cookie": "AuthSession=x"]))
            let error = try await run("http://127.0.0.1:\(server.port)/db") {
                $0.credentials =
                    usesSession
                    ? .session(name: "robin", password: "s3cret") : .basic(name: "robin", password: "s3cret")
            }
            #expect(error?.status == ([301, 308].contains(status) ? status : 502))
            await server.stop(grace: .seconds(5))
        }
        #expect(one.requests.withLock { $0.count } == 4)
        #expect(other.requests.withLock { $0.count } == 0)
        await elsewhere.stop(grace: .seconds(5))
    }

    @Test("A proxy is asked where one is named, and leads to the server") func proxy() async throws {
        let recorder = Recorder()
        // Nothing comes after its refusal.
        let proxy = try await recorder.start(answering: HTTPResponse(403), idleTimeout: .seconds(30))
        let error = try await run("http://db.invalid:5984/people") {
            $0.proxy = ReplicationOptions.Proxy(host: "127.0.0.1", port: proxy.port)
        }
        // Of plain http its refusal is the answer.
        #expect(error?.status == 403)
        let asked = recorder.requests.withLock { $0.map { "\($0.method) \($0.target)" } }
        #expect(asked == ["GET http://db.invalid:5984/people"])
        await proxy.stop(grace: .seconds(5))
    }
}
#endif
