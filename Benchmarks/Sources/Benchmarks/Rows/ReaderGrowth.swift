internal import Coffer
internal import Foundation
internal import Synchronization

/// How many documents a second threads read together, beside one that writes without a pause.
struct ReaderGrowth {
    private let bench: Bench
    private let set: DocumentSet
    private let database: Database

    init(_ bench: Bench) throws {
        self.bench = bench
        set = try bench.documents(isInOrder: false)
        database = try bench.newStore()
        for start in stride(from: 0, to: set.all.count, by: 10_000) {
            try database.inTransaction {
                for document in set.all[start..<start + 10_000] {
                    try database.save(json: document.json, withID: document.id)
                }
            }
        }
    }

    func findings() throws -> Findings {
        defer { try? database.close() }
        let counts = [1, 2, 4, 8]
        var rates: [Int: [Double]] = [:]
        var saves: [Double] = []
        // In turn, so that the machine is about the same for all of them.
        for round in 0...3 {
            for count in counts {
                bench.say("\(count) readers beside a writer …")
                let (reads, saved) = try run(readers: count)
                guard round > 0 else { continue }
                rates[count, default: []].append(reads)
                saves.append(saved)
            }
        }
        return Findings(series: [
            Series(
                "documents read a second", .readers, unit: "a second",
                points: counts.map { Series.Point(at: $0, rates[$0] ?? []) }, target: .atLeast(0.8),
                explanation: """
                    all threads together, JSON bytes at random of \(set.all.count) documents, on \
                    \(bench.machine.processorCount) processors, beside one thread that saved \(Int(saves.median)) documents a \
                    second, each in a durable transaction of its own. The target says that more readers are no harm
                    """)
        ])
    }

    /// Reads and saves a second.
    private func run(readers count: Int) throws -> (reads: Double, saves: Double) {
        let isOver = Atomic(false)
        let reads = Atomic(0)
        let saves = Atomic(0)
        let failures = Atomic(0)
        let group = DispatchGroup()
        let (database, all) = (database, set.all)
        func start(_ body: @escaping @Sendable () throws -> Void) {
            group.enter()
            Thread {
                do { try body() } catch { failures.add(1, ordering: .relaxed) }
                group.leave()
            }.start()
        }
        let time = ContinuousClock().measure {
            start {
                while !isOver.load(ordering: .relaxed) {
                    try database.save(json: all[0].json)
                    saves.add(1, ordering: .relaxed)
                }
            }
            for reader in 0..<count {
                start {
                    var random = SplitMix(state: UInt64(reader))
                    while !isOver.load(ordering: .relaxed) {
                        let document = all[Int(random.next() % UInt64(all.count))]
                        let json = try database.document(withID: document.id).currentRevision?.json
                        try expect(json?.count == document.json.count, "another document")
                        reads.add(1, ordering: .relaxed)
                    }
                }
            }
            Thread.sleep(forTimeInterval: bench.settings.isQuick ? 0.3 : 1.5)
            isOver.store(true, ordering: .relaxed)
            group.wait()
        }
        try expect(failures.load(ordering: .relaxed) == 0, "reading or saving failed")
        return (
            Double(reads.load(ordering: .relaxed)) / time.seconds, Double(saves.load(ordering: .relaxed)) / time.seconds
        )
    }
}
