internal import CByHand
internal import Coffer
internal import Foundation

/// Indexing and searching texts of 60 words, against SQLite's FTS4 by hand.
struct SearchRows {
    private let bench: Bench
    /// Texts of 60 words, which are as frequent as in natural language: the n-th one in n.
    private let texts: [String]
    private static let hexKey = String(repeating: "5a", count: 32)
    private static let cacheByteCount = 64 << 20

    init(_ bench: Bench) {
        bench.say("texts …")
        self.bench = bench
        var random = SplitMix(state: 60)
        var words: [String] = []
        for number in 0..<50_000 { words.append(random.word(3 + number % 9).lowercased()) }
        texts = (0..<bench.size(100_000, quick: 10_000)).map { _ in
            (0..<60).map { _ in
                // Zipf's distribution, by the inverse of its integral.
                let share = Double(random.next() >> 11) / Double(1 << 53)
                return words[min(words.count - 1, Int(pow(Double(words.count), share)) - 1)]
            }.joined(separator: " ")
        }
    }

    func rows() throws -> [Row] {
        let database = try bench.newStore(cacheByteCount: Self.cacheByteCount)
        defer { try? database.close() }
        for start in stride(from: 0, to: texts.count, by: 1_000) {
            try database.inTransaction {
                for number in start..<start + 1_000 {
                    try database.save(
                        json: Data(#"{"text":"\#(texts[number])"}"#.utf8), withID: String(format: "%08d", number))
                }
            }
        }
        // Before anything is deleted: its pages would stay in the file.
        let before = try size(of: database)
        try createIndex(in: database)
        let byteCount = try Double(size(of: database) - before) / Double(texts.count)
        let indexing = try indexing(database)
        let byHand = try fullText()
        return [
            Row(
                "search: index \(texts.count) texts", indexing, atLeast: 0.5,
                explanation: "60 words each; by hand: FTS4 with unicode61, contentless, 1,000 texts a transaction"),
            Row(
                "search: size of an index", [byteCount], .bytes, .atMost(1_638),
                explanation: "a text of 60 words; the growth of the compacted database"),
            try searching("two words", query(5, 40), database, byHand, atLeast: 1),
            try searching("a rare word and a frequent one", query(0, 5_000), database, byHand, atLeast: 1),
            try searching("a beginning", "a*", database, byHand, atLeast: 1),
            try typing("san", in: database),
        ]
    }

    private func query(_ first: Int, _ second: Int) -> String {
        let counts = texts.prefix(2_000).flatMap { $0.split(separator: " ") }.reduce(into: [:]) {
            $0[$1, default: 0] += 1
        }
        let words = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
        return "\(words[first]) \(words[min(second, words.count - 1)])"
    }

    private func indexing(_ database: Database) throws -> Comparison {
        try Comparison.run(roundCount: bench.settings.roundCount) {
            var cost = Cost()
            _ = try fullText { cost = $0 }
            return cost
        } own: {
            try database.deleteTextIndex(named: "texts")
            try bench.settle()
            return try measure { try createIndex(in: database) }
        }
    }

    private func createIndex(in database: Database) throws {
        try database.createTextIndex(named: "texts", on: ["text"])
        try database.updateTextIndex(named: "texts")
    }

    private func fullText(_ report: (Cost) -> Void = { _ in }) throws -> FullText {
        let store = try FullText(bench.newPath("texts"), Self.hexKey, cacheByteCount: Self.cacheByteCount)
        try bench.settle()
        report(
            try measure {
                for start in stride(from: 0, to: texts.count, by: 1_000) {
                    try store.transaction { for text in texts[start..<start + 1_000] { try store.insert(text) } }
                }
            })
        return store
    }

    private func searching(
        _ name: String, _ query: String, _ database: Database, _ byHand: FullText, atLeast least: Double
    ) throws -> Row {
        let count = bench.size(50, quick: 10)
        var found: (own: Int, byHand: Int) = (0, 0)
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            try measure { for _ in 0..<count { found.byHand = try byHand.search(query) } }
        } own: {
            try measure {
                for _ in 0..<count { found.own = try database.search("texts", for: SearchQuery(query)).all.count }
            }
        }
        try expect(min(20, found.byHand) == found.own, "\(found.own) hits, and \(found.byHand) by hand")
        return Row(
            "search: \(name)", comparison, atLeast: least,
            explanation: """
                best 20 of \(found.byHand), with their documents; by hand: FTS4, ranked by BM25 from matchinfo, numbers alone
                """)
    }

    /// Searching again for each letter of a word, as a search field does.
    private func typing(_ word: String, in database: Database) throws -> Row {
        let count = bench.size(20, quick: 5)
        var slowest: [Double] = []
        for _ in 0..<bench.settings.roundCount {
            let times = try (1...word.count).map { length in
                let query = SearchQuery("\(word.prefix(length))*")
                return try measure { for _ in 0..<count { _ = try database.search("texts", for: query).all } }.time
            }
            slowest.append((times.max() ?? .zero).seconds / Double(count) * 1e6)
        }
        return Row(
            "search: as it is typed", slowest, .microseconds, .atMost(10_000),
            explanation: "the slowest letter of a word, best 20 of what begins so, with their documents")
    }

    /// Without pages that are free, or stand in the write-ahead log.
    private func size(of database: Database) throws -> Int {
        try database.compact()
        let path = database.url
        let names = FileManager.default.enumerator(atPath: path.path)
        var size = 0
        while let name = names?.nextObject() as? String {
            guard name.hasSuffix(".sqlite3") || name.hasSuffix("-wal") else { continue }
            size +=
                try FileManager.default.attributesOfItem(atPath: path.appending(path: name).path)[.size] as? Int ?? 0
        }
        return size
    }
}

/// FTS4 by hand, and the owner of what it keeps.
@safe private final class FullText {
    private let store: OpaquePointer

    init(_ path: String, _ hexKey: String, cacheByteCount: Int) throws {
        guard let store = unsafe full_text_new(path, hexKey, Int32(cacheByteCount / 1_024)) else {
            throw Failure("FTS4 by hand can't be had")
        }
        unsafe self.store = store
    }

    deinit { unsafe full_text_free(store) }

    func transaction(_ body: () throws -> Void) throws {
        try expect(unsafe full_text_begin(store), "no transaction by hand")
        try body()
        try expect(unsafe full_text_commit(store), "no commit by hand")
    }

    func insert(_ text: String) throws {
        var text = text
        let isFine = text.withUTF8 { bytes in
            unsafe bytes.withMemoryRebound(to: CChar.self) { unsafe full_text_insert(store, $0.baseAddress, $0.count) }
        }
        try expect(isFine, "no insert by hand")
    }

    func search(_ query: String) throws -> Int {
        var best = [Int64](repeating: 0, count: 20)
        let count = unsafe full_text_search(store, query, &best, 20)
        try expect(count >= 0, "no search by hand")
        return count
    }
}
