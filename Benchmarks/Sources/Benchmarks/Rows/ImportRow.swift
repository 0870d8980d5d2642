internal import CByHand
internal import Coffer
internal import CofferCouchbaseLite
internal import Foundation

/// Importing a store of Couchbase Lite, against saving the same documents and attachments.
struct ImportRow {
    private let bench: Bench
    private let documents: DocumentSet
    private let contents: Contents
    private let source: URL

    private static let hexKey = String(repeating: "5a", count: 32)

    init(_ bench: Bench) throws {
        bench.say("importing …")
        self.bench = bench
        documents = try bench.documents(isInOrder: true)
        contents = Contents(count: bench.size(1_000, quick: 100), byteCount: 10_000)
        source = bench.directory.appending(path: "\(bench.newName("source")).cblite2", directoryHint: .isDirectory)
        try fillSource()
    }

    private func fillSource() throws {
        let attachments = source.appending(path: "attachments", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: attachments, withIntermediateDirectories: true)
        let path = source.appending(path: "db.sqlite3").path
        guard let store = unsafe couchbase_lite_new(path, Self.hexKey) else { throw Failure("no source can be made") }
        func insert(_ id: String, _ json: Data) throws {
            let isFine = unsafe json.withUnsafeBytes { bytes in
                unsafe couchbase_lite_insert(store, id, bytes.baseAddress, bytes.count)
            }
            try expect(isFine, "a document of the source can't be inserted")
        }
        for document in documents.all { try insert(document.id, document.json) }
        for (number, content) in contents.all.enumerated() {
            let digest = try Self.digest(of: content)
            let name = digest.map { String(format: "%02X", $0) }.joined()
            try content.write(to: attachments.appending(path: "\(name).blob"))
            let attachment =
                #"{"content":{"digest":"sha1-\#(digest.base64EncodedString())","length":\#(content.count),"revpos":1,"stub":true}}"#
            try insert("file-\(number)", Data(#"{"_attachments":\#(attachment)}"#.utf8))
        }
        try expect(unsafe couchbase_lite_close(store), "the source can't be committed")
    }

    private static func digest(of content: Data) throws -> Data {
        var digest = Data(count: 20)
        let isFine = unsafe content.withUnsafeBytes { content in
            unsafe digest.withUnsafeMutableBytes { digest in
                unsafe couchbase_lite_digest(content.baseAddress, content.count, digest.baseAddress)
            }
        }
        try expect(isFine, "OpenSSL can't do SHA-1")
        return digest
    }

    func row() throws -> Row {
        let key = try SymmetricKey(data: Data(repeating: 0x5A, count: 32))
        let manager = try Manager(directory: bench.directory)
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            let database = try bench.newStore()
            defer { try? database.close() }
            try bench.settle()
            return try measure { try saveAll(to: database) }
        } own: {
            try bench.settle()
            let name = bench.newName("imported")
            return try measure {
                let report = try manager.importCouchbaseLite(
                    at: source, named: name, key: key, encryptionKey: Bench.key())
                try expect(
                    report.isComplete && report.documentCount == documents.all.count + contents.all.count,
                    "the import is not whole")
            }
        }
        return Row(
            "import from Couchbase Lite", comparison, atLeast: 0.5,
            explanation: """
                \(documents.all.count) documents, and \(contents.all.count) with an attachment of 10 KB, from an encrypted store; \
                compared with saving the same in a new store, 1,000 a transaction
                """)
    }

    private func saveAll(to database: Database) throws {
        for start in stride(from: 0, to: documents.all.count, by: 1_000) {
            try database.inTransaction {
                for document in documents.all[start..<min(start + 1_000, documents.all.count)] {
                    try database.save(json: document.json, withID: document.id)
                }
            }
        }
        try database.inTransaction {
            for (number, content) in contents.all.enumerated() {
                let draft = try database.document(withID: "file-\(number)").newRevision()
                draft.setAttachment(named: "content", contentType: nil, content: content)
                try draft.save()
            }
        }
    }
}
