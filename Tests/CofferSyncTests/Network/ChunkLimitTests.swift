#if Sync
import Coffer
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// Bodies in chunks whose framing goes on and on.
@Suite("Bodies in chunks without an end") struct ChunkLimitTests {
    let stores = TemporaryStores()

    private static let head = "PUT /db/d HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
    private static let long = String(repeating: "0", count: 3 * ChunkLimit.byteCount)

    /// What a listener answers to bytes as they are, until it closes the connection.
    private func answer(to text: String) async throws -> String {
        var options = ListenerOptions(access: .unauthenticatedLoopback)
        options.encryptionKey = { _ in TestServer.key }
        let listener = try await Listener(stores.manager, options: options)
        _ = try stores.manager.patientDatabase(named: "db")
        let file = URL.temporaryDirectory.appending(path: "coffer-request-\(UUID().uuidString)")
        try Data(text.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let script = "exec 3<>/dev/tcp/127.0.0.1/\(listener.port); cat \(file.path) >&3; timeout 1200 cat <&3"
        let said = try await output(of: "bash -c '\(script)' 2>/dev/null")
        await listener.stop()
        return String(decoding: said, as: UTF8.self)
    }

    @Test(
        "A chunk's size, its extension, or what follows the last chunk, is a 400 where it is too long",
        arguments: [
            "\r\n2;x=\(long)\r\n{}\r\n0\r\n\r\n", "\r\n\(long)2\r\n{}\r\n0\r\n\r\n", "\r\n2\r\n{}\r\n0;\(long)\r\n\r\n",
            "\r\n2\r\n{}\r\n0\r\nX: \(long)\r\n\r\n", "\r\n1\r\n{\r\n1;\(long)",
        ])
    func tooLong(rest: String) async throws {
        let said = try await answer(to: Self.head + rest)
        #expect(said.hasPrefix("HTTP/1.1 400"), "\(said.prefix(100))")
        #expect(said.components(separatedBy: "HTTP/1.1").count == 2)
    }

    @Test(
        "Short extensions, fields after the last chunk, large chunks and thousands of small ones are taken",
        arguments: [
            "2;x=y\r\n{}\r\n0;z\r\nX: y\r\n\r\n",
            "1\r\n{\r\n" + String(repeating: "1;x=1234567\r\n \r\n", count: 10_000) + "1\r\n}\r\n0\r\n\r\n",
            "100002\r\n{}" + String(repeating: " ", count: 1 << 20) + "\r\n0\r\n\r\n",
        ])
    func taken(body: String) async throws {
        let said = try await answer(to: Self.head + "Connection: close\r\n\r\n" + body)
        #expect(said.hasPrefix("HTTP/1.1 201"), "\(said.prefix(100))")
    }
}
#endif
