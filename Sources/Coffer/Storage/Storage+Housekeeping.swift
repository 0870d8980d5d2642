internal import CofferSealing
internal import Foundation

extension Storage {
    // MARK: Counting

    /// How many documents are not deleted, as ``read(_:)`` would find.
    func documentCount() throws(CofferError) -> Int {
        try checkUsable()
        if let writer = writerIfHeld {
            if let known = counter.known, !writer.changes.hasPurged { return known + writer.changes.documentDelta }
            return try read { (tables) throws(CofferError) in try tables.documentCount() }
        }
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
    func considerCompaction(_ writer: Writer) {
        guard let policy = settings.compaction,
            writer.reclaimableByteCount >= max(policy.leastByteCount, writer.nextCompactionByteCount),
            let pages = try? writer.compacting.pages()
        else { return }
        if policy.isEnough(writer.reclaimableByteCount, databaseByteCount: pages.all * Schema.pageByteCount) {
            // One that fails is tried again when there is as much more.
            writer.nextCompactionByteCount = writer.reclaimableByteCount.addingSaturated(policy.leastByteCount)
            backgroundCompaction.schedule(self)
        }
    }

    /// Begins what the store does by itself, as it is opened for writing.
    ///
    /// - Parameters:
    ///   - writer: the store's, which nobody else has yet.
    ///   - nextExpiration: when the first document expires.
    ///   - reclaimable: about how many bytes a compaction would give back.
    func startHousekeeping(_ writer: Writer, nextExpiration: Int64?, reclaimable: Int) {
        writer.reclaimableByteCount = reclaimable
        writer.notedReclaimableByteCount = reclaimable
        considerCompaction(writer)
        if let nextExpiration { expirationTimer.start(self, next: nextExpiration) }
    }

    /// Lets those write who wait to, between two steps of something long. Whoever never stops waits no longer than a tenth
    /// of a second for others who never stop.
    func letOthersWrite() {
        let deadline = ContinuousClock.now + .milliseconds(100)
        while writerLock.isWaitedFor && .now < deadline { Thread.sleep(forTimeInterval: 0.000_5) }
    }
}
