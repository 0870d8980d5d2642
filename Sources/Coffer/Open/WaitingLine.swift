internal import CofferSealing
internal import CofferRecords
internal import Dispatch
internal import Synchronization

/// Somebody who works on a database with a key that may end while they wait for their turn.
///
/// A type, and not the function that it has: optimized code that binds a function with typed throws to a task crashes (Swift 6.3).
package struct OtherUser: Sendable {
    /// Whose work the current task does, if it isn't the app's own.
    @TaskLocal package static var current: OtherUser?

    /// Asked when it is their turn to change or copy the store as a whole. Throws where they may not any more.
    package let check: @Sendable () throws(CofferError) -> Void

    package init(check: @escaping @Sendable () throws(CofferError) -> Void) { self.check = check }
}

/// Where the `async` forms of calls wait to write, one behind the other, so that no thread of the cooperative pool does.
///
/// A waiting call leaves the line when its task is cancelled or it times out, and has done nothing then. One that has
/// begun ends what it does. Safe from any thread.
final class WaitingLine: Sendable {
    private struct State {
        /// Those who wait behind another, by the order in which they came.
        var waiting: [Int: Waiting] = [:]
        var lastNumber = 0
        /// How many came and have not been through, whether they still wait or have left.
        var presentCount = 0
        var isLookScheduled = false
    }

    private struct Waiting {
        var deadline: ContinuousClock.Instant
        var leave: @Sendable (CofferError) -> Void
    }

    private let state = Lock(State())
    private let queue = DispatchQueue(label: "coffer.writer", qos: .userInitiated)
    private let subject: String
    private let timeout: Duration

    /// The longest time until somebody looks again who has waited too long: the system takes no longer ones.
    private static let longestLook = Duration.seconds(3600)

    init(timeout: Duration, subject: String) {
        self.timeout = timeout
        self.subject = subject
    }

    /// Runs `work` on a thread of the line's own as soon as all who came earlier are through.
    ///
    /// - Parameter leavesWhenCancelled: false for what a task that was cancelled still has to do, as closing is.
    /// - Throws: what `work` throws; `cancelled` (499) when the task was cancelled before, and `busy` (503) when the turn did
    ///   not come in time. Nobody waits for a turn that comes at once.
    func run<Value: Sendable, Failure: Error>(
        leavesWhenCancelled: Bool = true, _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws -> Value {
        let turn = Turn<Value>()
        let value = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard turn.wait(continuation) else { return }
                let number = enter { turn.leave($0) }
                queue.async { [self] in
                    begin(number)
                    let continuation = turn.take()
                    let result = continuation.map { _ in Result { try work() } }
                    // Before the task goes on: its next call finds nobody before it.
                    state.withLock { $0.presentCount -= 1 }
                    turn.handOver()
                    if let result { continuation?.resume(with: result) }
                }
            }
        } onCancel: {
            if leavesWhenCancelled { turn.leave(CofferError(.cancelled, of: subject)) }
        }
        turn.handOver()
        return value
    }

    private func enter(_ leave: @escaping @Sendable (CofferError) -> Void) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            state.presentCount += 1
            if state.presentCount > 1 {
                state.waiting[state.lastNumber] = Waiting(deadline: .now + timeout, leave: leave)
                scheduleLook(in: timeout, &state)
            }
            return state.lastNumber
        }
    }

    private func begin(_ number: Int) {
        state.withLock { _ = $0.waiting.removeValue(forKey: number) }
    }

    private func scheduleLook(in time: Duration, _ state: inout State) {
        guard !state.isLookScheduled else { return }
        state.isLookScheduled = true
        let seconds = max(0, min(time, Self.longestLook).seconds)
        DispatchQueue.global(qos: .userInitiated).asyncAfter(deadline: .now() + seconds) { [weak self] in
            self?.sendAwayWhoWaitedTooLong()
        }
    }

    private func sendAwayWhoWaitedTooLong() {
        let now = ContinuousClock.now
        let leaving = state.withLock { state in
            let late = state.waiting.filter { $0.value.deadline <= now }
            for number in late.keys { state.waiting[number] = nil }
            state.isLookScheduled = false
            if let next = state.waiting.values.map(\.deadline).min() { scheduleLook(in: next - now, &state) }
            return late.values
        }
        for waiting in leaving { waiting.leave(CofferError(.busy, of: subject, "other transactions took too long")) }
    }
}

/// A task's place in the line. Whoever takes its continuation is the one to resume it.
private final class Turn<Value: Sendable>: Sendable {
    private enum State {
        case new
        case waiting(CheckedContinuation<Value, any Error>)
        /// It left, perhaps before it was in the line.
        case left(CofferError)
        case taken
    }

    private let state = Lock(State.new)

    /// - Returns: false when it has left already, and its task goes on.
    func wait(_ continuation: CheckedContinuation<Value, any Error>) -> Bool {
        let error: CofferError? = state.withLock { state in
            if case .left(let error) = state { return error }
            state = .waiting(continuation)
            return nil
        }
        guard let error else { return true }
        continuation.resume(throwing: error)
        return false
    }

    /// For both sides of what a continuation carries over: the thread sanitizer knows locks, and not what the runtime does
    /// where a continuation is resumed before its task waits.
    func handOver() { state.withLock { _ in } }

    /// The continuation of one whose turn it is; nil when it has left.
    func take() -> CheckedContinuation<Value, any Error>? {
        state.withLock { state in
            guard case .waiting(let continuation) = state else { return nil }
            state = .taken
            return continuation
        }
    }

    /// Has the task go on with `error`, unless its turn has begun.
    func leave(_ error: CofferError) {
        let continuation: CheckedContinuation<Value, any Error>? = state.withLock { state in
            switch state {
            case .new:
                state = .left(error)
                return nil
            case .waiting(let continuation):
                state = .left(error)
                return continuation
            case .left, .taken:
                return nil
            }
        }
        continuation?.resume(throwing: error)
    }
}
