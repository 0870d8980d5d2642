internal import CofferSealing
internal import CofferRecords
internal import CofferVault
internal import Synchronization

/// One open store: its lock, the writer and the readers. Everything that the public classes do goes through here.
///
/// Safe from any thread. Transactions run on the thread that asks for them, one at a time; reads run beside them, each on
/// a connection of its own, except those that a transaction's own thread makes: they see what it has written so far.
final class Storage: Sendable {
    let subject: String
    let store: LockedStore
    let isReadOnly: Bool
    let settings: StorageSettings

    /// What a key change exchanges.
    let generations: Generations
    let clock: CommitClock
    /// The writer, with its lock.
    let writer: WriterOwner
    var writerLock: WriterLock { writer.lock }

    /// Held by whoever changes the store as a whole: one at a time, and before `writerLock`.
    let maintenanceLock = WriterLock()

    /// Set for good when a close has begun: nobody is given this storage any more.
    private let hasBegunClosing = Atomic(false)

    /// Set for good when a write failed: what is on the disk is then known again only after opening again.
    private let isFailed = Atomic(false)

    /// What features keep for it.
    let companions = Companions()

    let counter: DocumentCounter

    /// How many closes wait for whatever is under way: a compaction ends early then.
    private let waitingCloseCount = Atomic(0)

    /// Where the `async` forms wait for their turn, so that no thread of the cooperative pool does.
    let line: WaitingLine
    /// And for their turn to change the store as a whole.
    let maintenanceLine: WaitingLine

    /// Called once, when this storage has closed.
    private let didClose: @Sendable () -> Void

    init(
        subject: String, store: LockedStore, manifest: UnlockedManifest, generation: OpenGeneration,
        databaseFile: DatabaseFile, writer: consuming sending Writer?, clock: CommitClock, settings: StorageSettings,
        didClose: @escaping @Sendable () -> Void
    ) {
        self.subject = subject
        self.store = store
        self.settings = settings
        self.clock = clock
        self.didClose = didClose
        generations = Generations(
            Generations.Current(manifest: manifest, generation: generation, databaseFile: databaseFile))
        let lastSequence: SequenceNumber?
        switch writer {
        case .some(let writer): lastSequence = writer.state.lastSequence
        case .none: lastSequence = nil
        }
        isReadOnly = lastSequence == nil
        counter = DocumentCounter(lastSequence: lastSequence ?? .max)
        self.writer = WriterOwner(writer)
        line = WaitingLine(timeout: settings.busyTimeout, subject: subject)
        maintenanceLine = WaitingLine(timeout: settings.busyTimeout, subject: subject)
    }

    // MARK: Writing

    /// Lends the writer to `body`, if the calling thread has its lock.
    ///
    /// - Returns: nil if it hasn't.
    func ifWriting<Value, Failure: Error>(
        _ body: (borrowing Writer) throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        writerLock.isHeldByCaller ? try writer.lend(body) : nil
    }

    /// The content file that the calling thread's transaction is about to install.
    func staged(_ sha1: [UInt8]) -> StagedAttachment? { ifWriting { $0.files.readable(sha1) } ?? nil }

    /// Runs `body` in a transaction, or as part of the one that the calling thread is in.
    ///
    /// - Throws: what `body` throws; then nothing of an own transaction stays. `readOnly` (403), `busy` (503), `closed`.
    func write<Value>(_ body: (borrowing Writer) throws(CofferError) -> Value) throws(CofferError) -> Value {
        if try isWriting() {
            return try lent { (writer) throws(CofferError) in
                try writer.withinTransaction { () throws(CofferError) in try body(writer) }
            }
        }
        try takeWriter()
        defer { writer.release() }
        return try lent { (writer) throws(CofferError) in try write(in: writer, body) }
    }

    /// Runs `body` while no other thread writes. It makes its own transactions, with ``write(in:_:)``.
    ///
    /// - Throws: `invalidArgument` (400) inside a transaction, which would never end.
    func alone<Value>(_ body: (borrowing Writer) throws(CofferError) -> Value) throws(CofferError) -> Value {
        try exclusively { () throws(CofferError) in try lent(body) }
    }

    /// Runs `body` while no other thread writes, as ``alone(_:)``, for what puts another writer in the place of this one:
    /// it is lent ``lent(_:)`` before, and the other after.
    func exclusively<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try checkMayMaintain()
        try takeWriter()
        defer { writer.release() }
        return try body()
    }

    /// Lends the writer to `body`, for a thread that has its lock.
    func lent<Value, Failure: Error>(_ body: (borrowing Writer) throws(Failure) -> Value) throws(Failure) -> Value {
        guard let value = try writer.lend(body) else {
            preconditionFailure("whoever takes the lock looks for the writer")
        }
        return value
    }

    /// Runs `body` in a transaction of the writer, which is held and in none.
    func write<Value>(
        in writer: borrowing Writer, _ body: (borrowing Writer) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        try writer.begin()
        let value: Value
        do throws(CofferError) {
            value = try body(writer)
        } catch {
            try abandon(writer)
            throw error
        }
        try commitOutermost(writer)
        return value
    }

    /// Runs the caller's own code in a transaction. Transactions nest: an inner one that fails takes only its own back.
    func transaction<Value>(_ body: () throws -> Value) throws -> Value {
        let isNested = try isWriting()
        if !isNested { try takeWriter() }
        defer { if !isNested { writer.release() } }
        try lent { (writer) throws(CofferError) in try writer.begin() }
        let value: Value
        do {
            // The writer is lent again to whatever it calls.
            value = try body()
        } catch {
            try lent { (writer) throws(CofferError) in try abandon(writer) }
            throw error
        }
        try lent { (writer) throws(CofferError) in
            if isNested { try writer.commit() } else { try commitOutermost(writer) }
        }
        return value
    }

    /// Has `undo` run if the calling thread is in a transaction that is rolled back.
    func whenRolledBack(_ undo: @escaping () -> Void) {
        _ = ifWriting { $0.state.whenRolledBack(undo) }
    }

    /// Whether the calling thread is in a transaction.
    ///
    /// - Throws: `readOnly` (403) where nobody can be, `reopenRequired` (500).
    func isWriting() throws(CofferError) -> Bool {
        try checkUsable()
        guard !isReadOnly else { throw CofferError(.readOnly, of: subject) }
        guard writerLock.isHeldByCaller else { return false }
        writer.checkMayWrite()
        return true
    }

    private func takeWriter() throws(CofferError) {
        try writer.acquire(until: .now + settings.busyTimeout, subject: subject)
        let isThere: Void? = writer.lend { (writer) in
            writer.state.changes.isRecording = areChangesNeeded
            if settings.cache.areReadersAlone { takeBackCache(for: writer) }
        }
        guard isThere != nil, !isFailed.load(ordering: .relaxed) else {
            writer.release()
            throw CofferError(.reopenRequired, of: subject)
        }
        guard writer.hasMetDamage else { return }
        do throws(CofferError) {
            try renewWriter()
        } catch {
            writer.release()
            throw error
        }
    }

    private func commitOutermost(_ writer: borrowing Writer) throws(CofferError) {
        clock.willCommit()
        defer { clock.didCommit() }
        let installation = writer.files.installation
        do throws(CofferError) {
            // Durable before the rows that name them are.
            try installation.install()
            if writer.state.changes.hasPurged { counter.willPurge() }
            try writer.commit()
        } catch {
            noteFailure(error)
            if writer.state.depth > 0 { try? writer.rollback() }
            // One that couldn't be rolled back is still under way: whatever came next would be part of it.
            let isRolledBack = !writer.records.isInTransaction
            if !isRolledBack { refuseMoreWork() }
            // Whether a commit that failed as it was written was made shows when the store is opened again.
            if error.code != .ioFailed && isRolledBack { installation.didRollBack() } else { installation.abandon() }
            writer.files.forgetStaged()
            throw error
        }
        counter.note(
            documentDelta: writer.state.changes.documentDelta, lastSequence: writer.state.lastSequence,
            hasPurged: writer.state.changes.hasPurged)
        installation.didCommit()
        writer.files.forgetStaged()
        let commit = writer.state.changes.takeCommit()
        for companion in companions.all { companion.didCommit(commit, writer, in: self) }
        checkpoint(writer)
    }

    /// Rolls back the innermost transaction, after a failure in it.
    private func abandon(_ writer: borrowing Writer) throws(CofferError) {
        if writer.state.hasFailedIO { isFailed.store(true, ordering: .relaxed) }
        defer {
            if writer.state.depth == 0 {
                // Nothing was committed.
                writer.files.installation.didRollBack()
                writer.files.forgetStaged()
            }
        }
        do throws(CofferError) {
            try writer.rollback()
        } catch {
            isFailed.store(true, ordering: .relaxed)
            throw error
        }
    }

    /// After a write that failed nobody knows what the disk holds, and asking again may bring a false answer.
    func noteFailure(_ error: CofferError) {
        if error.code == .ioFailed { refuseMoreWork() }
    }

    /// For when it is open what the disk holds: from here on every call says that the database must be opened again.
    func refuseMoreWork() { isFailed.store(true, ordering: .relaxed) }

    func checkUsable() throws(CofferError) {
        if isFailed.load(ordering: .relaxed) {
            throw CofferError(.reopenRequired, of: subject, "an earlier write failed")
        }
    }

    // MARK: Closing

    /// Whether it is closed, or will be as soon as nobody reads.
    var isClosing: Bool { hasBegunClosing.load(ordering: .acquiring) }

    /// Waits for reads, writes and listeners under way, then closes. Calls that come later fail with `closed`. Closing
    /// twice is fine: whoever is second returns when all is closed, too.
    ///
    /// - Parameter removing: deletes the store too.
    /// - Throws: `invalidArgument` (400) inside a transaction or a listener, which would wait for itself; `busy` (503).
    func close(removing: Bool = false) throws(CofferError) {
        guard !writerLock.isHeldByCaller && !maintenanceLock.isHeldByCaller else {
            throw CofferError(.invalidArgument, of: subject, "a transaction can't close its own database")
        }
        waitingCloseCount.add(1, ordering: .relaxed)
        defer { waitingCloseCount.subtract(1, ordering: .relaxed) }
        try waitForCalls()
        try closeUnwatched(removing: removing)
    }

    /// Whether somebody waits to close it, or has.
    var isAboutToClose: Bool { isClosing || waitingCloseCount.load(ordering: .relaxed) > 0 }

    private func closeUnwatched(removing: Bool) throws(CofferError) {
        do throws(CofferError) {
            let deadline = ContinuousClock.now + settings.busyTimeout
            try maintenanceLock.lock(until: deadline, subject: subject)
            do throws(CofferError) {
                try writer.acquire(until: deadline, subject: subject)
            } catch {
                maintenanceLock.unlock()
                throw error
            }
        } catch {
            if error.code == .closed && !removing { return }
            throw error
        }
        if removing && isReadOnly {
            writer.release()
            maintenanceLock.unlock()
            throw CofferError(.readOnly, of: subject)
        }
        hasBegunClosing.store(true, ordering: .releasing)
        for companion in companions.all { companion.giveUpUnfinished() }
        generation.retire()
        for generation in generations.all { generation.waitForReaders() }
        var failure: CofferError?
        do throws(CofferError) {
            try writer.close { (writer) throws(CofferError) in
                if isFailed.load(ordering: .relaxed) {
                    writer.tables.abandon()
                } else {
                    try writer.tables.close()
                }
            }
        } catch {
            failure = error
        }
        if removing && failure == nil {
            do throws(CofferError) {
                try store.delete()
            } catch {
                failure = error
            }
        }
        store.close()
        didClose()
        let released = companions.finish()
        maintenanceLock.close()
        writerLock.close()
        withExtendedLifetime(released) {}
        if let failure {
            CofferLog.write(.warning, .storage, subject, "closed after a failure", LogMessage.details(of: failure))
            throw failure
        }
        CofferLog.write(.debug, .storage, subject, removing ? "deleted" : "closed")
    }

    deinit {
        // The last reference is gone, so nobody reads or writes. What close says here, nobody could hear.
        try? closeUnwatched(removing: false)
    }
}
