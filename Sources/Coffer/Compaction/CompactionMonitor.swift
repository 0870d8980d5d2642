internal import CofferSealing

/// A compaction, seen from who asked for it.
struct CompactionMonitor: Sendable {
    private let monitor: ProgressMonitor<CompactionProgress>
    /// Whether it makes room for other changes of the store as a whole: nobody asked for it.
    private let givesWay: Bool

    init(_ monitor: ProgressMonitor<CompactionProgress>, givesWay: Bool = false) {
        self.monitor = monitor
        self.givesWay = givesWay
    }

    init(givesWay: Bool = false, report: (@Sendable (CompactionProgress) -> Void)? = nil) {
        self.init(ProgressMonitor(from: .start, report: report), givesWay: givesWay)
    }

    /// Has the compaction end before its next step.
    func cancel() { monitor.cancel() }

    /// - Throws: `cancelled` (499); `closed` (500) when somebody wants to close the store, and is not to wait long.
    func check(_ storage: Storage) throws(CofferError) {
        if givesWay && storage.maintenanceLock.isWaitedFor { throw CofferError(.cancelled) }
        try monitor.checkCancelled()
        if storage.isAboutToClose { throw CofferError(.closed) }
    }

    func begin(_ phase: CompactionProgress.Phase, itemCount: Int) {
        monitor.update { $0 = CompactionProgress(phase: phase, completedItemCount: 0, totalItemCount: itemCount) }
    }

    func advance(itemCount: Int) { monitor.update { $0.completedItemCount += itemCount } }
}

extension CompactionProgress {
    /// Before anything is known.
    static let start = CompactionProgress(phase: .revisions, completedItemCount: 0, totalItemCount: 0)
}
