internal import Coffer
internal import Foundation
internal import Synchronization

/// Sealed pages beside SQLCipher, through the same calls in one run: how many times less processor time they take.
struct EngineRows {
    private let bench: Bench

    init(_ bench: Bench) { self.bench = bench }

    /// What "not slower" means: no more than a busy machine makes of two equal sides.
    private static let notSlower = 0.95

    func rows() throws -> [Row] { try large() + warm() + readers() }

    // MARK: More documents than the cache holds

    private func large() throws -> [Row] {
        let count = bench.size(1_000_000, quick: 50_000)
        let cache = bench.settings.isQuick ? 4 << 20 : DatabaseOptions().cacheByteCount
        bench.say("\(count) documents on both engines …")
        let stores = try EngineStores(
            bench, "large", count: count, cacheByteCount: cache, includesUnencrypted: true)
        defer { try? stores.close() }
        let reads = bench.size(20_000, quick: 5_000)
        bench.say("reading at random …")
        let reading = try stores.compare(bench) { store, round in
            try measure { try store.read(reads, of: count, seed: UInt64(round)) }
        }
        // In how much less than SQLCipher's time it can be done at all, by SQLite's own reading of pages.
        let bare = try stores.compare(bench, with: stores.unencrypted) { store, round in
            try measure { try store.read(reads, of: count, seed: UInt64(round)) }
        }
        bench.say("inserting …")
        let inserting = try stores.compare(bench) { store, _ in
            try measure { try store.insert(bench.size(10_000, quick: 2_000), perTransaction: 1_000) }
        }
        let memory = try [stores.sqlCipher, stores.sealed].map { store in
            try store.database.close()
            defer { try? store.reopen() }
            return try Double(Child.listDocuments.peakMemory(store: store.name, in: bench.directory)) / 1_048_576
        }
        let cached = "\(count) documents of 500 bytes, ids at random, a cache of \(cache >> 20) MiB"
        return [
            Row(
                "read at random, of \(count.short)", processorTime: reading, atLeast: 2,
                explanation: """
                    \(reads) documents, JSON bytes, each call its own: most pages miss; \(cached). Without encryption it is \
                    \(bare.processorRatios.median.short) ×
                    """),
            Row(
                "insert, among \(count.short)", processorTime: inserting, atLeast: 1.2,
                explanation: "1,000 documents a durable transaction; \(cached)"),
            Row(
                "memory, \(count.short) listed", [memory[1]], .mebibytes, .atMost((memory[0] * 1.05).rounded(.up)),
                explanation: """
                    peak resident set of a process that lists all documents once, on sealed pages; SQLCipher's is \
                    \(Int(memory[0])) MiB, of which the target is 5 % more
                    """),
        ]
    }

    // MARK: What the cache holds

    private func warm() throws -> [Row] {
        let count = bench.size(100_000, quick: 10_000)
        let stores = try EngineStores(bench, "warm", count: count, cacheByteCount: DocumentSet.cacheByteCount)
        defer { try? stores.close() }
        bench.say("reading, listing and opening …")
        let reading = try stores.compare(bench) { store, round in
            try store.read(round == 1 ? count : 0, of: count, seed: 0)
            return try measure { try store.read(count / 2, of: count, seed: UInt64(round)) }
        }
        let listing = try stores.compare(bench) { store, _ in try measure { try store.list() } }
        let opening = try stores.compare(bench) { store, round in
            var sum = Cost()
            for number in 0..<bench.size(50, quick: 20) {
                try store.database.close()
                sum += try measure {
                    try store.reopen()
                    try store.read(1, of: count, seed: UInt64(number))
                }
            }
            return sum
        }
        bench.say("updating and saving …")
        let updating = try stores.compare(bench) { store, round in
            try measure { try store.update(10_000, of: count, perTransaction: 1_000, seed: UInt64(round)) }
        }
        let saving = try stores.compare(bench) { store, _ in
            try measure { try store.insert(bench.size(1_000, quick: 200), perTransaction: 1) }
        }
        return [
            Row(
                "read at random, cached", processorTime: reading, atLeast: Self.notSlower,
                explanation: "\(count / 2) of \(count) documents, which the cache holds. Not slower is the target"),
            Row(
                "list in order of ids", processorTime: listing, atLeast: Self.notSlower,
                explanation: "\(count) documents with their JSON. Not slower is the target"),
            Row(
                "open and read one", processorTime: opening, atLeast: Self.notSlower,
                explanation:
                    "with 32 bytes as the key, files in the page cache; closing is not counted. Not slower is the target"
            ),
            Row(
                "update 10,000", processorTime: updating, atLeast: 1.5,
                explanation: "of \(count) documents at random, 1,000 a durable transaction"),
            Row(
                "save one a transaction", processorTime: saving, atLeast: Self.notSlower,
                explanation: "durable, ids at random. Not slower is the target"),
            try keyChange(),
        ]
    }

    private func keyChange() throws -> Row {
        bench.say("changing the key …")
        let count = bench.size(100_000, quick: 10_000)
        let stores = try EngineStores(bench, "keys", count: count, cacheByteCount: DatabaseOptions().cacheByteCount)
        defer { try? stores.close() }
        let contents = Contents(count: bench.size(50, quick: 10), byteCount: 1_000_000)
        for store in [stores.sqlCipher, stores.sealed] { try store.attach(contents) }
        let changing = try stores.compare(bench) { store, _ in
            let key = try SymmetricKey()
            return try measure { try store.database.changeEncryptionKey(to: key) }
        }
        return Row(
            "key change", processorTime: changing, atLeast: Self.notSlower,
            explanation:
                "\(count) documents and \(contents.all.count) × 1 MB, with all of its checks. Not slower is the target")
    }

    // MARK: Threads

    private func readers() throws -> [Row] {
        let count = bench.size(100_000, quick: 20_000)
        let cache = bench.settings.isQuick ? 16 << 20 : DatabaseOptions().cacheByteCount
        let stores = try EngineStores(
            bench, "threads", count: count, cacheByteCount: cache, includesUnencrypted: true)
        defer { try? stores.close() }
        let reads = bench.size(20_000, quick: 4_000)
        bench.say("three readers beside a writer …")
        let beside = try stores.compare(bench) { store, round in
            try measure { try Self.run(store, readers: 3, reads: reads, of: count, writing: true, seed: UInt64(round)) }
        }
        let bare = try stores.compare(bench, with: stores.unencrypted) { store, round in
            try measure { try Self.run(store, readers: 3, reads: reads, of: count, writing: true, seed: UInt64(round)) }
        }
        var growths: [[Double]] = [[], []]
        for round in 0..<bench.settings.roundCount {
            bench.say("two readers and eight …")
            for (side, store) in [stores.sqlCipher, stores.sealed].enumerated() {
                let rates = try [2, 8].map { readers in
                    let time = try measure {
                        try Self.run(
                            store, readers: readers, reads: reads * 2 / readers, of: count, writing: false,
                            seed: UInt64(round))
                    }.time
                    return Double(reads * 2) / time.seconds
                }
                growths[side].append(rates[1] / rates[0])
            }
        }
        return [
            Row(
                "three readers beside a writer", processorTime: beside, atLeast: 2.5,
                explanation: """
                    each reads \(reads) of \(count) documents at random; after each 1,000 that they have read together a \
                    durable transaction updates 100. The writer's time is counted, too; a cache of \(cache >> 20) MiB. Without \
                    encryption it is \(bare.processorRatios.median.short) ×
                    """),
            Row(
                "eight readers against two", growths[1], .timesAsFast, .atLeast(1),
                explanation: """
                    documents a second on sealed pages, by the clock, on \(bench.machine.processorCount) processors; \
                    SQLCipher's is \(growths[0].median.short) ×
                    """),
        ]
    }

    /// Reads on `readers` threads, with a writer beside them that is as busy whatever the engine: it goes by what was read.
    private static func run(
        _ store: EngineStore, readers: Int, reads: Int, of count: Int, writing: Bool, seed: UInt64
    ) throws {
        let failures = Atomic(0)
        let total = Atomic(0)
        let mayWrite = DispatchSemaphore(value: 0)
        let group = DispatchGroup()
        nonisolated(unsafe) let store = store
        func start(_ body: @escaping @Sendable () throws -> Void) {
            group.enter()
            Thread {
                do { try body() } catch { failures.add(1, ordering: .relaxed) }
                group.leave()
            }.start()
        }
        for reader in 0..<readers {
            start {
                for part in 0..<reads / 100 {
                    try unsafe store.read(100, of: count, seed: seed &* 1_000 &+ UInt64(reader * reads + part))
                    let sum = total.add(100, ordering: .relaxed).newValue
                    if writing, sum.isMultiple(of: 1_000) { mayWrite.signal() }
                }
            }
        }
        if writing {
            start {
                for number in 0..<readers * (reads / 100) / 10 {
                    mayWrite.wait()
                    try unsafe store.update(
                        100, of: count, perTransaction: 100, seed: seed &* 31 &+ UInt64(number))
                }
            }
        }
        group.wait()
        try expect(failures.load(ordering: .relaxed) == 0, "reading or writing failed")
    }
}
