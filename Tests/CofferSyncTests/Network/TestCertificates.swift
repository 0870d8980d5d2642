#if Sync
import CofferSync
import Foundation

/// An authority that nobody knows but a test, and certificates that it signs, made by the command `openssl`.
final class TestCertificates {
    static let isAvailable = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

    /// The authority's own.
    let authority: String
    private let folder: URL

    init() async throws {
        folder = URL.temporaryDirectory.appending(path: "coffer-certificates-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try await Self.openssl(
            "req -x509 \(Self.newKey) -keyout ca.key -out ca.pem -days 2 -subj /CN=Authority", folder)
        authority = try String(contentsOf: folder.appending(path: "ca.pem"), encoding: .utf8)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private static let newKey = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

    /// A server's, for those names, such as `DNS:localhost,IP:127.0.0.1`.
    ///
    /// - Parameter days: how long it is good. With 0 it has expired when this returns.
    func identity(_ names: String, days: Int = 2) async throws -> ListenerOptions.TLS {
        try "subjectAltName=\(names)".write(to: folder.appending(path: "names"), atomically: false, encoding: .utf8)
        try await Self.openssl("req \(Self.newKey) -keyout server.key -out server.csr -subj /CN=server", folder)
        try await Self.openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days \(days) -extfile names -out server.pem",
            folder)
        if days == 0 { try await Task.sleep(for: .seconds(1.1)) }
        return ListenerOptions.TLS(
            certificateChain: try String(contentsOf: folder.appending(path: "server.pem"), encoding: .utf8),
            privateKey: try String(contentsOf: folder.appending(path: "server.key"), encoding: .utf8))
    }

    private static func openssl(_ arguments: String, _ folder: URL) async throws {
        let said = try await output(of: "cd '\(folder.path)' && openssl \(arguments) 2>&1 || echo FAILED")
        let text = String(decoding: said, as: UTF8.self)
        guard !text.contains("FAILED") else { throw SyncError(500, text) }
    }
}
#endif
