internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import Synchronization

/// One revision that a commit added to the database, or that became the current one since it purged others, or one document
/// that it purged.
public struct DatabaseChange: Sendable {
    /// The document's id.
    public let documentID: String

    /// The revision that was added; nil when the document was purged.
    public let revisionID: RevisionID?

    /// The revision's number in the order in which the database got them. A purge has none of its own, and says the last one
    /// used before it.
    public let sequence: Int

    /// Whether the revision deletes the document.
    public let isDeletion: Bool

    /// Whether the revision was the current one when it was added. False for a losing branch and for a purge.
    public let isCurrentRevision: Bool

    /// Whether the document had conflicting revisions then: two or more that nobody has replaced or deleted.
    public let isInConflict: Bool

    /// Whether the revision came from a peer, and not from a save in this process.
    public let isFromPeer: Bool

    /// The database that a pull brought the revision from: the replication's `remoteURL`, without name and password. Nil for
    /// revisions that were saved here, that a peer pushed, or that `putExistingRevision` was given.
    public let source: String?

    /// Whether the document was purged: it is gone as if it had never been there, and no peer will learn of it.
    public var isPurge: Bool { revisionID == nil }

    init(
        documentID: String, revisionID: RevisionID?, sequence: SequenceNumber, isDeletion: Bool = false,
        isCurrentRevision: Bool = false, isInConflict: Bool = false, isFromPeer: Bool = false,
        source: String? = nil
    ) {
        self.documentID = documentID
        self.revisionID = revisionID
        self.sequence = sequence.value
        self.isDeletion = isDeletion
        self.isCurrentRevision = isCurrentRevision
        self.isInConflict = isInConflict
        self.isFromPeer = isFromPeer
        self.source = source
    }
}

extension DatabaseChange: Equatable {
    /// Whether both say the same of the same document: one whose id has the same bytes.
    public static func == (left: DatabaseChange, right: DatabaseChange) -> Bool {
        left.documentID.utf8.elementsEqual(right.documentID.utf8) && left.revisionID == right.revisionID
            && left.sequence == right.sequence && left.isDeletion == right.isDeletion
            && left.isCurrentRevision == right.isCurrentRevision && left.isInConflict == right.isInConflict
            && left.isFromPeer == right.isFromPeer && left.source == right.source
    }
}

/// A notification to observers of a database: a commit, or the fact that they missed some.
public enum DatabaseChanges: Sendable, Equatable {
    /// What one commit of an outermost transaction changed, in the order in which it did. Never empty.
    case committed([DatabaseChange])

    /// Commits came faster than they were taken, and those after this sequence were dropped.
    ///
    /// ``Database/changes(since:options:)`` says what they changed, but for purges, which leave nothing. It may bring some
    /// that are reported once more afterwards.
    case missed(since: Int)

    /// The commit's changes, a document's revision each; none where commits were missed. Not ``Database/changes``, whose
    /// elements these are.
    public var changes: [DatabaseChange] {
        if case .committed(let changes) = self { changes } else { [] }
    }
}

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

/// Knows how many documents there are, once they were counted: commits say how many came and went.
final class DocumentCounter: Sendable {
    private struct State {
        var count: Int?
        /// The last sequence that was in use at the last commit that was noted, or one before it was rolled back.
        var lastSequence: SequenceNumber
        var commitNumber = 0
        /// Whether a commit may be under way that purges. It can be read before it is noted, and no sequence tells.
        var isPurging = false
    }

    private let state: Lock<State>

    /// - Parameter lastSequence: the last sequence in use.
    init(lastSequence: SequenceNumber) { state = Lock(State(lastSequence: lastSequence)) }

    /// The number of documents at the last commit, if it is known.
    var known: Int? { state.withLock(\.count) }

    /// Called by the writer right before a commit that purges documents. Until a commit is noted no count is kept.
    func willPurge() {
        state.withLock { state in
            state.count = nil
            state.isPurging = true
        }
    }

    /// Called by the writer right after each commit.
    ///
    /// - Parameter hasPurged: whether documents went without a new sequence. They are counted again then.
    func note(documentDelta: Int, lastSequence: SequenceNumber, hasPurged: Bool) {
        state.withLock { state in
            state.count = hasPurged ? nil : state.count.map { $0 + documentDelta }
            state.lastSequence = lastSequence
            state.commitNumber += 1
            state.isPurging = false
        }
    }

    /// The number of documents.
    ///
    /// A commit can be read an instant before it is noted. Whoever has seen such a one must not be given the count before
    /// it, and a count with it must not be kept, since it will be noted yet: the sequence tells, or ``willPurge()``.
    ///
    /// - Parameters:
    ///   - lastSequence: reads the last sequence in use.
    ///   - scan: counts the documents, and reads the last sequence in the same snapshot.
    func count(
        lastSequence: () throws(CofferError) -> SequenceNumber,
        scan: () throws(CofferError) -> (count: Int, lastSequence: SequenceNumber)
    ) throws(CofferError) -> Int {
        let seen = try lastSequence()
        let before = state.withLock { $0 }
        if let count = before.count, seen <= before.lastSequence { return count }
        let (count, last) = try scan()
        state.withLock { state in
            let isLast = state.commitNumber == before.commitNumber && last <= state.lastSequence
            if isLast && !state.isPurging { state.count = count }
        }
        return count
    }
}

extension Storage {
    /// How many documents are not deleted, as ``read(_:)`` would find.
    func documentCount() throws(CofferError) -> Int {
        try checkUsable()
        let withinTransaction = try ifWriting { (writer) throws(CofferError) in
            let changes = writer.state.changes
            if let known = counter.known, !changes.hasPurged { return known + changes.documentDelta }
            return try read { (tables) throws(CofferError) in try tables.documentCount() }
        }
        if let withinTransaction { return withinTransaction }
        return try counter.count(
            lastSequence: { () throws(CofferError) in
                try read { (tables) throws(CofferError) in try tables.lastSequence() }
            },
            scan: { () throws(CofferError) in
                try read { (tables) throws(CofferError) in (try tables.documentCount(), try tables.lastSequence()) }
            })
    }
}
