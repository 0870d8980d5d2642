/// What the lines of a file of receipts come to.
struct ReceiptHistory: Sendable {
    struct Pending: Sendable {
        let run: String
        /// What the run is part of.
        let rotation: String?
        let generation: Int
    }

    /// Stores that were begun, of which nothing is known since.
    private(set) var pending: [ReceiptStore: Pending] = [:]

    /// Of the last rotation, the stores that have the new key alone, and the generation that it made.
    private(set) var settled: [ReceiptStore: Int] = [:]

    /// The last rotation.
    private(set) var rotation: String?

    private(set) var runCount = 0
    private(set) var rotatedCount = 0
    private(set) var failedCount = 0

    mutating func add(_ record: ReceiptRecord) {
        switch record.type {
        case .run:
            runCount += 1
            if record.rotation != rotation { settled = [:] }
            rotation = record.rotation
        case .begun:
            guard let store = record.store, let generation = record.generation else { return }
            pending[store] = Pending(run: record.run, rotation: rotation, generation: generation)
        case .done:
            if record.outcome == "failed" { failedCount += 1 }
            guard let store = record.store else { return }
            if record.outcome == "rotated" || record.completes != nil { rotatedCount += 1 }
            if let begun = pending[store],
                record.outcome == "rotated" || [record.run, record.completes].contains(begun.run)
            {
                pending[store] = nil
            }
            if record.isSettled { settled[store] = record.generation }
        case .end: break
        }
    }

    /// The run whose change of a store was found to have been made; nil if none was begun, or nothing came of it.
    ///
    /// - Parameter generation: what the store has now.
    func unfinishedRun(of store: ReceiptStore, at generation: Int) -> String? {
        pending[store].flatMap { $0.generation + 1 == generation ? $0.run : nil }
    }
}
