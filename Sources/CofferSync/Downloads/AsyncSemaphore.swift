internal import CofferSealing
internal import Synchronization

/// Lets so many tasks through at the same time, in the order in which they come.
final class AsyncSemaphore: Sendable {
    private struct State {
        var freeCount: Int
        var lastNumber = 0
        var waiting: [(number: Int, continuation: CheckedContinuation<Bool, Never>)] = []
    }

    private let state: Lock<State>

    init(count: Int) { state = Lock(State(freeCount: max(1, count))) }

    /// Runs `body` when it is its turn.
    ///
    /// - Throws: `CancellationError` where the task is cancelled before that; what `body` throws.
    func pass<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        try await enter()
        defer { leave() }
        return try await body()
    }

    private func enter() async throws {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let isInside = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    guard state.freeCount > 0 else {
                        state.waiting.append((number, continuation))
                        return nil
                    }
                    state.freeCount -= 1
                    return true
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let left = state.withLock { state in
                state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0).continuation }
            }
            left?.resume(returning: false)
        }
        guard isInside else { throw CancellationError() }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard !state.waiting.isEmpty else {
                state.freeCount += 1
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}
