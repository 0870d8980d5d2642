import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

@Suite("Searches of strange texts, queries and rows")
struct SearchInputTests {
    let stores = TestStores()

    private func database(_ texts: [String: String]) throws -> Database {
        let database = try stores.open { $0.durability = .relaxed }
        try database.createTextIndex(named: "t", on: ["t", "tags"])
        for (id, text) in texts { try database.save(["t": .string(text)] as JSONObject, withID: id) }
        return database
    }

    private func ids(_ database: Database, _ query: SearchQuery) throws -> [String] {
        try database.search("t", for: query, limit: nil).all.map { $0.documentID }.sorted()
    }

    @Test(
        "A text is found by itself, whatever scripts stand side by side in it",
        arguments: ["東京2020", "令和5年", "東京 tower", "한국어test", "สวัสดีworld", "x東", "東x京", "user_name", "👍🏽東京"])
    func mixedScripts(text: String) throws {
        let database = try database(["a": text, "b": "before \(text) after", "c": "other"])
        #expect(try ids(database, .phrase(text)) == ["a", "b"])
        #expect(try ids(database, SearchQuery(text)) == ["a", "b"])
        let snippet = try database.search("t", for: .phrase(text)).first?.snippet(of: "t") { "[\($0)]" }
        #expect(snippet == "[\(text)]")
        try database.close()
    }

    @Test("A distance between words of any size is a distance")
    func distances() throws {
        let database = try database(["a": "x y z"])
        for distance in [2, Int(UInt32.max), .max - 1, .max] {
            #expect(try ids(database, .near("x", "z", distance: distance)) == ["a"])
            #expect(try ids(database, SearchQuery("x NEAR/\(distance) z")) == ["a"])
        }
        #expect(try ids(database, SearchQuery("x NEAR/99999999999999999999999 z")) == ["a"])
        #expect(try ids(database, .near("x", "z", distance: -5)) == [])
        try database.close()
    }

    @Test("A snippet of a list in which nothing was found is the beginning of one of its strings")
    func snippetOfList() throws {
        let database = try database([:])
        for first in ["a", String(repeating: "a", count: 40)] {
            let tags: JSONValue = [.string(first), "b c d e f g h i j k l m n"]
            try database.save(["t": "hello", "tags": tags], withID: first)
            let hit = try #require(try database.search("t", for: "hello").all.first { $0.documentID == first })
            #expect(try hit.snippet(of: "tags") == first)
        }
        try database.close()
    }

    @Test("Matches of a search are whole characters, and each place is one match however many words ask for it")
    func matches() throws {
        let text = "แม่น้ำ " + String(repeating: "word ", count: 2_000)
        let database = try database(["a": text])
        let query = "แม่น้ " + Array(repeating: "wor* word", count: 200).joined(separator: " ")
        let hit = try #require(try database.search("t", for: SearchQuery(query)).first)
        let matches = try hit.matches
        #expect(matches.count == 2_001)
        let utf8 = text.utf8
        for match in matches {
            for place in [match.range.lowerBound, match.range.upperBound] {
                #expect(String.Index(utf8.index(utf8.startIndex, offsetBy: place), within: text) != nil)
            }
        }
        #expect(try hit.snippet(of: "t", words: .max)?.isEmpty == false)
        try database.close()
    }

    @Test(
        "A weight of a property that is not a sensible number is a 400", arguments: [1e39, 1e-46, -1, .nan, .infinity])
    func weights(weight: Double) throws {
        let database = try database(["a": "x"])
        let error = try #require(throws: CofferError.self) {
            _ = try database.search("t", for: "x", weights: ["t": weight]).all
        }
        #expect(error.status == 400)
        try database.close()
    }

    @Test(
        "Rows of a text index that nobody wrote are damage or are rebuilt: nothing crashes, and no hit is missing",
        arguments: [
            "UPDATE text_postings SET last = 4294967295",
            "UPDATE text_postings SET last = 0",
            "UPDATE text_postings SET block = 9223372036854775807 WHERE term = CAST('common' AS BLOB)",
            "UPDATE text_postings SET postings = x''",
            "UPDATE text_postings SET postings = x'01FFFFFFFFFFFFFFFFFF01'",
            "UPDATE text_postings SET postings = x'010203010301', last = 1",
            "UPDATE text_postings SET postings = x'FF'",
            "UPDATE text_lengths SET chunk = 9223372036854775807",
            "UPDATE text_lengths SET chunk = 16777215",
            "UPDATE text_lengths SET chunk = -1",
            "UPDATE text_lengths SET lengths = zeroblob(514)",
            "UPDATE text_lengths SET lengths = x'0002' || zeroblob(512)",
            "DELETE FROM text_lengths",
            "UPDATE text_lengths SET lengths = x'FFFF'",
            "DELETE FROM text_documents WHERE number = 3",
            "DELETE FROM text_documents",
            "UPDATE text_documents SET document = 7 WHERE number = 3",
        ] as [StaticString])
    func hostileRows(sql: StaticString) throws {
        // Any of these may be what meets it first.
        for steps in [[0, 1, 2, 3], [1, 2, 3], [2, 3], [3]] {
            let name = "from\(steps[0])"
            var database = try stores.open(name, key: nil) { $0.durability = .relaxed }
            try database.createTextIndex(named: "t", on: ["t"])
            for number in 0..<30 {
                try database.save(["t": .string("common word\(number)")] as JSONObject, withID: "\(number)")
            }
            var expected = Set(try ids(database, "common"))
            #expect(expected.count == 30)
            try database.storage.write { (writer) throws(CofferError) in try writer.tables.connection.execute(sql) }
            try database.close()
            database = try stores.open(name, key: nil) { ($0.durability, $0.create) = (.relaxed, false) }
            for step in steps {
                do {
                    if step == 1 {
                        try database.save(["t": "common news"], withID: "new")
                        expected.insert("new")
                    }
                    if step == 2 {
                        try database.document(withID: "5").purge()
                        expected.remove("5")
                    }
                    if step == 3 { try database.compact() }
                    #expect(Set(try ids(database, "common")) == expected, "\(name), step \(step)")
                } catch let error as CofferError {
                    #expect(error.code == .damaged, "\(name), step \(step)")
                }
            }
            try database.close()
        }
    }

    @Test("A compaction that meets an index being declared otherwise removes nothing that is alive")
    func compactionMeetsRedefinition() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.createTextIndex(named: "t", on: ["t"])
        func fill(_ round: Int) throws {
            try database.inTransaction {
                for number in 0..<200 {
                    let draft = try database.document(withID: "\(number)").newRevision()
                    draft["t"] = .string("common round\(round)")
                    try draft.save()
                }
            }
            try database.updateTextIndex(named: "t")
        }
        for round in 0..<3 { try fill(round) }
        var compaction = try #require(
            try database.storage.read { (tables) throws(CofferError) in
                let index = try tables.indexes.index(.text, "t")
                return try index.flatMap { (index) throws(CofferError) in try TextCompaction(of: index.number, tables) }
            })
        try database.createTextIndex(named: "t", on: ["t"], ignoresAccents: false)
        try database.updateTextIndex(named: "t")
        while !compaction.isOver {
            try database.storage.write { (writer) throws(CofferError) in
                var next = compaction
                try next.run(writer)
                compaction = next
            }
        }
        #expect(try ids(database, "common").count == 200)
        try database.close()
    }
}
