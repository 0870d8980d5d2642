import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferModel
@testable import CofferSQLite
@testable import CofferVault

/// A store with some of everything, and what salvaging it brings.
struct SalvageFixture {
    let stores: TestStores
    let key: SymmetricKey?
    /// What the store held before it was damaged.
    let original: StoreContents

    static let canary = "canary in the salvage"

    /// - Parameter fill: saves what the store shall hold; not given, some of everything.
    init(
        key: SymmetricKey? = TestStores.key, keyedNames: Bool = false, documentCount: Int = 60,
        hasForeignRevisions: Bool = true, fill: ((Database) throws -> Void)? = nil
    ) throws {
        stores = TestStores()
        self.key = key
        let database = try stores.open(key: key) {
            $0.compactsInBackground = false
            $0.keyedNames = keyedNames
        }
        if let fill {
            try fill(database)
        } else {
            try Self.fill(database, documentCount, hasForeignRevisions: hasForeignRevisions)
        }
        original = try StoreContents(of: database)
        try database.close()
    }

    static func fill(_ database: Database, _ documentCount: Int, hasForeignRevisions: Bool) throws {
        try database.inTransaction {
            for number in 0..<documentCount { try save(database, number) }
            if hasForeignRevisions {
                for suffix in ["b", "c"] {
                    let history = ["2-\(suffix)", "1-a"].compactMap(RevisionID.init(_:))
                    try database.putExistingRevision(["n": .string(suffix)], withID: "torn", history: history)
                }
                let stub: JSONValue = ["digest": "md5-abc", "length": 5, "revpos": 1, "stub": true]
                try database.putExistingRevision(
                    ["_attachments": ["file": stub]], withID: "awaited", history: [try #require(RevisionID("1-x"))])
            }
        }
        for number in 0..<8 {
            try database.saveLocalDocument(
                ["n": .string(text(number, count: number == 3 ? 900 : 5))], withID: "l\(number)")
        }
        for number in 0..<min(5, documentCount) {
            try database.document(withID: id(number)).setExpirationDate(
                Date(timeIntervalSinceNow: 1e8 + Double(number)))
        }
    }

    static func id(_ number: Int) -> String { "document-\(number)" }

    /// Text of some 10 bytes a `count`.
    static func text(_ number: Int, count: Int) -> String {
        canary + String(repeating: " \(number) and so", count: count)
    }

    private static func save(_ database: Database, _ number: Int) throws {
        let draft = try database.document(withID: id(number)).newRevision()
        draft["text"] = .string(text(number, count: number % 10 == 7 ? 1500 : 15))
        if number % 12 == 3 {
            draft.setAttachment(named: "content", contentType: nil, content: AttachmentTests.bytes(20_000 + number))
        }
        var saved = try draft.save()
        switch number % 10 {
        case 4:
            for more in 1...2 {
                let next = try saved.createRevision()
                next["more"] = .number(JSONNumber(more))
                try next.saveAllowingConflict()
            }
        case 5: try saved.document.delete()
        case 6:
            // More than are kept, so that the first are forgotten.
            for round in 0..<25 {
                let next = try saved.createRevision()
                next["round"] = .number(JSONNumber(round))
                saved = try next.save()
            }
        default: break
        }
    }

    /// Has all that was saved in the file.
    static func emptyLog(of database: Database) throws {
        let isEmpty = Shared(false)
        try database.storage.alone { (writer) throws(CofferError) in
            isEmpty.value = try writer.tables.connection.checkpoint(patience: .seconds(1))
        }
        try #require(isEmpty.value)
    }

    // MARK: Damage

    var databaseFile: URL { get throws { try stores.databaseFile() } }

    /// The pages as they are in the file.
    func source() throws -> PageSource {
        let store = try LockedStore.open(path: stores.url().path, access: .readOnly)
        defer { store.close() }
        let manifest = try store.readManifest().unlock(with: key)
        let source = try PageSource(
            SystemFileSystem(), store.remains(of: manifest), DatabaseProtection(of: manifest))
        try source.readLog(WorkMonitor())
        return source
    }

    func damage(pages: some Sequence<Int>, at offset: Int = 2000, in file: URL? = nil) throws {
        try (file ?? databaseFile).patch { data in
            for page in pages {
                for index in 0..<64 { data[(page - 1) * 4096 + offset + index] ^= 0x55 }
            }
        }
    }

    // MARK: Salvaging

    struct Outcome {
        var result: Salvage
        var contents: StoreContents
        /// The documents that are in the new store as they were in the old one, deleted ones not counted.
        var intact: Set<String>
        var named: Set<String>
    }

    /// Salvages the store, and sees to what holds whatever is damaged: nothing changes in the old one; the new one is sound;
    /// nothing in it is other than it was; and what is missing there is named.
    ///
    /// - Parameter logMayEnd: whether the end of the log is missing, of which nobody can know that it was there.
    @discardableResult
    func salvage(
        _ name: String = "db", logMayEnd: Bool = false, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Outcome {
        let target = stores.url("out")
        try? FileManager.default.removeItem(at: target)
        let before = try stores.snapshot()
        let result = try stores.manager.salvageDatabase(named: name, encryptionKey: key, to: target)
        let after = try stores.snapshot().filter { !$0.key.hasPrefix("out.coffer") }
        #expect(after == before, "the damaged store was changed", sourceLocation: sourceLocation)
        #expect(
            try stores.manager.verifyDatabase(named: "out", encryptionKey: key).findings.map(\.description) == [],
            sourceLocation: sourceLocation)
        let database = try stores.open("out", key: key) { $0.compactsInBackground = false }
        let contents = try StoreContents(of: database)
        #expect(try database.documentCount == result.documentCount, sourceLocation: sourceLocation)
        try database.close()

        // Each row is one that was there.
        for table in ["revisions", "local_documents", "expirations"] {
            let known = original.rows[table] ?? []
            // An ancestor may have lost its content.
            let bodiless = table == "revisions" ? known.map(Self.withoutBody) : []
            let sequences = Set(known.map { $0.prefix { $0 != "," } })
            let strangers = Set(contents.rows[table] ?? []).subtracting(known + bodiless).filter { row in
                if row.contains("'salvaged-attachments") { return false }
                guard table == "revisions", key == nil else { return true }
                // Where nothing is encrypted, only what follows from a parent that is there has an id that vouches for it.
                let parent = row.components(separatedBy: ", ")[2]
                return parent == "NULL" || sequences.contains(parent[...])
            }
            #expect(strangers.map { String($0.prefix(200)) } == [], "of \(table)", sourceLocation: sourceLocation)
        }
        for (digest, content) in contents.contents {
            #expect(original.contents[digest] == content, sourceLocation: sourceLocation)
        }
        let named = Set(result.losses.compactMap(\.documentID))
        let intact = Set(original.documents.filter { contents.documents[$0.key] == $0.value }.keys)
        let missing = Set(original.documents.keys).subtracting(intact).subtracting(named)
        // Where the table of documents is damaged too, the page says it.
        let isPageLost = result.losses.contains { $0.kind == .page || $0.kind == .structure }
        #expect(missing.isEmpty || isPageLost || logMayEnd, "not named: \(missing)", sourceLocation: sourceLocation)
        if result.isComplete && !logMayEnd {
            #expect(isAll(contents) == nil, sourceLocation: sourceLocation)
        }
        return Outcome(result: result, contents: contents, intact: intact, named: named)
    }

    /// A row of `revisions`, of nine columns, without digest and body. No id here has a comma in it.
    private static func withoutBody(_ row: String) -> String {
        var columns = row.components(separatedBy: ", ")
        (columns[6], columns[8]) = ("NULL", "NULL")
        return columns.joined(separator: ", ")
    }

    /// In what the new store is not all of the old one.
    func isAll(_ contents: StoreContents) -> String? {
        for table in ["documents", "revisions", "leaves", "local_documents", "expirations"]
        where contents.rows[table] != original.rows[table] {
            return contents.difference(from: original)
        }
        return contents.contents == original.contents && contents.documents == original.documents
            ? nil : contents.difference(from: original)
    }
}
