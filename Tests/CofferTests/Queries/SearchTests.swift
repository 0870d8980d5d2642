import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferModel

@Suite("Searching texts")
struct SearchTests {
    let stores = TestStores()

    /// A database with an index over titles and bodies.
    private func notes(_ texts: [(id: String, title: String, body: String)] = []) throws -> Database {
        let database = try stores.open()
        try database.createTextIndex(named: "notes", on: ["title", "body"])
        try database.inTransaction {
            for text in texts { try save(database, text.id, title: text.title, text.body) }
        }
        return database
    }

    private func save(_ database: Database, _ id: String, title: String = "", _ body: String) throws {
        let document = database.document(withID: id)
        let draft = try document.newRevision()
        draft.properties = ["title": .string(title), "body": .string(body)]
        try draft.save()
    }

    private func found(_ database: Database, _ query: SearchQuery) throws -> [String] {
        try database.search("notes", for: query, limit: nil).all.map(\.documentID).sorted()
    }

    @Test("A search finds words, phrases, beginnings and what is near, in any property or in one")
    func queries() throws {
        let database = try notes([
            ("1", "Crème brûlée", "A dessert of France, burnt on top"), ("2", "Noir", "Café noir and nothing else"),
            ("3", "Coffee", "Café crème in Paris, France"), ("4", "user_name", "AB-12 is an identifier"),
            ("5", "東京", "京都と東京都"),
        ])
        for (query, ids) in [
            ("cafe", ["2", "3"]), ("CAFÉ", ["2", "3"]), ("caf* -noir", ["3"]), ("\"crème brûlée\"", ["1"]),
            ("\"brûlée crème\"", []), ("france OR noir", ["1", "2", "3"]), ("title:noir", ["2"]), ("body:noir", ["2"]),
            ("title:café", []), ("dessert NEAR/1 france", ["1"]), ("france NEAR/1 dessert", ["1"]),
            ("dessert NEAR/2 top", []), ("user", ["4"]), ("user_name", ["4"]), ("name_user", []), ("AB-12", ["4"]),
            ("12", ["4"]), ("東京", ["5"]), ("京", ["5"]), ("都と", ["5"]), ("大阪", []),
            ("(cafe OR creme) france", ["1", "3"]),
            ("12:30", []), ("\"cafe no*\"", ["2"]), ("nothing -cafe", []), ("title:crem*", ["1"]), ("", []),
            ("-cafe", []), ("...", []),
        ] as [(String, [String])] {
            #expect(try found(database, SearchQuery(query)) == ids, "\(query)")
        }
        #expect(try database.searchCount("notes", for: "france") == 2)
        try database.close()
    }

    @Test("A search knows what was saved, changed, deleted and purged since, and conflicts by their winners")
    func changes() throws {
        let database = try notes([("a", "", "first words"), ("b", "", "second words")])
        #expect(try found(database, "words") == ["a", "b"])
        try save(database, "a", "other text")
        #expect(try found(database, "words") == ["b"])
        #expect(try found(database, "other") == ["a"])
        try database.document(withID: "b").delete()
        #expect(try found(database, "words") == [])
        try save(database, "c", "third words")
        #expect(try found(database, "words") == ["c"])
        #expect(try database.textIndexes.map(\.documentCount) == [2])
        #expect(try database.searchCount("notes", for: "words") == 1)
        try database.document(withID: "c").purge()
        #expect(try found(database, "words") == [])
        #expect(try database.searchCount("notes", for: "words") == 0)
        #expect(try database.textIndexes.map(\.documentCount) == [1])
        #expect(try database.updateTextIndex(named: "notes") == 0)
        // None of it by making the index again.
        #expect(database.storage.indexes.healingCount == 0)
        try database.close()
    }

    @Test("A search puts the best first: rare words, often, in short texts, and where they weigh most")
    func ranking() throws {
        let database = try notes([
            ("long", "", "robin " + String(repeating: "filler ", count: 200)),
            ("often", "", "robin robin robin filler"),
            ("short", "", "robin"), ("title", "robin", "filler filler filler filler"),
        ])
        let ids = try database.search("notes", for: "robin").all.map(\.documentID)
        #expect(ids.last == "long")
        #expect(ids.first == "often" || ids.first == "short")
        #expect(try database.search("notes", for: "robin", weights: ["title": 50]).first?.documentID == "title")
        #expect(
            try !database.search("notes", for: "robin", weights: ["title": 0]).all.map(\.documentID).contains("title"))
        // As good as each other: by their ids.
        for id in ["z", "y", "x"] { try save(database, id, "same") }
        #expect(try database.search("notes", for: "same").all.map(\.documentID) == ["x", "y", "z"])
        #expect(try database.search("notes", for: "same", skip: 1, limit: 1).all.map(\.documentID) == ["y"])
        let scores = try database.search("notes", for: "robin filler").all.map(\.score)
        #expect(scores == scores.sorted(by: >) && scores.allSatisfy { $0 > 0 })
        try database.close()
    }

    @Test("A search finds only documents that a predicate lets through")
    func predicates() throws {
        let database = try notes((0..<30).map { ("\($0)", $0.isMultiple(of: 2) ? "even" : "odd", "word") })
        let query = Property("title") == "even"
        #expect(try database.search("notes", for: "word", where: query, limit: 5).all.count == 5)
        #expect(try database.search("notes", for: "word", where: query, limit: nil).all.count == 15)
        #expect(
            try database.search("notes", for: "word", where: query, skip: 14, limit: 5).all.map(\.documentID)
                == ["8"])
        try database.close()
    }

    @Test("A search says where matches are, and shows a snippet with them, on whole characters")
    func hits() throws {
        let database = try notes([
            ("a", "Crème", "One two three four five six CRÈME brûlée eight nine ten eleven twelve thirteen fourteen")
        ])
        let hit = try #require(try database.search("notes", for: "\"creme brulee\" OR title:creme").first)
        let matches = try hit.matches
        #expect(matches.map(\.path) == ["title", "body"])
        let body = try #require(try hit.revision["body"]?.stringValue)
        #expect(String(decoding: Array(body.utf8)[matches[1].range], as: UTF8.self) == "CRÈME brûlée")
        let snippet = try hit.snippet(of: "body", words: 6) { "[\($0)]" }
        #expect(snippet == "…five six [CRÈME brûlée] eight nine…")
        #expect(try hit.snippet(of: "title") { "[\($0)]" } == "[Crème]")
        #expect(throws: CofferError.self) { try hit.snippet(of: "other") }
        try database.close()
    }

    @Test("Pairs of characters that overlap are one match")
    func unspacedMatches() throws {
        let database = try notes([("a", "", "私は東京都に住んでいる")])
        let hit = try #require(try database.search("notes", for: "東京都").first)
        #expect(try hit.snippet(of: "body", words: 50) { "[\($0)]" } == "私は[東京都]に住んでいる")
        #expect(try hit.matches.count == 1)
        try database.close()
    }

    @Test("A search finds strings in lists, and no phrase from one into the next")
    func lists() throws {
        let database = try stores.open()
        try database.createTextIndex(named: "tags", on: ["tags", "items[].name"])
        try database.save(
            json: Data(#"{"tags":["red apple","pear",7,["plum"]],"items":[{"name":"green nut"},{}]}"#.utf8), withID: "a"
        )
        func ids(_ query: SearchQuery) throws -> [String] {
            try database.search("tags", for: query).all.map(\.documentID)
        }
        for query in ["apple", "pear", "plum", "\"red apple\"", "nut"] {
            #expect(try ids(SearchQuery(query)) == ["a"], "\(query)")
        }
        #expect(try ids("\"apple pear\"").isEmpty)
        let hit = try #require(try database.search("tags", for: "pear").first)
        #expect(try hit.matches == [SearchHit.Match(path: "tags", string: 1, range: 0..<4)])
        try database.close()
    }

    @Test("A search finds forms of English words where the index is told the language, and accents where they count")
    func definitions() throws {
        let database = try stores.open()
        #expect(try database.createTextIndex(named: "en", on: ["t"], ignoresAccents: false, language: "en"))
        #expect(try !database.createTextIndex(named: "en", on: ["t"], ignoresAccents: false, language: "en"))
        try database.save(json: Data(#"{"t":"Connected to a café"}"#.utf8), withID: "a")
        #expect(try database.search("en", for: "connections").all.count == 1)
        #expect(try database.search("en", for: "connecti*").all.isEmpty)
        for typed in ["c*", "connect*", "connecte*", "connected*", "\"connected t*\"", "\"to a caf*\""] {
            let hit = try #require(try database.search("en", for: SearchQuery(typed)).first, "\(typed)")
            #expect(try hit.matches.isEmpty == false, "\(typed)")
        }
        #expect(try database.search("en", for: "cafe").all.isEmpty)
        // Another definition is another index of that name.
        #expect(try database.createTextIndex(named: "en", on: ["t"]))
        #expect(try database.search("en", for: "connections").all.isEmpty)
        #expect(try database.search("en", for: "cafe").all.count == 1)
        #expect(try database.textIndexes.map(\.language) == [nil])
        #expect(try database.deleteTextIndex(named: "en"))
        #expect(try !database.deleteTextIndex(named: "en"))
        #expect(throws: CofferError.self) { try database.search("en", for: "cafe").all }
        for paths in [[], Array(repeating: "p", count: 65)] as [[PropertyPath]] {
            #expect(throws: CofferError.self) { try database.createTextIndex(named: "x", on: paths) }
        }
        #expect(throws: CofferError.self) { try database.createTextIndex(named: "x", on: ["t"], language: "xx") }
        try database.close()
    }

    @Test("A text index has stems of the app's own function, and without it can't be searched")
    func stemmer() throws {
        var database = try stores.open()
        let unknown = #expect(throws: CofferError.self) {
            try database.createTextIndex(named: "de", on: ["t"], language: "de-1")
        }
        #expect(unknown?.status == 400)
        for language in ["en", "", String(repeating: "x", count: 101)] {
            #expect(throws: CofferError.self) { try database.setStemmer(forLanguage: language) { $0 } }
        }
        let stem: @Sendable (String) -> String = { $0.hasSuffix("en") ? String($0.dropLast(2)) : $0 }
        try database.setStemmer(forLanguage: "de-1", stem)
        try database.createTextIndex(named: "de", on: ["t"], language: "de-1")
        try database.save(json: Data(#"{"t":"Die Bären schlafen, en"}"#.utf8), withID: "a")
        for query in ["Bär", "bar", "schlaf", "schlafen", "schlafe*", "en"] {
            #expect(try database.search("de", for: SearchQuery(query)).all.count == 1, "\(query)")
        }
        #expect(try database.search("de", for: "schlafe").all.isEmpty)
        let snippet = try database.search("de", for: "bär").first?.snippet(of: "t") { "[\($0)]" }
        #expect(snippet == "Die [Bären] schlafen, en")
        try database.close()
        database = try stores.open { $0.create = false }
        let error = #expect(throws: CofferError.self) { try database.search("de", for: "bär").all }
        #expect(error?.status == 400)
        #expect(try database.verify().isSound)
        try database.setStemmer(forLanguage: "de-1", stem)
        #expect(try database.search("de", for: "bär").all.count == 1)
        #expect(try database.updateTextIndex(named: "de") == 0)
        try database.close()
    }

    @Test("A search is bounded: words of a query, brackets, a word that is everywhere, texts without words")
    func bounds() throws {
        let database = try notes([
            ("a", String(repeating: "!", count: 10_000), "x\u{0}y \u{301}\u{301}"), ("b", "", "x"),
        ])
        #expect(try found(database, "x") == ["a", "b"])
        #expect(try found(database, "y") == ["a"])
        let many = SearchQuery(String(repeating: "x ", count: 10_000))
        #expect(thrown { try database.search("notes", for: many).all }?.status == 400)
        #expect(try found(database, SearchQuery(String(repeating: "(", count: 5_000) + "x")) == ["a", "b"])
        let deep = (0..<2_000).reduce(SearchQuery("x")) { query, _ in .all(query, "x") }
        #expect(thrown { try database.search("notes", for: deep).all }?.status == 400)
        #expect(thrown { try database.search("notes", for: SearchQuery("x").within("z")).all }?.status == 400)
        #expect(thrown { try database.search("notes", for: "x", weights: ["body": -1]).all }?.status == 400)
        #expect(thrown { try database.search("notes", for: "x", limit: -1).all }?.status == 400)
        try database.close()
    }

    @Test("A word in more places than a row holds, and in more documents, is found in all of them")
    func manyRows() throws {
        let database = try notes()
        try save(database, "long", String(repeating: "word and then other ", count: 5_000))
        try database.inTransaction { for number in 0..<3_000 { try save(database, "n\(number)", "word \(number)") } }
        #expect(try found(database, "word").count == 3_001)
        #expect(try found(database, "\"other word\"") == ["long"])
        #expect(try found(database, "word 2999") == ["n2999"])
        try database.close()
    }

    @Test("A search goes on where it stopped after it was opened again, and in a store with another key")
    func reopening() throws {
        var database = try notes([("a", "", "words")])
        #expect(try found(database, "words") == ["a"])
        try save(database, "b", "more words")
        try database.changeEncryptionKey(to: testKey(9))
        #expect(try found(database, "words") == ["a", "b"])
        try database.close()
        database = try stores.open(key: testKey(9))
        #expect(try found(database, "more") == ["b"])
        try database.close()
    }

    @Test("A search leaves no word readable on the disk, and a search of an unencrypted store finds them")
    func canary() throws {
        for (name, key, isReadable) in [("e", TestStores.key, false), ("p", nil, true)]
            as [(String, SymmetricKey?, Bool)]
        {
            let database = try stores.open(name, key: key)
            try database.createTextIndex(named: "notes", on: ["body"])
            try database.save(json: Data(#"{"body":"Canaryword Canaryword"}"#.utf8), withID: "a")
            #expect(try database.search("notes", for: "canaryword").all.count == 1)
            let files = try stores.files(containing: "canaryword")
            #expect(files.contains { $0.hasPrefix(name) } == isReadable)
            try database.close()
        }
    }

    @Test("Live results of a search come again when a document comes that is found")
    func live() async throws {
        let database = try notes([("a", "", "words")])
        var results = database.liveSearch("notes", for: "words").makeAsyncIterator()
        let first = try await results.next()
        let one = try await Array(#require(first).rows)
        #expect(one.map(\.documentID) == ["a"])
        try save(database, "b", "more words")
        let second = try await results.next()
        let two = try await Array(#require(second).rows)
        #expect(two.map(\.documentID).sorted() == ["a", "b"])
        try await database.close()
    }
}

extension Array {
    fileprivate init(_ rows: Rows<Element>) async throws where Element: Sendable {
        self = []
        for try await row in rows { append(row) }
    }
}
