internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// What a writer knows of the transaction under way, and of the database.
///
/// A class, since the writer is lent to be read alone. It leads to no connection.
final class WriterState {
    init(_ counts: WriterCounts) throws(CofferError) {
        digest = try StreamingDigest(.sha256)
        lastSequence = counts.lastSequence
        reclaimable = ReclaimableSpace(counts)
    }

    /// What a writer that takes the place of this one begins with, between transactions.
    var counts: WriterCounts {
        WriterCounts(
            lastSequence: lastSequence, reclaimableByteCount: reclaimable.byteCount,
            notedReclaimableByteCount: reclaimable.notedByteCount,
            nextCompactionByteCount: reclaimable.nextCompactionByteCount)
    }

    // MARK: Nesting

    /// How many transactions are nested, 0 outside of one.
    private(set) var depth = 0

    /// Why the transactions from `depth` inwards can only be rolled back.
    private var failure: (error: CofferError, depth: Int)?

    /// What takes back in memory what the transaction under way did there, and how much of it there was as each nested one
    /// began.
    private var undoing: [() -> Void] = []
    private var undoingCounts: [Int] = []

    /// Called as a transaction begins, nested or not.
    func begin() {
        undoingCounts.append(undoing.count)
        changes.begin(lastSequence: lastSequence)
        depth += 1
    }

    /// Called as the innermost transaction is committed.
    func commit() {
        undoingCounts.removeLast()
        changes.commit()
        depth -= 1
        if depth == 0 { undoing = [] }
    }

    /// Called as the innermost transaction is rolled back.
    func rollBack() {
        depth -= 1
        changes.rollBack()
        let undone = undoing[undoingCounts.removeLast()...]
        undoing.removeLast(undone.count)
        for undo in undone.reversed() { undo() }
    }

    /// Has `undo` run on this thread if the innermost transaction is rolled back, or one around it.
    func whenRolledBack(_ undo: @escaping () -> Void) {
        if depth > 0 { undoing.append(undo) }
    }

    // MARK: Failures

    /// Notes why the innermost transaction can only be rolled back; all of them, if SQLite is in none any more.
    func noteFailure(_ error: CofferError, isInTransaction: Bool) {
        failure = (error, depth: isInTransaction ? depth : 1)
    }

    /// - Throws: why the transaction under way can only be rolled back, if so.
    func checkNotFailed() throws(CofferError) {
        if let failure { throw failure.error }
    }

    /// Called as an outermost transaction is about to begin.
    func forgetFailure() { failure = nil }

    /// Called when a transaction inside of the one under way was rolled back: what was half done in it is undone.
    func forgetFailureOfInner() {
        if let failure, failure.depth > depth { self.failure = nil }
    }

    /// Whether a read or write of the file failed in the transaction, so that nobody knows what the disk holds.
    var hasFailedIO: Bool { failure?.error.code == .ioFailed }

    // MARK: Functions of the app's

    /// Whether a function of the app's is looking at what is about to be changed: nothing else is changed meanwhile.
    private(set) var isInFunction = false

    /// Runs a function of the app's, or what reads a document as one would: within it nothing can be saved.
    func asFunction<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        let isInAnother = isInFunction
        isInFunction = true
        defer { isInFunction = isInAnother }
        return try body()
    }

    // MARK: What has changed

    /// The highest sequence that is in use.
    private(set) var lastSequence: SequenceNumber

    /// The sequence that the next revision gets.
    var nextSequence: SequenceNumber { lastSequence.next }

    /// The same, from here on that of a revision; nil where none is left.
    func takeSequence() -> SequenceNumber? {
        let sequence = nextSequence
        guard Schema.counts.contains(sequence) else { return nil }
        lastSequence = sequence
        return sequence
    }

    /// What those who watch will be told of the transaction under way.
    var changes = PendingChanges()

    /// Notes a revision that was added, for those who watch and for the number of documents.
    ///
    /// - Parameters:
    ///   - before: the flags that the document had; nil when it is new.
    ///   - after: what the document's row says with the revision.
    ///   - source: the database that a pull brought it from.
    func noteSaved(
        _ revisionID: RevisionID, _ sequence: SequenceNumber, isDeletion: Bool, of document: DocumentID,
        before: DocumentFlags?, after: DocumentRow, isFromPeer: Bool = false, source: String? = nil
    ) {
        changes.note(
            DatabaseChange(
                documentID: document.text, revisionID: revisionID, sequence: sequence, isDeletion: isDeletion,
                isCurrentRevision: after.winner == sequence, isInConflict: after.flags.contains(.isInConflict),
                isFromPeer: isFromPeer, source: source),
            documentDelta: after.flags.documentCount - (before?.documentCount ?? 0),
            // A revision that was there before counts now: another one was purged.
            isPurge: sequence != lastSequence)
    }

    /// Notes a document that was purged.
    ///
    /// - Parameter before: the flags that it had.
    func notePurged(_ document: DocumentID, before: DocumentFlags) {
        changes.note(
            DatabaseChange(documentID: document.text, revisionID: nil, sequence: lastSequence),
            documentDelta: -before.documentCount, isPurge: true)
    }

    /// Whether the transaction under way, or one that it took back, has changed when documents expire.
    var hasChangedExpirations = false

    /// About how much a compaction would give back.
    var reclaimable: ReclaimableSpace

    // MARK: What is known of the database

    /// Frames in the log from which a checkpoint that readers kept from being complete is tried again.
    var nextCheckpoint = 0

    /// The numbers of rows that it has given.
    var numbers = GivenNumbers()

    /// Reused for each revision's id: setting a digest up costs more than a short message.
    var digest: StreamingDigest

    /// What was read of the database, to be kept until it changes.
    private var knownDepth: Int?
    private var knownPeers: PeerKnowledge?
    private var hasIndexTables: Bool?

    /// How many revisions of one line are kept.
    func revisionTreeDepth(in tables: borrowing Snapshot) throws(CofferError) -> Int {
        if let knownDepth { return knownDepth }
        let depth = try tables.revisionTreeDepth()
        knownDepth = depth
        return depth
    }

    /// What peers are known to have.
    func peers(in tables: borrowing Snapshot) throws(CofferError) -> PeerKnowledge {
        if let knownPeers { return knownPeers }
        let peers = try tables.peerKnowledge()
        knownPeers = peers
        return peers
    }

    /// Whether the tables of indexes are there, and of this version.
    func indexTablesAreThere(in tables: borrowing Snapshot) throws(CofferError) -> Bool {
        if let hasIndexTables { return hasIndexTables }
        let areThere = try tables.indexes.areUsable()
        hasIndexTables = areThere
        return areThere
    }

    // The state outlives the transaction; what is referred to weakly is slower to pass around for good.

    /// Notes how many revisions of one line are kept, once the transaction under way has written it.
    func noteRevisionTreeDepth(_ depth: Int) {
        let before = knownDepth
        knownDepth = depth
        whenRolledBack { [unowned self] in knownDepth = before }
    }

    /// Notes that the transaction under way has written what a peer has.
    func notePeersChanged() {
        knownPeers = nil
        whenRolledBack { [unowned self] in knownPeers = nil }
    }

    /// Notes that the transaction under way has made the tables of indexes.
    func noteIndexTablesMade() {
        whenRolledBack { [unowned self] in hasIndexTables = nil }
        hasIndexTables = true
    }
}

extension DocumentFlags {
    /// What a document with these flags adds to the number of documents.
    fileprivate var documentCount: Int { contains(.isDeleted) ? 0 : 1 }
}

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
