internal import Coffer
internal import Foundation

/// What a document costs in a store of a thousand and in one of a million, and what opening, listing and a change of the key
/// cost there.
struct DocumentGrowth {
    private let bench: Bench
    private let name: String
    /// What is written, over and over.
    private let bodies: [Data]
    private let sizes: [Int]

    init(_ bench: Bench) throws {
        self.bench = bench
        name = bench.newName("growing")
        bodies = try DocumentSet(count: 1_000).all.map(\.json)
        sizes = bench.settings.isQuick ? [1_000, 20_000] : [1_000, 10_000, 100_000, 1_000_000]
    }

    private static let small = 200

    func findings() throws -> Findings {
        var figures: [String: [Series.Point]] = [:]
        let byHand = try HandDocuments(
            new: bench.newPath("growing"), cacheByteCount: DatabaseOptions().cacheByteCount, isDurable: true)
        var count = 0
        for size in sizes {
            bench.say("a store of \(size) documents …")
            var database = try open()
            while count < size {
                let end = min(size, count + 10_000)
                try database.inTransaction { for number in count..<end { try save(number, to: database) } }
                try byHand.transaction { for number in count..<end { try byHand.insert(document(number)) } }
                count = end
            }
            try database.close()

            var opening: [Double] = []
            for _ in 0..<bench.size(11, quick: 5) {
                var opened: Database?
                let cost = try measure {
                    opened = try open()
                    try expect(opened?.document(withID: Self.id(size / 2)).currentRevision != nil, "no document")
                }
                opening.append(cost.time.seconds * 1e3)
                try opened?.close()
            }
            let memory = try Double(Child.listDocuments.peakMemory(store: name, in: bench.directory)) / 1_048_576
            let changing = try Double(Child.changeKey.peakMemory(store: name, in: bench.directory)) / 1_048_576

            database = try open()
            // First, so that the cache holds what it can before documents are read at random.
            let listing = try (0..<3).map { _ in try list(database, of: size) }
            let reading = try (0..<3).map { seed in
                try read(from: size, seed: seed) { try database.document(withID: $0).currentRevision?.json.count ?? 0 }
            }
            let readingByHand = try (0..<3).map { try read(from: size, seed: $0) { try byHand.read($0) } }
            var inserting: [Double] = []
            var insertingByHand: [Double] = []
            for _ in 0..<bench.size(20, quick: 10) {
                let numbers = count..<count + Self.small
                inserting.append(
                    try microseconds(of: Self.small) {
                        try database.inTransaction { for number in numbers { try save(number, to: database) } }
                    })
                insertingByHand.append(
                    try microseconds(of: Self.small) {
                        try byHand.transaction { for number in numbers { try byHand.insert(document(number)) } }
                    })
                count += Self.small
            }
            try database.close()
            for (what, values) in [
                ("read", reading), ("list", listing), ("insert", inserting), ("open", opening), ("memory", [memory]),
                ("change", [changing]), ("read by hand", readingByHand), ("insert by hand", insertingByHand),
            ] { figures[what, default: []].append(Series.Point(at: size, values)) }
        }
        return Findings(series: series(figures))
    }

    private func series(_ figures: [String: [Series.Point]]) -> [Series] {
        func series(
            _ name: String, _ what: String, _ unit: String, atMost most: Double, _ explanation: String
        ) -> Series {
            Series(
                name, .documents, unit: unit, points: figures[what] ?? [], byHand: figures["\(what) by hand"] ?? [],
                target: .atMost(most), explanation: explanation)
        }
        let cached = "; the default cache of 64 MiB holds about 100,000"
        return [
            series(
                "insert a document", "insert", "µs CPU", atMost: 3,
                "processor time of each of \(Self.small) in a durable transaction, ids at random\(cached)"),
            series("read a document at random", "read", "µs CPU", atMost: 3, "JSON bytes, each call its own\(cached)"),
            series(
                "list a document", "list", "µs CPU", atMost: 3,
                "with its JSON, in the order of ids, up to 100,000 of them; documents lie in the order of their saving\(cached)"
            ),
            series(
                "open and read one", "open", "ms", atMost: 1.5, "after a close, files in the page cache, by the clock"),
            series(
                "memory, all listed", "memory", "MiB", atMost: 8,
                "peak resident set of a process that lists all documents once: it fills its cache, and no more"),
            series(
                "memory, key changed", "change", "MiB", atMost: 8,
                "peak resident set of a process that changes the key of the store"),
        ]
    }

    // MARK: Work

    private func open() throws -> Database { try Bench.openStore(named: name, in: bench.directory) }

    /// 22 characters that say nothing of the number's neighbours.
    private static func id(_ number: Int) -> String {
        var random = SplitMix(state: UInt64(number))
        return random.word(22)
    }

    private func document(_ number: Int) -> DocumentSet.Document {
        DocumentSet.Document(id: Self.id(number), json: bodies[number % bodies.count])
    }

    private func save(_ number: Int, to database: Database) throws {
        let document = document(number)
        try database.save(json: document.json, withID: document.id)
    }

    /// Reads documents at random; `read` says how many bytes one has.
    private func read(from size: Int, seed: Int, _ read: (String) throws -> Int) throws -> Double {
        let count = bench.size(10_000, quick: 2_000)
        var random = SplitMix(state: UInt64(seed))
        let numbers = (0..<count).map { _ in Int(random.next() % UInt64(size)) }
        let ids = numbers.map(Self.id)
        var sum = 0
        let cost = try microseconds(of: count) { for id in ids { sum += try read(id) } }
        try expect(sum == numbers.reduce(0) { $0 + bodies[$1 % bodies.count].count }, "other documents")
        return cost
    }

    /// Of processor time, for each of them.
    private func microseconds(of count: Int, _ work: () throws -> Void) rethrows -> Double {
        try measure(work).processorTime.seconds / Double(count) * 1e6
    }

    private func list(_ database: Database, of size: Int) throws -> Double {
        var options = AllDocumentsOptions()
        options.limit = min(size, 100_000)
        let repetitions = max(1, 10_000 / size)
        var count = 0
        let cost = try microseconds(of: repetitions * min(size, 100_000)) {
            for _ in 0..<repetitions {
                try database.allDocuments(options).forEach { count += try $0.json.isEmpty ? 0 : 1 }
            }
        }
        try expect(count == repetitions * min(size, 100_000), "\(count) documents were listed")
        return cost
    }
}
