@testable import Coffer
@testable import CofferSQLite
import Foundation

/// A whole store without encryption, in whose tables values were changed, and everything done with it that reads them. Anybody
/// can write such a store: each call ends, and where it fails it says so with an error that fits.
enum RowsHarness {
    private static let base: BaseStore = {
        do {
            return try BaseStore(key: nil, hasLog: false) { database in
                for number in 0..<5 {
                    try database.save(json: Data(#"{"n":\#(number),"t":"word"}"#.utf8), withID: "many-\(number)")
                }
                for suffix in ["x", "y"] {
                    let history = [RevisionID("3-\(suffix)"), RevisionID("2-p"), RevisionID("1-o")].compactMap { $0 }
                    try database.putExistingRevision(deferred, withID: "deferred-\(suffix)", history: history)
                }
                // A content without a use, and a revision whose properties a compaction drops.
                let draft = try database.document(withID: "replaced").newRevision()
                draft.setAttachment(named: "old", contentType: nil, content: Data("old content".utf8))
                try draft.save()
                try database.document(withID: "replaced").purge()
                try database.document(withID: "many-1").newRevision().save()
                try database.document(withID: "many-2").setExpirationDate(.now + 1e6)
                try database.saveLocalDocument(["n": 2], withID: "second")
                // What is older is forgotten with each save.
                try database.setMaxRevTreeDepth(2)
                try database.createIndex(named: "by n", on: "n")
                try setMap(in: database)
                _ = try database.updateIndexes()
                _ = try database.view(named: "v").updateIndex()
                // Entries that are to be made.
                try database.document(withID: "many-3").newRevision().save()
            }
        } catch { fatalError("\(error)") }
    }()

    /// Of a peer, without its content.
    private static let deferred: JSONObject = [
        "_attachments": [
            "film": ["digest": "md5-1B2M2Y8AsgTpgAmY7PhCfg==", "length": 11, "revpos": 1, "stub": true],
            "text": ["digest": "sha1-Kq5sNclPz7QV2+lfQIuc6R7oRu0=", "length": 11, "revpos": 3, "stub": true],
        ]
    ]

    @Sendable static func run(_ input: [UInt8]) throws {
        var choices = Choices(input[...])
        let first = Int(choices.byte())
        let store = BaseStore.directory.appending(path: "rows.coffer", directoryHint: .isDirectory)
        let copy = BaseStore.directory.appending(path: "copy.coffer", directoryHint: .isDirectory)
        defer { for url in [store, copy] { try? FileManager.default.removeItem(at: url) } }
        try base.write(to: store)
        guard try change(store, 1 + first >> 6, &choices) else { return }

        attempt {
            let database = try BaseStore.manager.openDatabase(named: "rows")
            defer { attempt { try database.close() } }
            attempt { try setMap(in: database) }
            let uses = Self.uses
            // Each may be the first that meets the change, and the last.
            for number in uses.indices {
                let use = uses[(first + number) % uses.count]
                attempt { try use(database) }
            }
            attempt { try database.backup(to: copy, encryptionKey: BaseStore.key(8)) }
            attempt { try database.changeEncryptionKey(to: BaseStore.key(9)) }
            attempt { try database.changeEncryptionKey(to: nil) }
        }
        try? FileManager.default.removeItem(at: copy)
        attempt { _ = try BaseStore.manager.verifyDatabase(named: "rows") }
        attempt { _ = try BaseStore.manager.salvageDatabase(named: "rows", to: copy) }
    }

    /// - Returns: whether SQLite took the changes.
    private static func change(_ store: URL, _ count: Int, _ choices: inout Choices) throws -> Bool {
        guard let file = base.files.first(where: { $0.path.hasSuffix("/db.sqlite3") }) else { fatalError("no file") }
        let connection = try Connection(
            path: store.appending(path: file.path).path, subject: "rows", access: .readWrite, key: nil,
            cacheByteCount: 1 << 20)
        defer { try? connection.close() }
        do {
            for _ in 0..<count { try HostileRow(&choices).apply(to: connection) }
            return true
        } catch { return false }
    }

    private static func setMap(in database: Database) throws {
        try database.view(named: "v").setMap(version: "1", reduction: .stats) { revision, emit in
            emit(try revision["n"] as Int? ?? 0, try revision["t"] as String? ?? "")
        }
    }

    private static let ids = ["short", "long", "gone", "photo", "torn", "deferred-x", "deferred-y", "many-1", "many-2"]

    private typealias Use = @Sendable (Database) throws -> Void

    private static let uses: [Use] =
        [
            { _ = try ($0.documentCount, $0.lastSequenceNumber, $0.documentIDs()) },
            { _ = try $0.allDocuments().all },
            { database in
                var options = AllDocumentsOptions()
                (options.order, options.isDescending, options.includesDeleted) = (.sequence, true, true)
                _ = try database.allDocuments(options).all.map { try $0.properties }
            },
            { database in
                var options = FeedOptions()
                options.includesAllLeaves = true
                _ = try database.changes(since: 0, options: options).all.map { try $0.revision.properties }
            },
            { _ = try $0.documents(DocumentQuery(where: Property("n") >= 1)).all },
            { _ = try $0.view(named: "v").rows().all },
            { _ = try $0.view(named: "v").reduce() },
            { database in
                let view = database.view(named: "v")
                _ = try (view.totalRows, view.isStale, view.lastSequenceIndexed, view.failedDocumentIDs())
                _ = try (database.viewNames, database.indexes, database.updateIndexes())
            },
            { _ = try $0.compact() },
            { _ = try $0.verify() },
            { database in
                for id in ["local", "second"] {
                    attempt { _ = try database.localDocument(withID: id) }
                    attempt { try database.saveLocalDocument(["n": 3], withID: id) }
                }
            },
        ] + ids.flatMap { id -> [Use] in [{ read(id, in: $0) }, { write(id, in: $0) }] }

    private static func read(_ id: String, in database: Database) {
        let document = database.document(withID: id)
        for number in 0..<6 {
            attempt {
                switch number {
                case 0: _ = try document.currentRevision?.properties
                case 1: _ = try document.leafRevisions.map { try $0.history.map { try $0.properties } }
                case 2: _ = try document.conflictingRevisions
                case 3: _ = try document.revisionHistory
                case 4: _ = try document.expirationDate
                default:
                    guard let revision = try document.currentRevision else { return }
                    for name in try revision.attachmentNames {
                        attempt { _ = try revision.attachment(named: name)?.content }
                    }
                }
            }
        }
    }

    private static func write(_ id: String, in database: Database) {
        let document = database.document(withID: id)
        attempt {
            let draft = try document.newRevision()
            draft["n"] = 7
            draft.setAttachment(named: "new", contentType: nil, content: Data("new content".utf8))
            try draft.save()
        }
        attempt {
            let history = ["4-z", "3-x", "2-p", "1-o"].compactMap { RevisionID($0) }
            try database.putExistingRevision(["n": 4], withID: id, history: history)
        }
        attempt { try document.resolveConflicts { draft, others in draft.properties = try others[0].properties } }
        attempt { try document.setExpirationDate(.now + 1e6) }
        attempt { try document.delete() }
        attempt { try document.purge() }
    }

    private static func attempt(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            guard let error = error as? CofferError else { fatalError("not one of ours: \(error)") }
            expect(error.status != 401 && error.code != .busy && error.code != .noSpace, "\(error)")
        }
    }
}
