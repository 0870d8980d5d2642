internal import CofferRecords

/// What the transaction under way has changed so far, for those who will be told when it is committed.
///
/// Notes each change only while somebody watches; otherwise it counts them.
struct PendingChanges {
    /// Whether changes are noted.
    var isRecording = false

    /// How much the number of documents that are not deleted has changed.
    private(set) var documentDelta = 0

    /// Whether documents were purged, in what is left of the transaction or in what was rolled back.
    private(set) var hasPurged = false

    /// The changes, or the first of them: see ``limit``.
    private var changes: [DatabaseChange] = []
    private var count = 0
    private var sequenceBefore: SequenceNumber = 0

    /// About how many bytes a compaction could give back that it could not before.
    private(set) var reclaimableByteCount = 0

    /// What there was as each nested transaction began.
    private var marks: [(count: Int, documentDelta: Int, reclaimableByteCount: Int)] = []

    /// More changes than that in one transaction are not kept: its watchers must look themselves.
    static let limit = 100_000

    /// Called as a transaction begins, nested or not.
    mutating func begin(lastSequence: SequenceNumber) {
        if marks.isEmpty {
            sequenceBefore = lastSequence
            changes = []
            count = 0
            documentDelta = 0
            hasPurged = false
            reclaimableByteCount = 0
        }
        marks.append((count, documentDelta, reclaimableByteCount))
    }

    /// Called as the innermost transaction is committed.
    mutating func commit() { marks.removeLast() }

    /// Called as the innermost transaction is rolled back.
    mutating func rollBack() {
        (count, documentDelta, reclaimableByteCount) = marks.removeLast()
        if changes.count > count { changes.removeSubrange(count...) }
    }

    /// - Parameter documentDelta: how much the number of documents changes with it.
    mutating func note(_ change: @autoclosure () -> DatabaseChange, documentDelta: Int, isPurge: Bool = false) {
        if isRecording && count < Self.limit { changes.append(change()) }
        count += 1
        self.documentDelta += documentDelta
        if isPurge { hasPurged = true }
    }

    mutating func noteReclaimable(_ byteCount: Int) {
        reclaimableByteCount = reclaimableByteCount.addingSaturated(byteCount)
    }

    /// The commit of the outermost transaction; nil when it changed no document.
    mutating func takeCommit() -> Commit? {
        defer { changes = [] }
        guard count > 0 else { return nil }
        return Commit(changes: changes, isComplete: changes.count == count, sequenceBefore: sequenceBefore)
    }
}

/// What one outermost transaction changed.
struct Commit: Sendable {
    var changes: [DatabaseChange]
    /// Whether `changes` has all of them. Not so where nobody watched yet as it began, or where there are too many.
    var isComplete: Bool
    /// The last sequence that was used before.
    var sequenceBefore: SequenceNumber
}
