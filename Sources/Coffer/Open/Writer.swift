internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// Whoever writes: the rows, the content files that belong to them, and what is known of the transaction under way.
///
/// Begins and ends transactions. What is written in them is decided by the values that are saved, put, purged or indexed:
/// they are lent the writer, and this knows none of them.
///
/// Can't be copied: ``WriterOwner`` has it, and lends it to whoever holds its lock.
struct Writer: ~Copyable {
    /// The rows that it reads and writes.
    let records: Change

    /// The content files that the transaction under way brings.
    let files: TransactionFiles

    /// What it knows of the transaction under way, and of the database.
    let state: WriterState

    init(_ records: consuming Change, _ counts: WriterCounts, attachments: AttachmentStore) throws(CofferError) {
        state = try WriterState(counts)
        files = TransactionFiles(attachments)
        self.records = records
    }

    /// What it reads with, in the transaction under way.
    var tables: Snapshot { _read { yield records.snapshot } }

    // MARK: Transactions

    func begin() throws(CofferError) {
        if state.depth == 0 {
            state.forgetFailure()
            try records.begin()
        } else {
            try checkIntact()
            try records.beginNested()
        }
        files.begin()
        state.begin()
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
        files.commit()
        state.commit()
    }

    /// Undoes the innermost transaction.
    func rollback() throws(CofferError) {
        precondition(state.depth > 0, "nothing to roll back")
        files.rollBack()
        state.rollBack()
        // SQLite has rolled back everything on its own after some failures.
        guard records.isInTransaction else { return }
        if state.depth == 0 { return try records.rollBack() }
        do throws(CofferError) {
            try records.rollBackNested()
        } catch {
            state.noteFailure(error, isInTransaction: false)
            throw error
        }
        state.forgetFailureOfInner()
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
            if !records.isInTransaction { state.noteFailure(error, isInTransaction: false) }
            throw error
        }
    }

    /// Runs `change`; should it fail, the innermost transaction around it can only be rolled back.
    func change<Value>(_ change: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try state.checkNotFailed()
        try checkNotInFunction()
        do throws(CofferError) {
            return try change()
        } catch {
            state.noteFailure(error, isInTransaction: records.isInTransaction)
            throw error
        }
    }

    private func checkIntact() throws(CofferError) {
        try state.checkNotFailed()
        guard records.isInTransaction else {
            let error = CofferError(.ioFailed, of: records.subject, "SQLite rolled the transaction back")
            state.noteFailure(error, isInTransaction: false)
            throw error
        }
    }

    /// - Throws: `invalidArgument` (400) in a validation or a view's function, which can't write.
    func checkNotInFunction() throws(CofferError) {
        guard state.isInFunction else { return }
        throw CofferError(.invalidArgument, of: records.subject, "validations and view functions can't write")
    }

    // MARK: Numbers

    /// The sequence that the next revision gets, from here on that of a revision.
    func takeSequence() throws(CofferError) -> SequenceNumber {
        guard let sequence = state.takeSequence() else {
            throw CofferError(.damaged, of: records.subject, "all sequence numbers are used up")
        }
        return sequence
    }

    /// The number of the row that is to be inserted next. No row of the table ever had it.
    ///
    /// - Throws: `damaged` (500) where none is left, which only who writes the disk of a store without encryption can bring about.
    func nextNumber(in table: NumberedTable) throws(CofferError) -> Int64 {
        let number = try state.numbers.next(table) { () throws(CofferError) in try records.numbers.last(of: table) }
        guard let number else {
            throw CofferError(.damaged, of: records.subject, "all row numbers are used up")
        }
        return number
    }

    /// Notes in the database which numbers the outermost transaction has given.
    private func noteNumbers() throws(CofferError) {
        for (table, last) in state.numbers.takeUnnoted() { try records.numbers.note(last, of: table) }
    }

    /// Counts what a compaction could give back of the outermost transaction. The database notes the sum when it has changed
    /// much.
    private func noteReclaimable() throws(CofferError) {
        let new = state.changes.reclaimableByteCount
        guard new > 0 else { return }
        state.reclaimable.add(new.addingSaturated(files.installedByteCount))
        try state.reclaimable.note(in: records)
    }
}

/// The content files that the transaction under way brings: those that it may install, and those that it will.
///
/// A class, since the writer is lent to be read alone. It leads to no connection.
final class TransactionFiles {
    /// Where content files belong that the database has rows for.
    let attachments: AttachmentStore

    /// The files that the transaction will install.
    let installation: Installation
    /// How many were to be installed as each nested transaction began.
    private var installCounts: [Int] = []

    /// The files that it may install, by their SHA-1.
    private var staged: [[UInt8]: StagedAttachment] = [:]

    init(_ attachments: AttachmentStore) {
        self.attachments = attachments
        installation = Installation(attachments)
    }

    // MARK: Transactions

    /// Called as a transaction begins, nested or not.
    func begin() { installCounts.append(installation.files.count) }

    /// Called as the innermost transaction is committed.
    func commit() { installCounts.removeLast() }

    /// Called as the innermost transaction is rolled back.
    func rollBack() { installation.rollBack(to: installCounts.removeLast()) }

    /// Forgets all files that it may install, once the outermost transaction has ended.
    func forgetStaged() { staged = [:] }

    // MARK: Files

    /// Notes that the transaction may install this file. One that was staged before the key was changed is encrypted again.
    func stage(_ file: StagedAttachment) throws(CofferError) {
        staged[file.digest.sha1] = try file.moved(to: attachments)
    }

    /// The file of this digest that came last of those that the transaction may install.
    func staged(_ key: AttachmentKey) -> StagedAttachment? {
        guard case .sha1(let sha1) = key, let file = staged[sha1] else { return nil }
        // One that another transaction saved meanwhile is the store's: only its row counts.
        return file.isSaved ? nil : file
    }

    /// Forgets a file that the transaction doesn't install, since the content is there or another file has it.
    func forget(_ file: StagedAttachment) {
        let sha1 = file.digest.sha1
        staged[sha1] = installation.file(of: sha1)
    }

    /// The file that has the content of this SHA-1 until the transaction has ended.
    func readable(_ sha1: [UInt8]) -> StagedAttachment? { installation.file(of: sha1) ?? staged[sha1] }

    /// Whether a content's file is there or will be, and the one that its row means, as far as that shows without reading it.
    ///
    /// - Throws: `ioFailed` (500) when that can't be told: what is there must not be replaced then.
    func has(_ content: ContentDigest, header: [UInt8], subject: String) throws(CofferError) -> Bool {
        if installation.file(of: content.sha1) != nil { return true }
        do throws(CofferError) {
            _ = try attachments.open(content, header: header, subject: subject)
            return true
        } catch  where error.code == .damaged {
            return false
        }
    }

    /// The bytes of all files that the transaction will install.
    var installedByteCount: Int { installation.files.reduce(0) { $0 + $1.digest.byteCount } }
}
