#if Sync
import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// Requests that go through a proxy.
@Suite("Requests through a proxy") struct ProxyTests {
    /// A proxy before a server that only it can reach.
    private final class Proxy: Sendable {
        let server = TestServer()
        private let seen = Lock<[HTTPRequest]>([])

        var all: [HTTPRequest] { seen.withLock { $0 } }

        func answer(_ request: HTTPRequest) async -> HTTPResponse {
            seen.withLock { $0.append(request) }
            // robin:s3cret
            guard request.fields["Proxy-Authorization"] == "Basic cm9iaW46czNjcmV0" else {
                return HTTPResponse(407, fields: ["Proxy-Authenticate": "Basic realm=\"proxy\""])
            }
            let origin = "http://server.invalid:5984"
            guard request.target.hasPrefix(origin) else { return HTTPResponse(400) }
            var inner = request
            inner.target = String(request.target.dropFirst(origin.count))
            inner.fields["Host"] = nil
            return await server.service.respond(to: inner)
        }
    }

    private func proxying(_ body: (Proxy, Int) async throws -> Void) async throws {
        let proxy = Proxy()
        _ = try proxy.server.database()
        let server = try await NetworkServer(
            host: "127.0.0.1", port: 0, tls: nil, limits: .init(connectionCount: 16, idleTimeout: .seconds(60))
        ) { await proxy.answer($0) }
        server.start()
        do {
            try await body(proxy, server.port)
        } catch {
            await server.stop(grace: .zero)
            throw error
        }
        await server.stop(grace: .zero)
    }

    private func push(
        _ url: String, _ port: Int, _ user: String?, _ password: String?, from database: Database
    ) throws -> Replication {
        var options = ReplicationOptions()
        options.proxy = .init(host: "127.0.0.1", port: port, user: user, password: password)
        // Beside all other tests an answer can take longer than usual, and what times out is tried again.
        options.connectTimeout = .seconds(300)
        return try Replication(push: database, to: #require(URL(string: url)), options: options)
    }

    @Test("Plain http is asked of the proxy itself, by whole URLs and the server's Host, with its password")
    func plain() async throws {
        let stores = TemporaryStores()
        let database = try stores.manager.patientDatabase(named: "local")
        for number in 0..<10 { try database.write("d\(number)", ["n": 1], attachment: ("a", Data([UInt8(number)]))) }
        try await proxying { proxy, port in
            let push = try push("http://server.invalid:5984/db", port, "robin", "s3cret", from: database)
            try await push.run()
            #expect(push.failures.isEmpty)
            #expect(try Contents(database) == Contents(proxy.server.database()))
            #expect(proxy.all.allSatisfy { $0.method != "CONNECT" && $0.fields["Host"] == "server.invalid:5984" })
        }
    }

    @Test(
        "A proxy that wants to know who one is says so at once, whatever the server's scheme",
        arguments: ["http://server.invalid:5984/db", "https://server.invalid:6984/db"])
    func refused(url: String) async throws {
        let stores = TemporaryStores()
        let database = try stores.manager.patientDatabase(named: "local")
        try database.write("a", ["n": 1])
        try await proxying { proxy, port in
            for (user, password) in [(nil, nil), ("robin", "wrong")] as [(String?, String?)] {
                let before = proxy.all.count
                let push = try push(url, port, user, password, from: database)
                let error = await #expect(throws: SyncError.self) { try await push.run() }
                #expect(error?.status == 407, "\(String(describing: error))")
                #expect(error?.detail.contains("proxy") == true)
                #expect(proxy.all.count == before + 1, "it was asked once")
            }
        }
    }

    @Test("A redirect is not followed, and says where to, without what may be secret") func redirected() async throws {
        let peers = try Peers()
        let database = try peers.database()
        let elsewhere = InterceptingTransport(peers.server) { _, _, _ in
            HTTPResponse(301, fields: ["Location": "https://robin:s3cret@example.com:6984/other/db?token=abc#x"])
        }
        let pull = try peers.replication(.pull, database, through: elsewhere)
        let error = await #expect(throws: SyncError.self) { try await pull.run() }
        #expect(error?.detail.contains("https://example.com:6984/other/db,") == true, "\(String(describing: error))")
        #expect(error?.detail.contains("s3cret") == false && error?.detail.contains("abc") == false)
        #expect(error?.status == 301)
        #expect(elsewhere.count == 1, "A permanent redirect is asked for once")
    }
}
#endif
