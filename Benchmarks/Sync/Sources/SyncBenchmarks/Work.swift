import Coffer
import CofferSync
import Foundation

/// Encrypted stores in a directory, a server of others beside it, and what is put into them.
struct Work {
    let documentCount: Int
    let attachmentCount: Int
    private let manager: Manager
    private let listener: Listener?
    private let key: SymmetricKey

    init(directory: URL, documentCount: Int = 0, attachmentCount: Int = 0, serves: Bool) async throws {
        self.documentCount = documentCount
        self.attachmentCount = attachmentCount
        let key = try SymmetricKey(data: [UInt8](repeating: 7, count: 32))
        self.key = key
        manager = try Manager(directory: directory)
        guard serves else {
            listener = nil
            return
        }
        var options = ListenerOptions(access: .unauthenticatedLoopback)
        options.encryptionKey = { _ in key }
        listener = try await Listener(manager, options: options)
    }

    var size: String { "\(documentCount) documents of 500 bytes, \(attachmentCount) attachments of 10 KB" }

    func database(_ name: String) async throws -> Database {
        try await manager.database(named: name, encryptionKey: key)
    }

    func url(_ name: String) -> URL {
        guard let listener else { return URL(filePath: "/") }
        return URL(string: "\(listener.url)/\(name)") ?? URL(filePath: "/")
    }

    func id(_ number: Int) -> String { "document-\(number &* 7919 % 1_000_003)-\(number)" }

    func text(_ number: Int) -> String { String(repeating: "\(number) ", count: 460 / "\(number) ".count) }

    func content(_ number: Int) -> Data {
        var state = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 | 1
        return Data(
            (0..<10_000).map { _ in
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                return UInt8(truncatingIfNeeded: state >> 32)
            })
    }
}
