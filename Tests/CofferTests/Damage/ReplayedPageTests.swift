import CofferModel
import CofferSQLite
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords

/// Whoever can write the disk can put a single page back that stood in the same place before: under the same key it passes its
/// check. An index's page of then leads to rows that are something else's now.
@Suite("Pages of another state of the same store")
struct ReplayedPageTests {
    private static let ids = ["x", "y"]

    private static func content(_ id: String) -> Data { Data(String(repeating: "content of \(id) ", count: 500).utf8) }

    /// How the newer state gave the rows of its tables their numbers.
    enum Numbers: CaseIterable, Sendable {
        /// As it does.
        case new
        /// From 1 again, as after a page was put back that says which numbers were given.
        case reused
    }

    /// Two states of one store that hold the same, in rows of other numbers.
    private func states(_ stores: TestStores, _ numbers: Numbers) throws -> (older: Data, newer: Data) {
        let database = try stores.open { $0.compactsInBackground = false }
        try fill(database, Self.ids)
        try database.close()
        let older = try Data(contentsOf: stores.databaseFile())
        let again = try stores.open { $0.compactsInBackground = false }
        try empty(again)
        let file = again.storage.databaseFile
        try again.close()
        if numbers == .reused {
            let connection = try file.connect(.readWrite, cacheByteCount: 1 << 20)
            try connection.execute("DELETE FROM info WHERE key IN ('last_attachment', 'last_local', 'last_entry')")
            try connection.execute("UPDATE info SET value = 0 WHERE key IN ('last_index', 'last_sequence')")
            try connection.close()
        }
        let refilled = try stores.open { $0.compactsInBackground = false }
        try fill(refilled, Self.ids.reversed())
        try refilled.close()
        return (older, try Data(contentsOf: stores.databaseFile()))
    }

    private func fill(_ database: Database, _ ids: [String]) throws {
        for id in ids {
            let first = try database.document(withID: id).newRevision()
            first["name"] = .string(id)
            first["version"] = 1
            first.setAttachment(named: "a", contentType: nil, content: Self.content(id))
            try first.save()
            let second = try database.document(withID: id).newRevision()
            second["version"] = 2
            try second.save()
            try database.saveLocalDocument(["name": .string(id)], withID: id)
        }
        // What is declared first has the lower number.
        if ids == Self.ids { _ = try view(of: database).rows().all }
        try database.createIndex(named: "names", on: "name")
        try database.updateIndexes()
        _ = try view(of: database).rows().all
    }

    private func empty(_ database: Database) throws {
        for id in Self.ids {
            try database.document(withID: id).purge()
            try database.deleteLocalDocument(withID: id)
        }
        try view(of: database).delete()
        try database.deleteIndex(named: "names")
        try database.compact()
    }

    /// Its keys are what the documents are called, and so are its values.
    private func view(of database: Database) throws -> DatabaseView {
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in emit(try revision["name"] ?? .null, revision.documentID) }
        return view
    }

    /// What was read: how much of it was right, and what was something else's.
    private struct Outcome {
        var rightCount = 0
        var wrong: [String] = []

        mutating func take<Value: Equatable>(_ what: String, expected: Value, _ read: () throws -> Value?) {
            // An error, and what is not there, is no other's.
            guard let found = try? read() else { return }
            if found == expected { rightCount += 1 } else { wrong.append(what) }
        }
    }

    /// Of all documents.
    private func revisionIDs(_ stores: TestStores) throws -> [RevisionID] {
        let database = try stores.open()
        let found = try Self.ids.flatMap { try database.document(withID: $0).revisionHistory.map(\.revisionID) }
        try database.close()
        return found
    }

    private func read(_ stores: TestStores, _ revisionIDs: [RevisionID]) -> Outcome {
        var outcome = Outcome()
        let opened = try? stores.open { ($0.create, $0.compactsInBackground) = (false, false) }
        guard let database = opened else { return outcome }
        for id in Self.ids {
            outcome.take("document \(id)", expected: JSONValue.string(id)) { try database[id]?["name"] }
            outcome.take("attachment of \(id)", expected: Self.content(id)) {
                try database[id]?.currentRevision?.attachment(named: "a")?.content
            }
            outcome.take("local document \(id)", expected: JSONValue.string(id)) {
                try database.localDocument(withID: id)?["name"]
            }
            outcome.take("history of \(id)", expected: Set([JSONValue.string(id)])) {
                let revisions = try database.document(withID: id).revisionHistory
                return revisions.isEmpty ? nil : Set(try revisions.map { try $0["name"] ?? .null })
            }
            for revisionID in revisionIDs {
                outcome.take("revision \(revisionID) of \(id)", expected: revisionID) {
                    try database.document(withID: id).revision(withID: revisionID)?.revisionID
                }
            }
            var options = ViewOptions()
            options.keys = [.string(id)]
            outcome.take("view's rows of \(id)", expected: Set([JSONValue.string(id)])) {
                let rows = try view(of: database).rows(options).all
                return rows.isEmpty ? nil : Set(rows.flatMap { [.string($0.documentID), $0.key, $0.value] })
            }
            outcome.take("query for \(id)", expected: [id]) {
                let found = try database.documents(DocumentQuery(where: Property("name") == id)).all.map(\.documentID)
                return found.isEmpty ? nil : found
            }
        }
        try? database.close()
        return outcome
    }

    @Test(
        "A page that is put back makes nothing of another's be read, whatever the files of attachments are called",
        arguments: [true, false], Numbers.allCases)
    func singlePages(putsBackOlder: Bool, numbers: Numbers) throws {
        let stores = TestStores()
        let states = try states(stores, numbers)
        let revisionIDs = try revisionIDs(stores)
        let whole = try stores.snapshotOfFiles()
        let (base, other) = putsBackOlder ? (states.newer, states.older) : (states.older, states.newer)
        let pages = (0..<min(base.count, other.count) / 4096).filter {
            base[$0 * 4096..<$0 * 4096 + 4096] != other[$0 * 4096..<$0 * 4096 + 4096]
        }
        try #require(pages.count > 10)
        var rightCount = 0
        for page in pages {
            for exchangesFiles in [false, true] {
                try stores.restore(whole)
                var bytes = base
                bytes.replaceSubrange(page * 4096..<page * 4096 + 4096, with: other[page * 4096..<page * 4096 + 4096])
                try bytes.write(to: stores.databaseFile())
                if exchangesFiles { try exchangeFiles(stores) }
                let outcome = read(stores, revisionIDs)
                #expect(outcome.wrong == [], "page \(page + 1), files exchanged: \(exchangesFiles)")
                rightCount += outcome.rightCount
            }
        }
        // The same reading finds all of it where nothing was put back, and much where one page was.
        #expect(rightCount > pages.count)
        try stores.restore(whole)
        #expect(read(stores, revisionIDs).rightCount == 12 + 4)
    }

    @Test("A page that is put back lets no document expire before its own row says so")
    func expirations() throws {
        let stores = TestStores()
        let now = Date()
        let due = Int64((now.timeIntervalSince1970 + 500_000) * 1_000)
        var states: [Data] = []
        for delay in [100_000.0, 1_000_000] {
            let database = try stores.open { $0.compactsInBackground = false }
            for id in Self.ids {
                let document = database.document(withID: id)
                if try database[id] == nil { try database.save(json: Data("{}".utf8), withID: id) }
                try document.setExpirationDate(now + delay)
            }
            // What is due by a time between the two, in the older state alone.
            #expect(try dueDocuments(database, by: due).count == (delay < 500_000 ? 2 : 0))
            try database.close()
            states.append(try Data(contentsOf: stores.databaseFile()))
        }
        let pages = (0..<min(states[0].count, states[1].count) / 4096).map { $0 * 4096..<$0 * 4096 + 4096 }
        var count = 0
        for page in pages where states[0][page] != states[1][page] {
            var bytes = states[1]
            bytes.replaceSubrange(page, with: states[0][page])
            try bytes.write(to: stores.databaseFile())
            count += 1
            // An error, too, lets none expire.
            let opened = try? stores.open { $0.readOnly = true }
            guard let database = opened else { continue }
            #expect((try? dueDocuments(database, by: due)) ?? [] == [], "page \(page.lowerBound / 4096 + 1)")
            try database.close()
        }
        // Those of the table and of its index at least.
        #expect(count >= 2)
    }

    private func dueDocuments(_ database: Database, by time: Int64) throws -> [String] {
        try database.storage.read { (tables) throws(CofferError) in
            try tables.expirations.due(by: time, limit: 10).map(\.text)
        }
    }

    @Test("A row that was removed leaves its number to no other")
    func numbers() throws {
        let stores = TestStores()
        var highest: [String: Int64] = [:]
        for _ in 0..<3 {
            let database = try stores.open { $0.compactsInBackground = false }
            try fill(database, Self.ids)
            let connection = try database.storage.databaseFile.connect(.readOnly, cacheByteCount: 1 << 20)
            for table: StaticString in [
                "SELECT min(number), max(number) FROM attachments",
                "SELECT min(number), max(number) FROM local_documents",
                "SELECT min(number), max(number) FROM index_entries", "SELECT min(number), max(number) FROM indexes",
            ] {
                let statement = Statement(connection, table)
                let found = try #require(try statement.first { ($0.integer(0), $0.integer(1)) })
                statement.finalize()
                // Those of the round before are gone, the highest of all too, and another process writes now.
                #expect(found.0 > highest["\(table)", default: 0], "\(table)")
                highest["\(table)"] = found.1
            }
            try connection.close()
            try empty(database)
            try database.close()
        }
    }

    /// Gives each of the two files of attachments the name of the other.
    private func exchangeFiles(_ stores: TestStores) throws {
        let folder = try stores.generation().appending(path: "attachments")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        try #require(files.count == 2)
        let contents = try files.map { try Data(contentsOf: $0) }
        for (file, content) in zip(files, contents.reversed()) { try content.write(to: file) }
    }
}

extension TestStores {
    /// The bytes of every file below this directory.
    fileprivate func snapshotOfFiles() throws -> [URL: Data] {
        let enumerator = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: [.isRegularFileKey])
        var files: [URL: Data] = [:]
        while let url = enumerator?.nextObject() as? URL {
            guard try url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { continue }
            files[url] = try Data(contentsOf: url)
        }
        return files
    }

    /// Has the files be these again. The folders are there.
    fileprivate func restore(_ files: [URL: Data]) throws {
        for url in try snapshotOfFiles().keys where files[url] == nil { try FileManager.default.removeItem(at: url) }
        for (url, content) in files { try content.write(to: url) }
    }
}
