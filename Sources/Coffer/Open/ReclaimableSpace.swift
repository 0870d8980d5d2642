internal import CofferRecords
internal import CofferSealing

/// About how many bytes a compaction would give back. An estimate: looking would cost more than it is worth.
struct ReclaimableSpace {
    /// How many.
    private(set) var byteCount: Int
    /// What the database has noted of it.
    private(set) var notedByteCount: Int
    /// How many there must be before a compaction is tried again.
    var nextCompactionByteCount: Int

    /// What a document holds that nobody has looked at.
    static let usualByteCount = 500

    init(_ counts: WriterCounts) {
        byteCount = counts.reclaimableByteCount
        notedByteCount = counts.notedReclaimableByteCount
        nextCompactionByteCount = counts.nextCompactionByteCount
    }

    mutating func add(_ newByteCount: Int) { byteCount = byteCount.addingSaturated(newByteCount) }

    /// Has the database note it, if that is much more or much less than what it says.
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
