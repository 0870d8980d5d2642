internal import CofferSealing
internal import Synchronization

/// A value that changes, for whoever looks or listens. A slow consumer gets only the latest. Safe from any thread.
final class LatestValue<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var isOver = false
        var lastNumber = 0
        var listeners: [Int: AsyncStream<Value>.Continuation] = [:]
    }

    private let state: Lock<State>

    init(_ value: Value) { state = Lock(State(value: value)) }

    var value: Value { state.withLock { $0.value } }

    func change(_ change: (inout Value) -> Void) {
        state.withLock { state in
            change(&state.value)
            // In the order of the changes; nobody else's code runs in here.
            for listener in state.listeners.values { listener.yield(state.value) }
        }
    }

    /// The value now, and whenever it changes, until it changes no more.
    func values() -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state -> Int? in
            continuation.yield(state.value)
            guard !state.isOver else { return nil }
            state.lastNumber += 1
            state.listeners[state.lastNumber] = continuation
            return state.lastNumber
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.listeners[number] = nil } }
        return stream
    }

    /// Says that the value changes no more.
    func finish() {
        let listeners = state.withLock { state in
            state.isOver = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        // Outside, since it tells whoever ended the stream.
        for listener in listeners { listener.finish() }
    }

    deinit { finish() }
}
