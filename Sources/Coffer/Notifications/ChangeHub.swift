internal import CofferSealing
internal import Synchronization

/// Somebody who is notified of commits.
protocol ChangeObserver: Sendable {
    /// Called in the order of commits, by whoever holds the writer's lock: it must not wait for anybody.
    func observe(_ commit: Commit)

    /// Called once, when the database is closed.
    func finish()
}

/// Passes commits on to all who watch an open store. Safe from any thread.
///
/// It outlives nothing but the store: those who watch hold it, and it does not hold the store.
final class ChangeHub: Sendable {
    private struct State {
        var observers: [Int: any ChangeObserver] = [:]
        var lastNumber = 0
        var isFinished = false
    }

    private let state = Lock(State())
    /// Whether there are observers, for the writer, who asks in each transaction.
    private let hasObservers = Atomic(false)

    /// The calls of listeners that are under way.
    let calls = ListenerCalls()

    /// Whether anybody watches.
    var isObserved: Bool { hasObservers.load(ordering: .acquiring) }

    /// - Returns: the number to ``remove(_:)`` it by.
    func add(_ observer: some ChangeObserver) -> Int {
        let number: Int? = state.withLock { state in
            guard !state.isFinished else { return nil }
            state.lastNumber += 1
            state.observers[state.lastNumber] = observer
            hasObservers.store(true, ordering: .releasing)
            return state.lastNumber
        }
        if number == nil { observer.finish() }
        return number ?? 0
    }

    func remove(_ number: Int) {
        // Let go of outside the lock: what a listener's closure holds may end here.
        _ = state.withLock { state in
            let removed = state.observers.removeValue(forKey: number)
            hasObservers.store(!state.observers.isEmpty, ordering: .releasing)
            return removed
        }
    }

    /// Called by whoever holds the writer's lock, when the commit is durable.
    func publish(_ commit: Commit) {
        let observers = state.withLock { Array($0.observers.values) }
        for observer in observers { observer.observe(commit) }
    }

    /// Tells all that nothing will come any more.
    ///
    /// - Returns: the observers that were notified, to be released where nothing is locked: what a listener's closure
    ///   holds may end then.
    func finish() -> [any ChangeObserver] {
        let observers = state.withLock { state in
            state.isFinished = true
            hasObservers.store(false, ordering: .releasing)
            defer { state.observers = [:] }
            return Array(state.observers.values)
        }
        for observer in observers { observer.finish() }
        return observers
    }
}
