internal import CofferSealing
internal import Foundation

extension Storage {
    // MARK: Counting

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

    // MARK: What happens by itself

    /// Has the store compacted, if enough can be given back.
    func considerCompaction(_ writer: borrowing Writer) {
        let state = writer.state
        guard let policy = settings.compaction,
            state.reclaimableByteCount >= max(policy.leastByteCount, state.nextCompactionByteCount),
            let pages = try? writer.compacting.pages()
        else { return }
        if policy.isEnough(state.reclaimableByteCount, databaseByteCount: pages.all * Schema.pageByteCount) {
            // One that fails is tried again when there is as much more.
            state.nextCompactionByteCount = state.reclaimableByteCount.addingSaturated(policy.leastByteCount)
            backgroundCompaction.schedule(self)
        }
    }

    /// Begins what the store does automatically, once it is open for writing.
    ///
    /// From here on other threads write too: whoever opened the store has handed its writer over by now.
    ///
    /// - Parameter nextExpiration: when the first document expires.
    func startHousekeeping(nextExpiration: Int64?) {
        // Without the lock nothing is lost: a compaction is considered again after each commit.
        try? alone { (writer) throws(CofferError) in considerCompaction(writer) }
        if let nextExpiration { expirationTimer.start(self, next: nextExpiration) }
    }

    /// Lets those write who wait to, between two steps of something long. Whoever never stops waits no longer than a tenth
    /// of a second for others who never stop.
    func letOthersWrite() {
        let deadline = ContinuousClock.now + .milliseconds(100)
        while writerLock.isWaitedFor && .now < deadline { Thread.sleep(forTimeInterval: 0.000_5) }
    }
}
