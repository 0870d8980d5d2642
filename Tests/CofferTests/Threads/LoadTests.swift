import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferRecords

/// Everything at once, for as long as it takes.
@Suite("Load", .serialized, .timeLimit(.minutes(30)))
struct LoadTests {
    let stores = TestStores()

    @Test("Under the load of two writers and many readers counts never go back, and watchers miss nothing")
    func writersAndReaders() async throws {
        let database = try stores.open { $0.compactionPolicy.leastByteCount = 500_000 }
        let told = Told()
        database.addChangeListener { told.note($0) }
        let changes = database.changes
        let watcher = Task {
            var sequences: [Int] = []
            for await commit in changes { sequences += commit.changes.map(\.sequence) }
            return sequences
        }
        try load(database)
        #expect(try database.documentCount == 20_000)
        #expect(try database.allDocuments().all.count == 20_000)
        #expect(told.wait(for: 200))
        #expect(told.commits.allSatisfy { $0.changes.count == 100 })
        try await database.close()
        #expect(await watcher.value == Array(1...20_000))
    }

    private func load(_ database: Database) throws {
        let writing = Shared(2)
        let tally = Tally()
        try onThreads(8) { thread in
            if thread < 2 {
                defer { writing.value -= 1 }
                for transaction in 0..<100 {
                    try database.inTransaction {
                        for number in 0..<100 {
                            let id = "t\(thread) \(transaction) \(number)"
                            try database.save(json: json(number, byteCount: 300), withID: id)
                        }
                        try database.saveLocalDocument(["n": .number(.init(Int64(transaction)))], withID: "\(thread)")
                    }
                }
                return
            }
            var (count, sequence, local) = (0, 0, -1)
            while writing.value > 0 {
                switch thread {
                case 2, 3:
                    let now = try database.documentCount
                    if now < count || now % 100 != 0 { throw CofferError(.damaged, "\(now) after \(count)") }
                    count = now
                case 4:
                    let now = try database.storage.read { (tables) throws(CofferError) in try tables.documentCount() }
                    if now < count || now % 100 != 0 { throw CofferError(.damaged, "\(now) counted after \(count)") }
                    count = now
                case 5:
                    let last = try database.changes(since: sequence).all.last?.sequence ?? sequence
                    if last < sequence { throw CofferError(.damaged, "\(last) after \(sequence)") }
                    sequence = last
                case 6:
                    let now: Int = try database.localDocument(withID: "0")?["n"] ?? -1
                    if now < local { throw CofferError(.damaged, "\(now) after \(local)") }
                    local = now
                    // What the local document says is there is there, whole.
                    let last = "t0 \(local) 99"
                    if local >= 0, try database[last]?["n"] != 99 { throw CofferError(.damaged, last) }
                default:
                    try database.compact()
                    Thread.sleep(forTimeInterval: 0.05)
                }
                tally.count("\(thread)")
            }
        }
        // Each got its turn.
        for thread in 2..<8 { #expect(tally["\(thread)"] > 0, "thread \(thread)") }
    }
}
