internal import CofferSealing
internal import Synchronization

/// How far a change of the encryption key has come.
public struct KeyChangeProgress: Sendable, Equatable {
    /// What is being done. The list is open: later versions may add phases, so a `switch` over it needs a `default`.
    public struct Phase: Sendable, Hashable, CustomStringConvertible {
        private let name: String

        /// Contents of attachments and blobs are encrypted anew. Others read and write meanwhile.
        public static let attachments = Phase(name: "attachments")
        /// The database is encrypted anew, and checked. Others read meanwhile; writes wait.
        public static let database = Phase(name: "database")

        /// The phase's name, such as `attachments`.
        public var description: String { name }
    }

    /// What is being done now.
    public var phase: Phase
    /// How many bytes of this phase are done.
    public var completedByteCount: Int
    /// How many bytes this phase has, as far as that is known: others may add some meanwhile.
    public var totalByteCount: Int
    /// How many contents are done; of the database, 0 or 1.
    public var completedItemCount: Int
    /// How many contents there are; of the database, 1.
    public var totalItemCount: Int
}

/// A key change, seen from who asked for it: takes progress, at most ten times a second, and the wish to end. Safe from any
/// thread.
final class KeyChangeMonitor: Sendable {
    private struct State {
        var progress: KeyChangeProgress?
        var lastReport: ContinuousClock.Instant?
    }

    private let state = Mutex(State())
    private let isCancelled = Atomic(false)
    private let report: (@Sendable (KeyChangeProgress) -> Void)?

    private static let shortestPause = Duration.milliseconds(100)

    init(report: (@Sendable (KeyChangeProgress) -> Void)? = nil) { self.report = report }

    /// Has the key change end at its next check, if it has not come to its commit.
    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    var goesOn: Bool { !isCancelled.load(ordering: .relaxed) }

    /// - Throws: `cancelled` (499).
    func checkCancelled() throws(CofferError) {
        if !goesOn { throw CofferError(.cancelled) }
    }

    func begin(_ phase: KeyChangeProgress.Phase, byteCount: Int, itemCount: Int) {
        update {
            $0 = KeyChangeProgress(
                phase: phase, completedByteCount: 0, totalByteCount: byteCount, completedItemCount: 0,
                totalItemCount: itemCount)
        }
    }

    func advance(byteCount: Int = 0, itemCount: Int = 0) {
        update {
            $0?.completedByteCount += byteCount
            $0?.completedItemCount += itemCount
        }
    }

    private func update(_ change: (inout KeyChangeProgress?) -> Void) {
        let due = state.withLock { state -> KeyChangeProgress? in
            change(&state.progress)
            guard report != nil else { return nil }
            let now = ContinuousClock.now
            if let last = state.lastReport, now - last < Self.shortestPause { return nil }
            state.lastReport = now
            return state.progress
        }
        if let due { report?(due) }
    }
}
