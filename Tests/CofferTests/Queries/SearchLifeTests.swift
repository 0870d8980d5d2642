import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

@Suite("A text index through its life")
struct SearchLifeTests {
    let stores = TestStores()

    struct Failure: Error {}

    private func fill(_ database: Database, _ numbers: Range<Int>) throws {
        try database.inTransaction {
            for number in numbers {
                try database.save(
                    json: Data(
                        #"{"t":"common word\#(number % 50) rare\#(number) \#(String(repeating: "x", count: number % 7))"}"#
                            .utf8),
                    withID: "d\(number)")
            }
        }
    }

    private func filled(_ count: Int) throws -> Database {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 0..<count)
        try database.createTextIndex(named: "t", on: ["t"])
        try database.updateTextIndex(named: "t")
        return database
    }

    /// What finds everything that ``fill(_:_:)`` has saved, and in which order.
    private func found(_ database: Database) throws -> [[String]] {
        try ["common", "word7", "rare3", "\"common word7\"", "rare1*"].map {
            try database.search("t", for: SearchQuery($0), limit: nil).all.map(\.documentID)
        }
    }

    private func postingCount(_ database: Database) throws -> Int64 {
        try database.storage.read { (tables) throws(CofferError) in
            try Statement(tables.connection, "SELECT coalesce(sum(length(postings)), 0) FROM text_postings")
                .first { $0.integer(0) } ?? 0
        }
    }

    @Test("A key change, a backup and the end of encryption keep a text index, and nothing is indexed again")
    func copies() throws {
        let database = try filled(300)
        let before = try found(database)
        #expect(before.map(\.count) == [300, 6, 1, 6, 111])
        for key in [testKey(9), nil, TestStores.key] {
            try database.changeEncryptionKey(to: key)
            #expect(try database.updateTextIndex(named: "t") == 0)
            #expect(try found(database) == before)
            #expect(try database.verify().isSound)
        }
        try database.backup(to: stores.url("copy"), encryptionKey: testKey(8))
        let copy = try stores.open("copy", key: testKey(8)) { $0.create = false }
        #expect(try copy.updateTextIndex(named: "t") == 0)
        #expect(try found(copy) == before)
        try copy.close()
        try database.close()
    }

    @Test("A transaction that is rolled back leaves nothing in a text index, and within it a search sees what it saved")
    func rollback() throws {
        let database = try filled(20)
        #expect(throws: Failure.self) {
            try database.inTransaction {
                try database.save(json: Data(#"{"t":"common news"}"#.utf8), withID: "n")
                let inside = try database.search("t", for: "news").all.map(\.documentID)
                #expect(inside == ["n"])
                throw Failure()
            }
        }
        #expect(try database.search("t", for: "news").all.isEmpty)
        // The numbers of what was rolled back are given again.
        try database.save(json: Data(#"{"t":"other words"}"#.utf8), withID: "o")
        #expect(try database.search("t", for: "news OR other").all.map(\.documentID) == ["o"])
        #expect(try found(database)[0].count == 20)
        try database.close()
    }

    @Test("A compaction removes from a text index what changed documents had, and the same is found")
    func compaction() throws {
        let database = try filled(400)
        try database.inTransaction {
            for number in 0..<300 { try database.document(withID: "d\(number)").purge() }
        }
        let before = try found(database)
        let count = try postingCount(database)
        try database.compact()
        #expect(try postingCount(database) < count / 2)
        #expect(try found(database) == before)
        #expect(try database.updateTextIndex(named: "t") == 0)
        try fill(database, 0..<300)
        #expect(try found(database).map(\.count) == [400, 8, 1, 8, 111])
        #expect(try database.verify().isSound)
        try database.close()
    }

    @Test("A text index that has mostly dead numbers is rebuilt by a compaction")
    func rebuilding() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.createTextIndex(named: "t", on: ["t"])
        for round in 0..<6 {
            try database.inTransaction {
                for number in 0..<2_500 {
                    let draft = try database.document(withID: "d\(number)").newRevision()
                    draft["t"] = .string("round\(round)")
                    try draft.save()
                }
            }
            try database.updateTextIndex(named: "t")
            if round == 3 { for number in 5..<2_500 { try database.document(withID: "d\(number)").purge() } }
        }
        try database.inTransaction { for number in 5..<2_500 { try database.document(withID: "d\(number)").purge() } }
        try database.compact()
        #expect(try database.textIndexes.map(\.isStale) == [true])
        #expect(try database.search("t", for: "round5").all.count == 5)
        #expect(try database.search("t", for: "round4").all.isEmpty)
        try database.close()
    }

    @Test("A text index of another version of the tables, or of texts, is rebuilt")
    func otherVersion() throws {
        let database = try filled(20)
        let before = try found(database)
        try database.storage.write { (writer) throws(CofferError) in
            try writer.tables.connection.execute("INSERT OR REPLACE INTO info (key, value) VALUES ('index_version', 1)")
            try writer.tables.connection.execute("DROP TABLE text_postings")
        }
        try database.close()
        let again = try stores.open { $0.durability = .relaxed }
        #expect(try found(again) == before)
        try again.close()
    }

    @Test(
        "A process that is killed while it indexes leaves a text index right or behind, and it goes on",
        arguments: [300, 5_000, 11_000])
    func killed(after: Int) async throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 0..<12_000)
        try database.createTextIndex(named: "t", on: ["t"])
        try await database.close()
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = stores.directory.path as String, after = after as Int] in
            let database = try TestStores(sharing: path).open { $0.create = false }
            // So long as it takes, another thread sees it come.
            Thread {
                while true {
                    let count = (try? database.textIndexes.first?.documentCount) ?? 0
                    if count >= after || count > 0 && after < 4_096 { killOneself() }
                }
            }.start()
            try database.updateTextIndex(named: "t")
            killOneself()
        }
        let again = try stores.open { ($0.durability, $0.create) = (.relaxed, false) }
        #expect(try await again.verify().isSound)
        #expect(try found(again).map(\.count) == [12_000, 240, 1, 240, 3_112 - 1])
        try await again.close()
    }

    @Test("Each page of a text index that is damaged is noticed or not needed: no hit is missing")
    func damage() throws {
        let database = try filled(400)
        let before = try found(database)
        try database.close()
        let file = try stores.databaseFile()
        let original = try Data(contentsOf: file)
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("original"))
        var healedCount = 0
        for page in 2...original.count / 4096 {
            try file.patch { $0[(page - 1) * 4096 + 1_000] ^= 1 }
            if let database = try? stores.open("db", { ($0.durability, $0.create) = (.relaxed, false) }) {
                let healings = database.storage.indexes.healingCount
                do {
                    #expect(try found(database) == before, "page \(page)")
                    if database.storage.indexes.healingCount > healings { healedCount += 1 }
                } catch let error as CofferError {
                    // Documents themselves may be on it, or what indexes there are.
                    #expect(error.code == .damaged, "page \(page)")
                }
                try? database.close()
            }
            try FileManager.default.removeItem(at: stores.url())
            try FileManager.default.copyItem(at: stores.url("original"), to: stores.url())
        }
        #expect(healedCount > 5)
    }

    @Test("A salvage brings a text index, and its entries are made again")
    func salvage() throws {
        let database = try filled(100)
        let before = try found(database)
        try database.close()
        try stores.manager.salvageDatabase(
            named: "db", encryptionKey: TestStores.key, to: stores.url("out"), newKey: TestStores.key)
        let out = try stores.open("out") { $0.create = false }
        #expect(try out.textIndexes.map(\.name) == ["t"])
        #expect(try found(out) == before)
        try out.close()
    }

    @Test("A database that is open for reading only is searched if its index is up to date, and is otherwise a 403")
    func readOnly() throws {
        let database = try filled(20)
        let before = try found(database)
        try database.close()
        var reading = try stores.open { ($0.create, $0.readOnly) = (false, true) }
        #expect(try found(reading) == before)
        try reading.close()
        let writing = try stores.open()
        try fill(writing, 20..<21)
        try writing.close()
        reading = try stores.open { ($0.create, $0.readOnly) = (false, true) }
        #expect(thrown { try reading.search("t", for: "common").all }?.status == 403)
        try reading.close()
    }

    @Test("Threads that save, search and compact at once never miss what was committed before")
    func threads() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.createTextIndex(named: "t", on: ["t"])
        try withBusyProcessors {
            try onThreads(4) { thread in
                for round in 0..<40 {
                    let word = "w\(thread)x\(round)"
                    try database.save(json: Data(#"{"t":"\#(word) all"}"#.utf8), withID: word)
                    let found = try database.search("t", for: SearchQuery(word)).all.map(\.documentID)
                    #expect(found == [word])
                    if round.isMultiple(of: 7) { try database.document(withID: word).purge() }
                    if thread == 0, round.isMultiple(of: 10) { try database.compact() }
                }
            }
        }
        #expect(try database.searchCount("t", for: "all") == 4 * 34)
        #expect(try database.verify().isSound)
        try database.close()
    }
}
