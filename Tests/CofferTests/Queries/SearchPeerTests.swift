import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferModel
@testable import CofferSQLite

/// What a search finds, beside what others find in the same texts.
@Suite("Searches and their peers")
struct SearchPeerTests {
    let stores = TestStores()

    /// A few words, so that texts have many in common.
    private static let words = (0..<40).map { "w\(String($0, radix: 36))" } + ["common", "commonly", "wa", "wab"]

    private func text(_ random: inout SeededNumbers, _ count: Int) -> String {
        (0..<count).map { _ in Self.words.randomElement(using: &random) ?? "" }.joined(separator: " ")
    }

    @Test("SQLite's FTS4 finds the same documents, through changes and deletions")
    func fullTextOfSQLite() throws {
        var random = SeededNumbers(seed: 28)
        let database = try stores.open()
        try database.createTextIndex(named: "t", on: ["t"])
        let file = stores.directory.appending(path: "peer.sqlite3")
        try Data().write(to: file)
        let connection = try Connection(
            path: file.path, subject: "peer", access: .create, key: nil, cacheByteCount: 1 << 20)
        try connection.execute("CREATE VIRTUAL TABLE peer USING fts4(t, tokenize=simple)")
        let insert = Statement(connection, "INSERT INTO peer (docid, t) VALUES (?1, ?2)")
        let delete = Statement(connection, "DELETE FROM peer WHERE docid = ?1")
        let find = Statement(connection, "SELECT docid FROM peer WHERE peer MATCH ?1 ORDER BY docid")
        var (queryCount, hitCount) = (0, 0)
        for round in 0..<6 {
            try database.inTransaction {
                for _ in 0..<150 {
                    let number = Int.random(in: 0..<400, using: &random)
                    let document = database.document(withID: "\(number)")
                    try delete.bind(1, Int64(number))
                    try delete.run()
                    if Int.random(in: 0..<5, using: &random) == 0 {
                        if try document.currentRevision != nil { try document.delete() }
                        continue
                    }
                    let text = text(&random, Int.random(in: 1..<60, using: &random))
                    let draft = try document.newRevision()
                    draft.properties = ["t": .string(text)]
                    try draft.save()
                    try insert.bind(1, Int64(number))
                    try insert.bind(2, text)
                    try insert.run()
                }
            }
            for _ in 0..<120 {
                let query = query(&random)
                try find.bind(1, query)
                var expected: [Int] = []
                while try find.step() { expected.append(Int(find.integer(0))) }
                find.reset()
                let found = try database.search("t", for: SearchQuery(query), limit: nil).all.compactMap {
                    Int($0.documentID)
                }
                #expect(found.sorted() == expected, "round \(round): \(query)")
                queryCount += 1
                hitCount += expected.count
            }
        }
        print("SQLite's FTS4 and Coffer: \(queryCount) queries with \(hitCount) hits")
        #expect(hitCount > 1_000)
        #expect(database.storage.indexes.healingCount == 0)
        try connection.close()
        try database.close()
    }

    /// In the syntax that both know.
    private func query(_ random: inout SeededNumbers) -> String {
        let words = (0..<4).map { _ in Self.words.randomElement(using: &random) ?? "" }
        switch Int.random(in: 0..<7, using: &random) {
        case 0: return words[0]
        case 1: return "\(words[0]) \(words[1])"
        case 2: return "\"\(words[0]) \(words[1])\""
        case 3: return "\(words[0]) OR \(words[1])"
        case 4: return "\(words[0]) -\(words[1])"
        case 5: return "\(words[0].prefix(2))*"
        default: return "\(words[0]) NEAR/2 \(words[1])"
        }
    }

    @Test("A scan of all texts finds the same, also phrases of three words and beginnings within them")
    func scan() throws {
        var random = SeededNumbers(seed: 29)
        let database = try stores.open()
        try database.createTextIndex(named: "t", on: ["t"])
        var texts: [String: [String]] = [:]
        try database.inTransaction {
            for number in 0..<300 {
                let text = text(&random, 30)
                texts["\(number)"] = text.split(separator: " ").map(String.init)
                try database.save(["t": .string(text)] as JSONObject, withID: "\(number)")
            }
        }
        for _ in 0..<300 {
            let source = try #require(texts.randomElement(using: &random)?.value)
            let start = Int.random(in: 0..<27, using: &random)
            let words = Array(source[start..<start + 2])
            let beginning = String(source[start + 2].prefix(2))
            let expected = texts.filter { Self.holds($0.value, words, beginning) }.map(\.key)
            let query = SearchQuery.prefix((words + [beginning]).joined(separator: " "))
            let found = try database.search("t", for: query, limit: nil).all
            #expect(Set(found.map { $0.documentID }) == Set(expected), "\(words) \(beginning)")
        }
        try database.close()
    }

    private static func holds(_ text: [String], _ words: [String], _ beginning: String) -> Bool {
        (0...text.count - 3).contains { at in
            text[at] == words[0] && text[at + 1] == words[1] && text[at + 2].hasPrefix(beginning)
        }
    }
}
