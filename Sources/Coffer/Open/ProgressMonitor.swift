internal import CofferRecords
package import CofferSealing
internal import Synchronization

/// Long work, seen from who asked for it: takes progress, at most ten times a second, and the wish to end. Safe from any
/// thread.
package final class ProgressMonitor<Progress: Sendable>: Sendable {
    private struct State {
        var progress: Progress
        var lastReport: ContinuousClock.Instant?
    }

    private let state: Lock<State>
    private let isCancelled = Atomic(false)
    private let report: (@Sendable (Progress) -> Void)?
    /// Whether anybody waits any more.
    private let isWanted: @Sendable () -> Bool

    private static var shortestPause: Duration { .milliseconds(100) }

    package init(
        from start: Progress, report: (@Sendable (Progress) -> Void)? = nil,
        while isWanted: @escaping @Sendable () -> Bool = { true }
    ) {
        state = Lock(State(progress: start))
        self.isWanted = isWanted
        self.report = report
    }

    /// Has the work end at its next check, if it can still be ended then.
    package func cancel() { isCancelled.store(true, ordering: .relaxed) }

    package var goesOn: Bool { !isCancelled.load(ordering: .relaxed) && isWanted() }

    /// - Throws: `cancelled` (499).
    package func checkCancelled() throws(CofferError) {
        if !goesOn { throw CofferError(.cancelled) }
    }

    /// Notes how far the work is. Costs nothing if nobody listens.
    package func update(_ change: (inout Progress) -> Void) {
        guard let report else { return }
        let due = state.withLock { state -> Progress? in
            change(&state.progress)
            let now = ContinuousClock.now
            if let last = state.lastReport, now - last < Self.shortestPause { return nil }
            state.lastReport = now
            return state.progress
        }
        if let due { report(due) }
    }

    /// Tells where the work has come to, whenever that was last told: short work would be told of once, before it began.
    package func tellLast() { report?(state.withLock(\.progress)) }
}

extension ProgressMonitor {
    /// Runs `work` for a task: with its progress, and until the task is cancelled.
    package static func run<Value: Sendable>(
        from start: Progress, telling progress: (@isolated(any) @Sendable (Progress) -> Void)?,
        _ work: @Sendable (ProgressMonitor<Progress>) async throws -> Value
    ) async throws -> Value {
        // A progress that nobody has taken yet is of no interest any more.
        let (reports, reporter) = AsyncStream.makeStream(of: Progress.self, bufferingPolicy: .bufferingNewest(1))
        let report: @Sendable (Progress) -> Void = { _ = reporter.yield($0) }
        let monitor = ProgressMonitor(from: start, report: progress == nil ? nil : report)
        async let _: Void = reports.deliver(to: progress)
        defer { reporter.finish() }
        return try await withTaskCancellationHandler {
            let value = try await work(monitor)
            monitor.tellLast()
            return value
        } onCancel: {
            monitor.cancel()
        }
    }
}

extension Storage {
    /// Runs `work`, which changes or copies the store as a whole, for a task: in its turn, with its progress, and until the
    /// task is cancelled.
    func maintainInBackground<Progress: Sendable, Value: Sendable>(
        from start: Progress, telling progress: (@isolated(any) @Sendable (Progress) -> Void)?,
        _ work: @escaping @Sendable (ProgressMonitor<Progress>) throws(CofferError) -> Value
    ) async throws -> Value {
        try await ProgressMonitor.run(from: start, telling: progress) { [self] monitor in
            try await maintainInBackground { () throws(CofferError) in try work(monitor) }
        }
    }
}

extension AsyncStream where Element: Sendable {
    /// Calls `consumer` with each element, where it is isolated.
    fileprivate func deliver(to consumer: (@isolated(any) @Sendable (Element) -> Void)?) async {
        guard let consumer else { return }
        for await element in self { await consumer(element) }
    }
}
