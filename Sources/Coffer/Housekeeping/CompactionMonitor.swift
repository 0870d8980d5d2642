internal import CofferSealing
internal import Synchronization

/// A compaction, seen from who asked for it: takes progress, at most ten times a second, and the wish to end. Safe from any
/// thread.
final class CompactionMonitor: Sendable {
    private struct State {
        var progress = CompactionProgress(phase: .revisions, completedItemCount: 0, totalItemCount: 0)
        var lastReport: ContinuousClock.Instant?
    }

    private let state = Mutex(State())
    private let isCancelled = Atomic(false)
    /// Whether it makes room for other changes of the store as a whole: nobody asked for it.
    private let givesWay: Bool
    private let report: (@Sendable (CompactionProgress) -> Void)?

    private static let shortestPause = Duration.milliseconds(100)

    init(givesWay: Bool = false, report: (@Sendable (CompactionProgress) -> Void)? = nil) {
        self.givesWay = givesWay
        self.report = report
    }

    /// Has the compaction end before its next step.
    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// - Throws: `cancelled` (499); `closed` (500) when somebody wants to close the store, and is not to wait long.
    func check(_ storage: Storage) throws(CofferError) {
        if isCancelled.load(ordering: .relaxed) || (givesWay && storage.maintenanceLock.isWaitedFor) {
            throw CofferError(.cancelled)
        }
        if storage.isAboutToClose { throw CofferError(.closed) }
    }

    func begin(_ phase: CompactionProgress.Phase, itemCount: Int) {
        update { $0 = CompactionProgress(phase: phase, completedItemCount: 0, totalItemCount: itemCount) }
    }

    func advance(itemCount: Int) { update { $0.completedItemCount += itemCount } }

    private func update(_ change: (inout CompactionProgress) -> Void) {
        guard let report else { return }
        let due = state.withLock { state -> CompactionProgress? in
            change(&state.progress)
            let now = ContinuousClock.now
            if let last = state.lastReport, now - last < Self.shortestPause { return nil }
            state.lastReport = now
            return state.progress
        }
        if let due { report(due) }
    }
}
