internal import CofferRecords
internal import CofferSealing

/// About how many bytes a compaction would give back. An estimate: looking would cost more than it is worth.
struct ReclaimableSpace {
    private(set) var byteCount: Int
    /// The estimate that the database has noted.
    private(set) var notedByteCount: Int
    /// The estimate from which on a compaction is tried again.
    var nextCompactionByteCount: Int

    /// What a document holds that nobody has looked at.
    static let usualByteCount = 500

    init(_ counts: WriterCounts) {
        byteCount = counts.reclaimableByteCount
        notedByteCount = counts.notedReclaimableByteCount
        nextCompactionByteCount = counts.nextCompactionByteCount
    }

    mutating func add(_ newByteCount: Int) { byteCount = byteCount.addingSaturated(newByteCount) }

    /// Has the database note the estimate, if that differs much from what it has noted.
    mutating func note(in records: borrowing Change) throws(CofferError) {
        guard byteCount >> 20 != notedByteCount >> 20 else { return }
        try records.compaction.note(reclaimable: byteCount)
        notedByteCount = byteCount
    }

    /// Begins to count again: everything was given back.
    mutating func forget(in records: borrowing Change) throws(CofferError) {
        byteCount = 0
        nextCompactionByteCount = 0
        if try records.snapshot.compaction.reclaimable() > 0 { try records.compaction.note(reclaimable: 0) }
        notedByteCount = 0
    }
}

/// When a store is compacted automatically.
struct CompactionPolicy: Sendable {
    /// The fewest bytes that make it worth while.
    var leastByteCount = 16 << 20
    /// The part of the database that they must be, so that a large one is not gone through for little: one in so many.
    var divisor = 8

    func isEnough(_ byteCount: Int, databaseByteCount: Int) -> Bool {
        byteCount >= max(leastByteCount, databaseByteCount / divisor)
    }
}
