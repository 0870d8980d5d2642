#if Sync
import Coffer
import CofferModel
import CofferTesting
import Foundation
import TestSupport
import Testing

@testable import CofferSync

/// Over sockets, with the client of this library and with curl.
@Suite("Listening on sockets") struct ListenerTests {
    let stores = TemporaryStores()

    private func listener(_ change: (inout ListenerOptions) -> Void = { _ in }) async throws -> Listener {
        var options = ListenerOptions(access: .passwords(["robin": "s3cret"]))
        options.encryptionKey = { _ in TestServer.key }
        change(&options)
        return try await Listener(stores.manager, options: options)
    }

    private static let credentials = "Basic " + Data("robin:s3cret".utf8).base64EncodedString()

    private func transport(_ listener: Listener) -> NetworkTransport {
        NetworkTransport(origin: listener.url, connectTimeout: longestWait, idleTimeout: longestWait)
    }

    private func call(
        _ transport: NetworkTransport, _ method: String, _ target: String, _ body: HTTPBody = .none, type: String? = nil
    ) async throws -> (status: Int, body: [UInt8]) {
        var fields: HTTPFields = ["Authorization": Self.credentials]
        fields["Content-Type"] = type
        let response = try await transport.send(HTTPRequest(method, target, fields: fields, body: body))
        return (response.status, try await response.body.stream.collect(upTo: 1 << 26))
    }

    @Test("Requests go back and forth over one connection after another") func requests() async throws {
        let listener = try await listener()
        let transport = transport(listener)
        #expect(try await call(transport, "PUT", "/db").status == 201)
        for number in 0..<50 {
            let put = try await call(transport, "PUT", "/db/d\(number)", .bytes(Array("{\"n\":\(number)}".utf8)))
            #expect(put.status == 201)
        }
        let got = try await call(transport, "GET", "/db/d7")
        #expect(try JSONValue(json: got.body)["n"] == 7)
        #expect(try await call(transport, "HEAD", "/db/d7").body.isEmpty)
        let refused = try await transport.send(HTTPRequest("GET", "/db"))
        #expect(refused.status == 401)
        await transport.close()
        await listener.stop()
    }

    @Test("A content of many pieces streams both ways") func streams() async throws {
        let listener = try await listener()
        let transport = transport(listener)
        _ = try await call(transport, "PUT", "/db")
        let piece = [UInt8]((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 17) })
        let pieces = stream(Array(repeating: piece, count: 100))
        let put = try await call(transport, "PUT", "/db/d/big.bin", .stream(pieces, length: nil), type: "a/b")
        #expect(put.status == 201)
        let response = try await transport.send(
            HTTPRequest("GET", "/db/d/big.bin", fields: ["Authorization": Self.credentials]))
        #expect(response.body.length == 10_000_000)
        var byteCount = 0
        while let bytes = try await response.body.stream.next() {
            #expect(bytes.indices.allSatisfy { bytes[$0] == piece[(byteCount + $0) % piece.count] })
            byteCount += bytes.count
        }
        #expect(byteCount == 10_000_000)
        await transport.close()
        await listener.stop()
    }

    @Test("Nobody is answered after a stop of the listener, and a feed under way ends with it") func stops()
        async throws
    {
        let listener = try await listener()
        let transport = transport(listener)
        _ = try await call(transport, "PUT", "/db")
        let feed = try await transport.send(
            HTTPRequest(
                "GET", "/db/_changes?feed=continuous&heartbeat=1000", fields: ["Authorization": Self.credentials]))
        async let rest = feed.body.stream.collect(upTo: 1 << 20)
        await listener.stop()
        #expect(String(decoding: try await rest, as: UTF8.self).contains("last_seq"))
        let error = await #expect(throws: SyncError.self) { try await call(transport, "GET", "/db") }
        #expect(error?.status == 503)
        await transport.close()
        // The databases were let go, so that others can have them.
        #expect(throws: Never.self) { try stores.manager.database(named: "db", encryptionKey: TestServer.key).delete() }
    }

    @Test("The client of one connection too many is told so") func connectionLimit() async throws {
        let listener = try await listener { $0.connectionLimit = 1 }
        let (one, two) = (transport(listener), transport(listener))
        _ = try await call(one, "PUT", "/db")
        #expect(try await call(two, "GET", "/db").status == 503)
        // Nor is one answered before it asks, or while it still sends.
        let put =
            "PUT /db/d HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n" + String(repeating: "x", count: 500_000)
        let said = try await curlLike(put, to: listener.port, afterSeconds: 0.2)
        #expect(said.hasPrefix("HTTP/1.1 503"), "\(said)")
        #expect(try await call(one, "GET", "/db").status == 200)
        await one.close()
        await two.close()
        await listener.stop()
    }

    @Test("A feed whose client has gone is over") func lostClient() async throws {
        let listener = try await listener { $0.connectionLimit = 1 }
        let (one, two) = (transport(listener), transport(listener))
        _ = try await call(one, "PUT", "/db")
        let feed = try await one.send(
            HTTPRequest(
                "GET", "/db/_changes?feed=longpoll&timeout=3600000", fields: ["Authorization": Self.credentials]))
        #expect(try await feed.body.stream.next() != nil)
        #expect(try await call(two, "GET", "/db").status == 503)
        await one.close()
        var status = 503
        let end = ContinuousClock.now + longestWait
        while status == 503, .now < end {
            try await Task.sleep(for: .milliseconds(10))
            status = try await call(two, "GET", "/db").status
        }
        #expect(status == 200)
        await two.close()
        await listener.stop()
    }

    @Test("A HEAD whose answer has no length leaves nothing behind it", arguments: ["/db/_changes", "/db/_all_docs"])
    func head(target: String) async throws {
        let listener = try await listener()
        let transport = transport(listener)
        _ = try await call(transport, "PUT", "/db")
        let request = "HEAD \(target) HTTP/1.1\r\nHost: x\r\nAuthorization: \(Self.credentials)\r\n\r\n"
        let said = try await curlLike(request, to: listener.port)
        #expect(said.hasPrefix("HTTP/1.1 200"))
        #expect(said.hasSuffix("\r\n\r\n") && !said.contains("\r\n0\r\n"))
        #expect(try await call(transport, "GET", "/db").status == 200)
        await transport.close()
        await listener.stop()
    }

    @Test("A connection on which nothing moves is closed") func idle() async throws {
        let listener = try await listener { $0.idleTimeout = .milliseconds(300) }
        let said = try await curlLike("GET /db HTTP/1.1\r\nHost: x\r\n", to: listener.port)
        #expect(said.isEmpty)
        await listener.stop()
    }

    @Test("A request that is no HTTP gets a 400, and does no harm") func garbage() async throws {
        let listener = try await listener()
        for text in [
            "\0\0\0\0\r\n\r\n", "GET / HTTP/9\r\n\r\n", "GET /\r\nX: \(String(repeating: "x", count: 200_000))\r\n\r\n",
        ] {
            let said = try await curlLike(text, to: listener.port)
            #expect(said.isEmpty || said.hasPrefix("HTTP/1.1 400") || said.hasPrefix("HTTP/1.0 400"))
        }
        let transport = transport(listener)
        #expect(try await call(transport, "PUT", "/db").status == 201)
        await transport.close()
        await listener.stop()
    }

    @Test("Without passwords, or with empty ones, only loopback is served") func unauthenticated() async throws {
        for change: (inout ListenerOptions) -> Void in [
            {
                $0.access = .unauthenticatedLoopback; $0.host = "0.0.0.0"
            }, { $0.access = .passwords([:]) },
            { $0.access = .passwords(["robin": ""]) }, { $0.access = .passwords(["": "x"]) },
        ] {
            let error = await #expect(throws: SyncError.self) { try await listener(change) }
            #expect(error?.status == 400)
        }
        let busy = try await listener()
        let error = await #expect(throws: SyncError.self) { try await listener { $0.port = busy.port } }
        #expect(error?.status == 503)
        await busy.stop()
    }

    @Test(
        "The client curl sends a large body, waiting to be told to go on",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/curl")))
    func curl() async throws {
        let listener = try await listener()
        let file = URL.temporaryDirectory.appending(path: "coffer-body-\(UUID().uuidString)")
        try Data(repeating: 5, count: 3 << 20).write(to: file)
        func curl(_ arguments: String...) async throws -> String {
            let words = arguments.map { "'\($0)'" }.joined(separator: " ")
            let bytes = try await output(of: "curl -s -u robin:s3cret --max-time 1200 \(words) 2>/dev/null")
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(try await curl("-X", "PUT", "\(listener.url)/db").contains("true"))
        let odd = try listener.url(ofDatabaseNamed: "shop/orders+1")
        #expect(odd.absoluteString == "\(listener.url)/shop%2Forders%2B1")
        #expect(try await curl("-X", "PUT", odd.absoluteString).contains("true"))
        #expect(try stores.manager.allDatabaseNames.contains("shop/orders+1"))
        #expect(throws: SyncError.self) { try listener.url(ofDatabaseNamed: "No") }
        let put = try await curl(
            "-X", "PUT", "\(listener.url)/db/d/a", "-H", "Expect: 100-continue", "-H", "Content-Type: a/b",
            "--data-binary", "@\(file.path)")
        #expect(put.contains("\"ok\":true"), "\(put)")
        let size = try await curl("\(listener.url)/db/d/a", "-o", "/dev/null", "-w", "%{size_download}")
        #expect(size == "3145728")
        #expect(try await curl("-I", "\(listener.url)/db/d/a").contains("3145728"))
        try FileManager.default.removeItem(at: file)
        await listener.stop()
    }

    /// Sends bytes as they are, and says what comes back until the connection is closed.
    ///
    /// - Parameter seconds: how long it waits before that, once it is connected. Default: 0.
    private func curlLike(_ text: String, to port: Int, afterSeconds seconds: Double = 0) async throws -> String {
        let file = URL.temporaryDirectory.appending(path: "coffer-request-\(UUID().uuidString)")
        try Data(text.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let script = "exec 3<>/dev/tcp/127.0.0.1/\(port); sleep \(seconds); cat \(file.path) >&3; timeout 1200 cat <&3"
        return String(decoding: try await output(of: "bash -c '\(script)' 2>/dev/null"), as: UTF8.self)
    }
}
#endif
