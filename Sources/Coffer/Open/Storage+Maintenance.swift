internal import CofferRecords
internal import CofferSealing
internal import CofferVault

extension Storage {
    /// Runs `body`, which changes the store as a whole, while nobody else does. Others read and write meanwhile, unless it
    /// keeps them from it with ``alone(_:)``.
    ///
    /// - Throws: what `body` throws; `readOnly` (403); `invalidArgument` (400) inside a transaction, which would wait for
    ///   itself; `busy` (503) when another one takes too long; `closed` (500).
    func maintain<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try checkMayMaintain()
        return try holdingMaintenance(body)
    }

    /// Runs `body`, which looks at the store as a whole, while nobody changes it as a whole. Others read and write meanwhile.
    ///
    /// - Throws: what `body` throws; `invalidArgument` (400) inside a transaction; `busy` (503); `closed` (500).
    func inspect<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try checkUsable()
        guard !writerLock.isHeldByCaller else {
            throw CofferError(.invalidArgument, of: subject, "this can't be done inside a transaction")
        }
        return try holdingMaintenance(body)
    }

    private func holdingMaintenance<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try maintenanceLock.lock(until: .now + settings.busyTimeout, subject: subject)
        defer { maintenanceLock.unlock() }
        try OtherUser.current?.check()
        return try body()
    }

    /// The same for tasks: waits for its turn, and runs `body` on a thread of its own. Tasks that write don't wait for it.
    func maintainInBackground<Value: Sendable>(
        _ body: @escaping @Sendable () throws(CofferError) -> Value
    ) async throws -> Value {
        let user = OtherUser.current
        return try await maintenanceLine.run { [self] () throws(CofferError) in
            try maintain { () throws(CofferError) in
                try user?.check()
                return try body()
            }
        }
    }

    /// - Throws: `readOnly` (403), and `invalidArgument` (400) inside a transaction of the calling thread.
    func checkMayMaintain() throws(CofferError) {
        guard try !isWriting() else {
            throw CofferError(.invalidArgument, of: subject, "this can't be done inside a transaction")
        }
    }

    /// Runs `work`, which waits for its turn to write, and suspends the calling task meanwhile.
    ///
    /// - Parameter leavesWhenCancelled: false for what a task that was cancelled still has to do.
    /// - Throws: what `work` throws; `cancelled` (499) when the task was cancelled before it began; `busy` (503) when its
    ///   turn did not come in time.
    func inBackground<Value: Sendable, Failure: Error>(
        leavesWhenCancelled: Bool = true, _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws -> Value {
        try await line.run(leavesWhenCancelled: leavesWhenCancelled, work)
    }
}

// Who may keep how much of the page cache: see ``CacheBudget``.

extension Storage {
    /// Lets the readers have the writer's part of the cache, if nobody has written since the last span of reads and nobody
    /// does now. Called by who reads, after each span: it waits for nobody.
    func considerCache() {
        let cache = settings.cache
        guard cache.endSpan(at: clock.settled), !cache.areReadersAlone,
            writer.acquireBriefly()
        else { return }
        defer { writer.release() }
        let isShrunk = writer.lend {
            (try? $0.tables.setCache(byteCount: CacheBudget.leastByteCount)) != nil
        }
        guard isShrunk == true else { return }
        cache.areReadersAlone = true
        databaseFile.setSharedCache(byteCount: cache.sharedByteCount)
    }

    /// Gives the writer its part again. Called by who has it, before a transaction.
    func takeBackCache(for writer: borrowing Writer) {
        settings.cache.areReadersAlone = false
        databaseFile.setSharedCache(byteCount: settings.cache.sharedByteCount)
        // Those at work drop what is too much when they are done.
        generation.shrinkIdleCaches()
        // With less it would be slow, and right.
        try? writer.tables.setCache(
            byteCount: settings.cache.writerByteCount(besideShared: databaseFile.hasSharedCache))
    }
}

extension Storage {
    /// Empties a log that has grown long, so that the next commit starts it again.
    ///
    /// Whoever reads the state before the last commit is in the way: idle readers give it up, and those at work get a
    /// moment to finish. The clock must stand at a commit under way, so that none of them keeps it.
    func checkpoint(_ writer: borrowing Writer) {
        guard writer.records.logFrameCount >= max(settings.checkpointFrameCount, writer.state.nextCheckpoint)
        else {
            return
        }
        copyLog(writer, keepingLength: true)
    }

    /// Empties the log, unless readers are in the way: for whoever holds the writer, outside of a transaction.
    func emptyLog(_ writer: borrowing Writer) {
        clock.willCommit()
        defer { clock.didCommit() }
        copyLog(writer, keepingLength: false)
    }

    private func copyLog(_ writer: borrowing Writer, keepingLength: Bool) {
        let frameCount = writer.records.logFrameCount
        generation.closeIdleSnapshots()
        do throws(CofferError) {
            let isComplete = try writer.records.checkpoint(
                patience: .milliseconds(100), keepingLength: keepingLength)
            writer.state.nextCheckpoint = isComplete ? 0 : frameCount + settings.checkpointFrameCount / 16
        } catch {
            // The commit is safe in the log. The next write finds out whether the disk still works.
            noteFailure(error)
        }
    }
}
