internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// Whoever writes: the rows, the content files that belong to them, and what is known of the transaction under way.
///
/// Can't be copied: ``WriterOwner`` has it, and lends it to whoever holds its lock.
struct Writer: ~Copyable {
    /// The rows that it reads and writes.
    let records: Change

    /// What it knows of the transaction under way, and of the database.
    let state: WriterState

    /// Where content files belong that it has rows for.
    let attachments: AttachmentStore

    /// The content files that the transaction under way will install.
    let installation: Installation

    init(_ records: consuming Change, _ counts: WriterCounts, attachments: AttachmentStore) throws(CofferError) {
        state = try WriterState(counts)
        self.attachments = attachments
        installation = Installation(attachments)
        self.records = records
    }

    /// What it reads with, in the transaction under way.
    var tables: Snapshot { _read { yield records.snapshot } }

    // MARK: Transactions

    func begin() throws(CofferError) {
        if state.depth == 0 {
            state.failure = nil
            try records.begin()
        } else {
            try checkIntact()
            try records.beginNested()
        }
        state.installCounts.append(installation.files.count)
        state.undoingCounts.append(state.undoing.count)
        state.changes.begin(lastSequence: state.lastSequence)
        state.depth += 1
    }

    /// Ends the innermost transaction, which is rolled back when that fails. The outermost makes its changes durable.
    func commit() throws(CofferError) {
        precondition(state.depth > 0, "nothing to commit")
        do throws(CofferError) {
            try checkIntact()
            if state.depth == 1 {
                try noteReclaimable()
                try noteNumbers()
                try records.commit()
            } else {
                try records.commitNested()
            }
        } catch {
            try? rollback()
            throw error
        }
        state.installCounts.removeLast()
        state.undoingCounts.removeLast()
        state.changes.commit()
        state.depth -= 1
        if state.depth == 0 { state.undoing = [] }
    }

    /// Undoes the innermost transaction.
    func rollback() throws(CofferError) {
        precondition(state.depth > 0, "nothing to roll back")
        state.depth -= 1
        installation.rollBack(to: state.installCounts.removeLast())
        state.changes.rollBack()
        let undone = state.undoing[state.undoingCounts.removeLast()...]
        state.undoing.removeLast(undone.count)
        for undo in undone.reversed() { undo() }
        // SQLite has rolled back everything on its own after some failures.
        guard records.isInTransaction else { return }
        if state.depth == 0 { return try records.rollBack() }
        do throws(CofferError) {
            try records.rollBackNested()
        } catch {
            state.failure = (error, depth: 1)
            throw error
        }
        // What was half done is undone.
        if let failure = state.failure, failure.depth > state.depth { state.failure = nil }
    }

    /// Runs a part of the transaction under way, reads included.
    ///
    /// Some failures make SQLite roll back the whole transaction on its own: also those of reads, since making room for a
    /// page may mean writing another. Whatever ran after that would be a transaction of its own, so nothing does.
    func withinTransaction<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try checkIntact()
        do throws(CofferError) {
            return try body()
        } catch {
            if !records.isInTransaction { state.failure = (error, depth: 1) }
            throw error
        }
    }

    /// Whether a read or write of the file failed in the transaction, so that nobody knows what the disk holds.
    var hasFailedIO: Bool { state.failure?.error.code == .ioFailed }

    private func checkIntact() throws(CofferError) {
        if let failure = state.failure { throw failure.error }
        guard records.isInTransaction else {
            let error = CofferError(.ioFailed, of: records.subject, "SQLite rolled the transaction back")
            state.failure = (error, depth: 1)
            throw error
        }
    }

    /// Has `undo` run on this thread if the innermost transaction is rolled back, or one around it.
    func whenRolledBack(_ undo: @escaping () -> Void) {
        if state.depth > 0 { state.undoing.append(undo) }
    }

    /// Forgets all content files, once the outermost transaction has ended.
    func forgetFiles() { state.stagedFiles = [:] }

    /// Notes that the transaction may install this file. One that was staged before the key was changed is encrypted again.
    func stage(_ file: StagedAttachment) throws(CofferError) {
        state.stagedFiles[file.digest.sha1] = try file.moved(to: attachments)
    }

    /// The file of this SHA-1 that came last of those that the transaction may install.
    func stagedFile(_ sha1: [UInt8]) -> StagedAttachment? { state.stagedFiles[sha1] }

    /// The file that has the content of this SHA-1 until the transaction has ended.
    func readableFile(_ sha1: [UInt8]) -> StagedAttachment? { installation.file(of: sha1) ?? state.stagedFiles[sha1] }

    /// Forgets a file that the transaction doesn't install, since the content is there or another file has it.
    func forget(_ file: StagedAttachment) {
        let sha1 = file.digest.sha1
        state.stagedFiles[sha1] = installation.file(of: sha1)
    }

    /// Whether a content's file is there, and the one that its row means, as far as that shows without reading it.
    ///
    /// - Throws: `ioFailed` (500) when that can't be told: what is there must not be replaced then.
    func contentIsThere(_ content: ContentDigest, header: [UInt8]) throws(CofferError) -> Bool {
        do throws(CofferError) {
            _ = try attachments.open(content, header: header, subject: records.subject)
            return true
        } catch  where error.code == .damaged {
            return false
        }
    }

    /// Runs `change`; should it fail, the innermost transaction around it can only be rolled back.
    func change<Value>(_ change: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        if let failure = state.failure { throw failure.error }
        try checkNotInFunction()
        do throws(CofferError) {
            return try change()
        } catch {
            state.failure = (error, depth: records.isInTransaction ? state.depth : 1)
            throw error
        }
    }

    /// - Throws: `invalidArgument` (400) in a validation or a view's function, which can't write.
    func checkNotInFunction() throws(CofferError) {
        guard state.isInFunction else { return }
        throw CofferError(.invalidArgument, of: records.subject, "validations and view functions can't write")
    }

    // MARK: Rows

    /// The sequence that the next revision gets.
    var nextSequence: SequenceNumber { state.lastSequence.next }

    /// The sequence that the next revision gets, from here on that of a revision.
    func takeSequence() throws(CofferError) -> SequenceNumber {
        let sequence = nextSequence
        guard Schema.counts.contains(sequence) else {
            throw CofferError(.damaged, of: records.subject, "all sequence numbers are used up")
        }
        state.lastSequence = sequence
        return sequence
    }
}

/// What a writer knows of the transaction under way, and of the database.
///
/// A class, since the writer is lent to be read alone. It leads to no connection.
final class WriterState {
    /// How many transactions are nested, 0 outside of one.
    fileprivate(set) var depth = 0

    /// Why the transactions from `depth` inwards can only be rolled back.
    fileprivate var failure: (error: CofferError, depth: Int)?

    /// Frames in the log from which a checkpoint that readers kept from being complete is tried again.
    var nextCheckpoint = 0

    /// The highest sequence that is in use.
    fileprivate(set) var lastSequence: SequenceNumber

    /// The numbers of rows that it has given.
    var numbers = GivenNumbers()

    /// How many revisions of one line are kept, once it was asked for.
    var knownDepth: Int?

    /// What peers are known to have, once it was asked for.
    var knownPeers: PeerKnowledge?

    /// Content files that the transaction under way may install, by their SHA-1.
    fileprivate var stagedFiles: [[UInt8]: StagedAttachment] = [:]
    /// How many were to be installed as each nested transaction began.
    fileprivate var installCounts: [Int] = []

    /// What those who watch will be told of the transaction under way.
    var changes = PendingChanges()

    /// Whether a function of the app's is looking at what is about to be changed: nothing else is changed meanwhile.
    var isInFunction = false

    /// Whether the tables of indexes are known to be there, and not to be.
    var hasIndexTables: Bool?

    /// About how many bytes a compaction would give back, and what the database has noted of it.
    var reclaimableByteCount = 0
    var notedReclaimableByteCount = 0
    /// How many of these bytes there must be before a compaction is tried again.
    var nextCompactionByteCount = 0

    /// Whether the transaction under way, or one that it took back, has changed when documents expire.
    var hasChangedExpirations = false

    /// What takes back in memory what the transaction under way did there, and how much of it there was as each nested one
    /// began.
    fileprivate var undoing: [() -> Void] = []
    fileprivate var undoingCounts: [Int] = []

    /// Reused for each revision's id: setting a digest up costs more than a short message.
    var digest: StreamingDigest

    init(_ counts: WriterCounts) throws(CofferError) {
        digest = try StreamingDigest(.sha256)
        lastSequence = counts.lastSequence
        reclaimableByteCount = counts.reclaimableByteCount
        notedReclaimableByteCount = counts.notedReclaimableByteCount
        nextCompactionByteCount = counts.nextCompactionByteCount
    }

    /// What a writer that takes the place of this one begins with, between transactions.
    var counts: WriterCounts {
        WriterCounts(
            lastSequence: lastSequence, reclaimableByteCount: reclaimableByteCount,
            notedReclaimableByteCount: notedReclaimableByteCount, nextCompactionByteCount: nextCompactionByteCount)
    }
}
