internal import CofferSealing
internal import Synchronization
internal import CofferRecords

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

/// Commits that somebody has not taken yet, in their order. Bounded: a consumer that lags too far behind learns that
/// instead.
struct ChangeQueue {
    /// How many commits wait at most.
    static let commitLimit = 1_024

    /// How many changes wait at most, in all these commits: about 20 MB.
    static let changeLimit = PendingChanges.limit

    private var commits: [Commit] = []
    /// How many at the front of `commits` were taken.
    private var takenCount = 0
    private var changeCount = 0
    /// Set when what came after this sequence was dropped, and nobody was told yet. No commit waits then.
    private var missedSince: SequenceNumber?

    var isEmpty: Bool { missedSince == nil && takenCount == commits.count }

    mutating func append(_ commit: Commit) {
        // An observer that missed something looks at what is there by then: this is part of it.
        guard missedSince == nil else { return }
        let waitingCount = commits.count - takenCount
        if commit.isComplete && waitingCount < Self.commitLimit
            && changeCount + commit.changes.count <= Self.changeLimit
        {
            commits.append(commit)
            changeCount += commit.changes.count
        } else {
            missedSince = waitingCount > 0 ? commits[takenCount].sequenceBefore : commit.sequenceBefore
            removeCommits()
        }
    }

    /// Takes what came first; nil when nothing waits.
    mutating func next() -> DatabaseChanges? {
        if let sequence = missedSince {
            missedSince = nil
            return .missed(since: sequence.value)
        }
        guard takenCount < commits.count else { return nil }
        let changes = commits[takenCount].changes
        commits[takenCount].changes = []
        takenCount += 1
        changeCount -= changes.count
        if takenCount == commits.count { removeCommits() } else if takenCount >= Self.commitLimit { compact() }
        return .committed(changes)
    }

    mutating func removeAll() {
        missedSince = nil
        removeCommits()
    }

    private mutating func removeCommits() {
        commits = []
        takenCount = 0
        changeCount = 0
    }

    private mutating func compact() {
        commits.removeSubrange(..<takenCount)
        takenCount = 0
    }
}
