internal import CofferSealing
internal import CofferVault
internal import Dispatch
internal import Synchronization

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
