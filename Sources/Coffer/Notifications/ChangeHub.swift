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
final class ChangeHub: StorageCompanion {
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
    var needsChanges: Bool { hasObservers.load(ordering: .acquiring) }

    func waitForCalls(until deadline: ContinuousClock.Instant, subject: String) throws(CofferError) {
        guard !calls.isInCall else {
            throw CofferError(.invalidArgument, of: subject, "a listener can't wait for its own end")
        }
        guard calls.waitForThoseUnderWay(until: deadline) else {
            throw CofferError(.busy, of: subject, "a listener took too long")
        }
    }

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

    func didCommit(_ commit: Commit?, _ writer: borrowing Writer, in storage: Storage) {
        guard let commit else { return }
        let observers = state.withLock { Array($0.observers.values) }
        for observer in observers { observer.observe(commit) }
    }

    /// Tells all that nothing will come any more.
    ///
    /// - Returns: the observers that were notified, to be released where nothing is locked: what a listener's closure
    ///   holds may end then.
    func finish() -> [any Sendable] {
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

extension Storage {
    /// Notifies observers of commits.
    var hub: ChangeHub { companions[ChangeHub.self] }
}
