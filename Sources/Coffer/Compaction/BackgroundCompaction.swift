internal import CofferSealing
internal import CofferVault
internal import Dispatch
internal import Synchronization
internal import CofferRecords
internal import Foundation

/// Compacts an open store when enough can be given back. One at a time, and without keeping the store open.
final class BackgroundCompaction: StorageCompanion {
    private let queue = DispatchQueue(label: "coffer.compaction", qos: .utility)
    private let isScheduled = Atomic(false)

    /// Has the store compacted soon.
    func schedule(_ storage: Storage) {
        guard !isScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        queue.async { [weak storage, weak self] in
            if let storage, !storage.isAboutToClose {
                // What it could not do now stays noted, and is tried again when more has come, or at the next open.
                _ = try? storage.compact(CompactionMonitor(givesWay: true))
            }
            self?.isScheduled.store(false, ordering: .releasing)
        }
    }
}

extension BackgroundCompaction {
    func didCommit(_ commit: Commit?, _ writer: borrowing Writer, in storage: Storage) {
        storage.considerCompaction(writer)
    }
}

extension Storage {
    /// Compacts the store when that gives enough back.
    var backgroundCompaction: BackgroundCompaction { companions[BackgroundCompaction.self] }
}

extension Storage {
    /// Has the store compacted, if enough can be given back.
    func considerCompaction(_ writer: borrowing Writer) {
        let reclaimable = writer.state.reclaimable
        guard let policy = settings.compaction,
            reclaimable.byteCount >= max(policy.leastByteCount, reclaimable.nextCompactionByteCount),
            let pages = try? writer.records.compaction.pages()
        else { return }
        if policy.isEnough(reclaimable.byteCount, databaseByteCount: pages.all * Schema.pageByteCount) {
            // One that fails is tried again when there is as much more.
            writer.state.reclaimable.nextCompactionByteCount =
                reclaimable.byteCount.addingSaturated(policy.leastByteCount)
            backgroundCompaction.schedule(self)
        }
    }

    /// Begins what the store does automatically, once it is open for writing.
    ///
    /// From here on other threads write too: whoever opened the store has handed its writer over by now.
    ///
    /// - Parameter nextExpiration: when the first document expires.
    func startBackgroundWork(nextExpiration: Int64?) {
        // Told of commits from here on.
        _ = (backgroundCompaction, expirationTimer)
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
