import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

/// The keys that a store goes between.
enum Protection: String, Codable, Sendable, CaseIterable {
    case none, password, bytes, otherPassword, otherBytes

    var key: SymmetricKey? {
        switch self {
        case .none: nil
        case .password: SymmetricKey(password: "password123456")
        case .bytes: testKey(7)
        case .otherPassword: SymmetricKey(password: "correct horse")
        case .otherBytes: testKey(8)
        }
    }

    /// Every way there is from one protection to another.
    static let transitions: [(from: Protection, to: Protection)] = [
        (.none, .bytes), (.none, .password), (.bytes, .none), (.password, .none), (.bytes, .otherBytes),
        (.password, .otherPassword), (.bytes, .password), (.password, .bytes),
    ]
}

/// What a store has in it that a change of its key must carry over, and that is looked for afterwards.
enum KeyChangeContent {
    static let canary = "CANARY-f3b1c7d09e"

    /// Lengths around the borders of pages, chunks and rows with a digest.
    static let bodyLengths = [0, 100, 2000, 2100, 4096, 9000, 70_000]
    static let attachmentLengths = [0, 1, 16_383, 16_384, 16_385, 200_000]

    static func bytes(_ length: Int) -> Data {
        var bytes = Data(canary.utf8.prefix(length))
        for index in bytes.count..<max(bytes.count, length) { bytes.append(UInt8(truncatingIfNeeded: index &* 31)) }
        return bytes
    }

    /// Fills a database: documents of all lengths, one with a history, one deleted, one with a blob, attachments of all
    /// lengths, and one that was replaced and is still there.
    static func fill(_ database: Database) throws {
        try database.inTransaction {
            for length in bodyLengths {
                let text = String(repeating: "\(canary) ", count: length / 18)
                try database.saveDocument(MutableDocument(id: "body-\(length)", ["text": .string(text)]))
            }
            let draft = try database.document(withID: "files").newRevision()
            for length in attachmentLengths {
                draft.setAttachment(named: "a/\(length)", contentType: nil, content: bytes(length))
            }
            try draft.save()
        }
        let document = MutableDocument(id: "later", ["n": 0])
        for number in 1...5 {
            document["n"] = .number(JSONNumber(Int64(number)))
            try database.saveDocument(document)
        }
        try database.saveDocument(MutableDocument(id: "gone", ["text": .string(canary)]))
        try database.document(withID: "gone").delete()
        let blob = MutableDocument(id: "blob")
        blob["avatar"] = Blob(contentType: "image/png", data: bytes(1000))
        try database.saveDocument(blob)
        let replacing = try database.document(withID: "files").newRevision()
        replacing.setAttachment(named: "a/1", contentType: nil, content: Data("other".utf8))
        try replacing.save()
    }

    /// Everything that can be read, in one text, so that two stores can be compared.
    static func describe(_ database: Database) throws -> String {
        var lines: [String] = []
        for id in try database.documentIDs() {
            guard let revision = try database.document(withID: id).currentRevision else { continue }
            let json = String(decoding: try revision.json, as: UTF8.self)
            lines.append("\(id) \(revision.revisionID) \(json.count) \(json.hash)")
            for attachment in try revision.attachments {
                let content = try attachment.content
                let range = try attachment.content(in: 0..<min(3, attachment.length))
                lines.append("  \(attachment.name) \(content?.count ?? -1) \(content.hashValue) \(range?.count ?? -1)")
            }
            if let blob = try revision.blob(forKey: "avatar") {
                lines.append("  \(blob.digest ?? "") \(try blob.content?.hashValue ?? 0)")
            }
        }
        return lines.joined(separator: "\n")
    }
}

extension TestStores {
    /// Opens an existing database.
    func existing(_ name: String = "db", key: SymmetricKey?) throws -> Database {
        var options = DatabaseOptions()
        options.encryptionKey = key
        return try manager.openDatabase(named: name, options: options)
    }

    /// The names of the generations in the store's directory.
    func generations(_ name: String = "db") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: url(name).path).filter { $0.hasPrefix("g") }
    }
}
