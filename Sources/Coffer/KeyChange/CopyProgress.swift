internal import CofferSealing
internal import Synchronization

/// How far a change of the encryption key, or a backup, has come.
public struct CopyProgress: Sendable, Equatable {
    /// What is being done. The list is open: later versions may add phases, so a `switch` over it needs a `default`.
    public struct Phase: Sendable, Hashable, CustomStringConvertible {
        private let name: String

        /// Contents of attachments and blobs are copied. Others read and write meanwhile.
        public static let attachments = Phase(name: "attachments")
        /// The database is copied, and checked. Others read meanwhile; in a key change, writes wait.
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

/// A key change or backup, seen from who asked for it: takes progress, at most ten times a second, and the wish to end. Safe from any
/// thread.
final class CopyMonitor: Sendable {
    private struct State {
        var progress: CopyProgress?
        var lastReport: ContinuousClock.Instant?
    }

    private let state = Mutex(State())
    private let isCancelled = Atomic(false)
    private let report: (@Sendable (CopyProgress) -> Void)?

    private static let shortestPause = Duration.milliseconds(100)

    init(report: (@Sendable (CopyProgress) -> Void)? = nil) { self.report = report }

    /// Has it end at its next check, if it has not come to its commit.
    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    var goesOn: Bool { !isCancelled.load(ordering: .relaxed) }

    /// - Throws: `cancelled` (499).
    func checkCancelled() throws(CofferError) {
        if !goesOn { throw CofferError(.cancelled) }
    }

    func begin(_ phase: CopyProgress.Phase, byteCount: Int, itemCount: Int) {
        update {
            $0 = CopyProgress(
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

    private func update(_ change: (inout CopyProgress?) -> Void) {
        let due = state.withLock { state -> CopyProgress? in
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

extension Storage {
    /// Runs `work`, which changes or copies the store as a whole, for a task: in its turn, with its progress, and until the
    /// task is cancelled.
    func copying<Value: Sendable>(
        _ progress: (@isolated(any) @Sendable (CopyProgress) -> Void)?,
        _ work: @escaping @Sendable (CopyMonitor) throws(CofferError) -> Value
    ) async throws -> Value {
        // A progress that nobody has taken yet is of no interest any more.
        let (reports, reporter) = AsyncStream.makeStream(of: CopyProgress.self, bufferingPolicy: .bufferingNewest(1))
        let monitor = progress == nil ? CopyMonitor() : CopyMonitor { reporter.yield($0) }
        async let _: Void = reports.deliver(to: progress)
        defer { reporter.finish() }
        return try await withTaskCancellationHandler {
            try await maintainInBackground { () throws(CofferError) in try work(monitor) }
        } onCancel: {
            monitor.cancel()
        }
    }
}

extension AsyncStream where Element: Sendable {
    /// Calls `consumer` with each element, where it is isolated.
    func deliver(to consumer: (@isolated(any) @Sendable (Element) -> Void)?) async {
        guard let consumer else { return }
        for await element in self { await consumer(element) }
    }
}
