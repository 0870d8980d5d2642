import Coffer
import CofferSync
import Foundation

/// Encrypted stores in a directory, a server of others beside it, and what is put into them.
struct Work {
    let documentCount: Int
    let attachmentCount: Int
    let attachmentByteCount: Int
    private let manager: Manager
    private let listener: Listener?
    private let key: SymmetricKey

    init(
        directory: URL, documentCount: Int = 0, attachmentCount: Int = 0, attachmentByteCount: Int = 10_000,
        serves: Bool
    ) async throws {
        self.attachmentByteCount = attachmentByteCount
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

    var size: String {
        "\(documentCount) documents of 500 bytes, \(attachmentCount) attachments of "
            + "\(attachmentByteCount / 1000) KB"
    }

    func database(_ name: String) async throws -> Database {
        try await manager.database(named: name, encryptionKey: key)
    }

    /// Where the server listens.
    var port: Int { listener.flatMap { URL(string: $0.url)?.port } ?? 0 }

    /// - Parameter port: of what stands before the server. Default: nil, its own.
    func url(_ name: String, port: Int? = nil) -> URL {
        URL(string: "http://127.0.0.1:\(port ?? self.port)/\(name)") ?? URL(filePath: "/")
    }

    func id(_ number: Int) -> String { "document-\(number &* 7919 % 1_000_003)-\(number)" }

    func text(_ number: Int) -> String { String(repeating: "\(number) ", count: 460 / "\(number) ".count) }

    func content(_ number: Int) -> Data {
        var state = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 | 1
        return Data(
            (0..<attachmentByteCount).map { _ in
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                return UInt8(truncatingIfNeeded: state >> 32)
            })
    }

    /// Puts all documents and attachments into a database, 1,000 a transaction.
    func fill(_ database: Database) throws {
        for start in stride(from: 0, to: documentCount, by: 1000) {
            try database.inTransaction {
                for number in start..<min(start + 1000, documentCount) {
                    let draft = try database.document(withID: id(number)).newRevision()
                    draft.properties = ["n": .number(.init(Int64(number))), "text": .string(text(number))]
                    if number < attachmentCount {
                        draft.setAttachment(
                            named: "a", contentType: "application/octet-stream", content: content(number))
                    }
                    try draft.save()
                }
            }
        }
    }

    /// Makes sure that all came across.
    func expectAll(_ status: ReplicationStatus, _ what: String) throws {
        guard status.failedCount == 0, status.completedCount >= documentCount else {
            throw Failure("\(what): \(status.completedCount) documents, \(status.failedCount) failed")
        }
    }
}
