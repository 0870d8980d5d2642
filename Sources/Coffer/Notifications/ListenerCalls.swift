internal import CofferSealing

/// The calls of listeners that are under way, so that a close can wait for them, and refuse to wait for its own.
final class ListenerCalls: Sendable {
    private struct State {
        /// The threads that are in a call, by the call's number.
        var threads: [Int: UInt] = [:]
        var lastNumber = 0
    }

    private let state = Monitor(State())

    /// Runs `body`, a listener's, on the calling thread.
    func run(_ body: () -> Void) {
        let number = state.withLock { state in
            state.lastNumber += 1
            state.threads[state.lastNumber] = currentThreadIdentity()
            return state.lastNumber
        }
        body()
        state.change { $0.threads[number] = nil }
    }

    /// Whether the calling thread is in a listener's call.
    var isInCall: Bool { state.withLock { $0.threads.values.contains(currentThreadIdentity()) } }

    /// Waits for the calls that are under way now.
    ///
    /// - Returns: false when some still are after `deadline`.
    func waitForThoseUnderWay(until deadline: ContinuousClock.Instant) -> Bool {
        let last = state.withLock(\.lastNumber)
        return state.wait { state in
            guard state.threads.keys.contains(where: { $0 <= last }) else { return .done(true) }
            let remaining = ContinuousClock.now.duration(to: deadline)
            return remaining > .zero ? .again(within: remaining) : .done(false)
        }
    }
}
