internal import CofferSealing
internal import Synchronization

/// Tells one task that something was committed since it last asked, however much it was. Rings for as long as it is held.
final class CommitSignal: Sendable {
    private let ringer = Ringer()
    private let hub: ChangeHub
    private let number: Int

    init(_ hub: ChangeHub) {
        self.hub = hub
        number = hub.add(ringer)
    }

    deinit { hub.remove(number) }

    /// Waits until something was committed since the last call.
    ///
    /// - Returns: false when the database was closed, or the task cancelled.
    func wait() async -> Bool { await ringer.wait() }

    private final class Ringer: ChangeObserver {
        private struct State {
            var hasRung = false
            var isFinished = false
            var waiting: (number: Int, continuation: CheckedContinuation<Bool, Never>)?
            var lastNumber = 0
        }

        private let state = Lock(State())

        func observe(_ commit: Commit) {
            let waiting = state.withLock { state in
                state.hasRung = state.waiting == nil
                return state.waiting.take()
            }
            waiting?.continuation.resume(returning: true)
        }

        func finish() {
            let waiting = state.withLock { state in
                state.isFinished = true
                return state.waiting.take()
            }
            waiting?.continuation.resume(returning: false)
        }

        func wait() async -> Bool {
            let number = state.withLock { state in
                state.lastNumber += 1
                return state.lastNumber
            }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let result: Bool? = state.withLock { state in
                        // A task that is cancelled after this calls cancel(_:), which waits for the lock.
                        if Task.isCancelled || state.isFinished { return false }
                        if state.hasRung {
                            state.hasRung = false
                            return true
                        }
                        state.waiting = (number, continuation)
                        return nil
                    }
                    if let result { continuation.resume(returning: result) }
                }
            } onCancel: {
                let waiting = state.withLock { state in
                    state.waiting?.number == number ? state.waiting.take() : nil
                }
                waiting?.continuation.resume(returning: false)
            }
        }
    }
}
