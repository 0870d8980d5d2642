import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

@Suite("Entries of views and indexes")
struct IndexLifeTests {
    let stores = TestStores()

    /// Counts how often its function is called.
    private func view(_ database: Database, _ calls: Tally = Tally()) throws -> DatabaseView {
        let view = database.view(named: "by name")
        try view.setMap(version: "1", reduction: .count) { revision, emit in
            calls.count("map")
            emit(try revision["name"] ?? .null, ["value": try revision["name"] ?? .null] as JSONObject)
        }
        return view
    }

    private func fill(_ database: Database, _ count: Int, padding: Int = 0) throws {
        let padding = String(repeating: "p", count: padding)
        try database.inTransaction {
            for number in 0..<count {
                try database.save(
                    json: Data(#"{"name":"\#(padding)canary\#(10_000 + number)","n":\#(number)}"#.utf8),
                    withID: "d\(number)")
            }
        }
    }

    private func names(_ view: DatabaseView) throws -> [String] { try view.rows().all.compactMap(\.key.stringValue) }

    /// With keys and values that stay in the row, and with such that overflow it.
    @Test(
        "Entries of views and indexes outlive a key change, a backup, and the end of encryption, unchanged",
        arguments: [0, 3_000])
    func copies(padding: Int) throws {
        let calls = Tally()
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 200, padding: padding)
        try database.createIndex(named: "n", on: "n")
        let query = DocumentQuery(where: Property("n") < 3)
        #expect(try database.documents(query).all.count == 3)
        let view = try view(database, calls)
        let before = try names(view)
        #expect(before.count == 200)
        for key in [testKey(9), nil, TestStores.key] {
            try database.changeEncryptionKey(to: key)
            #expect(try names(view) == before)
            #expect(try database.documents(query).all.count == 3)
            #expect(try !view.isStale)
            #expect(try database.verify().isSound)
        }
        #expect(calls["map"] == 200)
        try database.backup(to: stores.url("copy"), encryptionKey: testKey(8))
        let copy = try stores.open("copy", key: testKey(8)) { $0.create = false }
        #expect(try names(self.view(copy, calls)) == before)
        #expect(try copy.documents(query).all.count == 3)
        #expect(calls["map"] == 200)
        #expect(try copy.verify().isSound)
    }

    @Test("Entries of views and indexes are ciphertext, whatever they hold")
    func ciphertext() throws {
        for key in [nil, TestStores.key] {
            let database = try stores.open(key == nil ? "plain" : "secret", key: key) { $0.durability = .relaxed }
            try fill(database, 300, padding: 500)
            try database.createIndex(named: "name", on: "name")
            #expect(try database.documents(DocumentQuery(where: Property("name") > "q")).all.isEmpty)
            #expect(try names(view(database)).count == 300)
            _ = try database.view(named: "canary view").setMap(version: "canary version") { _, emit in
                emit("canary key")
            }
            try database.view(named: "canary view").updateIndex()
            let found = try stores.files(containing: "canary")
            #expect(found.contains { $0.hasPrefix("plain") } || key != nil)
            #expect(!found.contains { $0.hasPrefix("secret") })
            try database.close()
        }
    }

    @Test("Entries of views and indexes that were made by another version of the tables are made anew")
    func otherVersion() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 20)
        try database.createIndex(named: "n", on: "n")
        let calls = Tally()
        let view = try view(database, calls)
        let before = try names(view)
        try database.storage.write { (writer) throws(CofferError) in
            try writer.tables.connection.execute(
                "INSERT OR REPLACE INTO info (key, value) VALUES ('index_version', 99)")
            try writer.tables.connection.execute("ALTER TABLE index_entries ADD COLUMN later")
        }
        try database.close()
        let again = try stores.open { $0.durability = .relaxed }
        // A save and a purge meanwhile, which nothing notes.
        try again.document(withID: "d3").purge()
        let viewAgain = try self.view(again, calls)
        #expect(try names(viewAgain) == before.filter { $0 != "canary10003" })
        #expect(calls["map"] == 20 + 19)
        #expect(try again.indexes.map(\.name) == ["n"])
        #expect(try again.documents(DocumentQuery(where: Property("n") < 5)).all.count == 4)
    }

    /// In the middle of a transaction, right after the first of two, and between.
    @Test(
        "Entries of views and indexes of a process that was killed while it made them are made on from there",
        arguments: [300, 20_300, 24_999])
    func killed(after: Int) async throws {
        try makeMany()
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = stores.directory.path as String, after = after as Int] in
            let stores = TestStores(sharing: path)
            let database = try stores.open { $0.create = false }
            let calls = Tally()
            let view = database.view(named: "by name")
            try view.setMap(version: "1", reduction: .count) { revision, emit in
                calls.count("map")
                if calls["map"] == after { killOneself() }
                emit(try revision["name"] ?? .null, ["value": try revision["name"] ?? .null] as JSONObject)
            }
            try view.updateIndex()
        }
        let again = try stores.open { ($0.durability, $0.create) = (.relaxed, false) }
        let calls = Tally()
        let view = try view(again, calls)
        #expect(try names(view) == (0..<25_000).map { "canary\(10_000 + $0)" })
        #expect(try view.totalRows == 25_000)
        #expect(after < 20_000 ? calls["map"] == 25_000 : calls["map"] < 5_000)
        #expect(try await again.verify().isSound)
    }

    private func makeMany() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 25_000)
        try database.close()
    }

    /// Each page of the entries and of the indexes over them, one after another.
    @Test(
        "Entries of views and indexes that are damaged are noticed, and made anew, and nothing else is touched",
        arguments: [true, false])
    func damage(isOpen: Bool) throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 400)
        let calls = Tally()
        let before = try names(view(database, calls))
        try database.close()
        let original = try Data(contentsOf: stores.databaseFile())
        let pages = try indexPages()
        #expect(pages.count > 10)
        var madeAnew = 0
        for page in pages {
            try stores.databaseFile().patch { $0[(page - 1) * 4096 + 1_000] ^= 1 }
            let again = try stores.open { ($0.durability, $0.create) = (.relaxed, false) }
            let view = try view(again, calls)
            if isOpen {
                // Through the writer, who meets the page as it removes entries.
                for number in 0..<400 {
                    let draft = try again.document(withID: "d\(number)").newRevision()
                    draft["n"] = -1
                    try draft.save()
                }
            }
            let start = calls["map"]
            #expect(try names(view) == before, "page \(page)")
            if calls["map"] >= start + 400 { madeAnew += 1 }
            // Everything goes on, the writer too.
            try again.save(json: Data(#"{"name":"new"}"#.utf8), withID: "new")
            #expect(try names(view) == before + ["new"])
            #expect(try again.documentCount == 401)
            #expect(throws: Never.self, "page \(page)") { try again.compact() }
            #expect(try again.documentCount == 401)
            // And a copy has nothing of it any more.
            #expect(throws: Never.self, "page \(page)") { try again.changeEncryptionKey(to: testKey(9)) }
            #expect(try again.verify().isSound)
            #expect(try names(view) == before + ["new"])
            try again.close()
            try restore(original)
        }
        // What only an update reads is found by the key change at the latest.
        #expect(madeAnew == pages.count || !isOpen && madeAnew > 5)
    }

    private func restore(_ original: Data) throws {
        try FileManager.default.removeItem(at: stores.url())
        try FileManager.default.copyItem(at: stores.url("original"), to: stores.url())
        #expect(try Data(contentsOf: stores.databaseFile()) == original)
    }

    /// The pages of the entries and of the indexes over them, found by what can't be read without them.
    private func indexPages() throws -> [Int] {
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("original"))
        let file = try stores.databaseFile()
        let original = try Data(contentsOf: file)
        var pages: [Int] = []
        for page in 2...original.count / 4096 {
            try file.patch { $0[(page - 1) * 4096 + 1_000] ^= 1 }
            let database = try? stores.open { ($0.create, $0.readOnly) = (false, true) }
            if let database {
                if database.storage.damageOfIndexes() != .none { pages.append(page) }
                try database.close()
            }
            try original.write(to: file)
        }
        return pages
    }
}
