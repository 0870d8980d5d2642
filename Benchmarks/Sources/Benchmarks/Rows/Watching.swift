internal import Coffer
internal import Foundation
internal import Synchronization

/// What a save costs while somebody is told of it, against one that nobody is told of.
struct Watching {
    private let bench: Bench
    /// Saves in one round, each a commit of its own.
    private let count: Int

    init(_ bench: Bench) {
        self.bench = bench
        count = bench.size(5_000, quick: 500)
    }

    func row() throws -> Row {
        bench.say("watching …")
        let database = try bench.newStore(durability: .relaxed)
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            try measure { try save(to: database) }
        } own: {
            let told = Atomic(0)
            let isOver = DispatchSemaphore(value: 0)
            return try measure {
                let token = database.addChangeListener { [count] commit in
                    if told.add(commit.changes.count, ordering: .relaxed).newValue == count { isOver.signal() }
                }
                try save(to: database)
                isOver.wait()
                token.remove()
            }
        }
        try database.close()
        return Row(
            "watching: a save that is reported", processorTime: comparison, atMost: 1.5,
            explanation: """
                saving a document, each in a commit of its own that is not synced, while one listener is called with all of \
                them, against the same without one
                """)
    }

    private func save(to database: Database) throws {
        for number in 0..<count { try database.save(json: Data(#"{"number":\#(number)}"#.utf8)) }
    }
}
