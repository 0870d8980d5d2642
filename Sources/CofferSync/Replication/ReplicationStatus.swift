internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Synchronization

/// What a ``Replication`` is doing.
public struct ReplicationStatus: Sendable {
    /// What it does.
    public enum Activity: Sendable {
        /// Nothing: it was not started, has come to its end, was stopped, or can't go on.
        case stopped
        /// It waits to try again: the server is not there, or has no time.
        case offline
        /// It has exchanged everything, and waits for more.
        case idle
        /// It exchanges documents.
        case active
    }

    /// What it does.
    public internal(set) var activity = Activity.stopped

    /// How many changed documents it has dealt with since it was started, those among them that were known already and those
    /// that were refused.
    public internal(set) var completedCount = 0

    /// How many it knows of, those included. Grows as more are found.
    public internal(set) var totalCount = 0

    /// How many documents were refused, by either side.
    public internal(set) var failedCount = 0

    /// How many revisions were brought to where they were missing.
    var writtenCount = 0

    /// What went wrong last, but for single documents: a ``SyncError`` or a `CofferError`. Nil once it goes on.
    public internal(set) var error: (any Error)?
}

/// What a replication tells of itself, to whoever looks or listens.
final class ReplicationMonitor: Sendable {
    /// What messages of a log are about, such as `pull into database people`: no address, which may hold more than a name.
    let subject: String

    init(subject: String) { self.subject = subject }

    private struct State {
        var failures: [DocumentFailure] = []
        /// Of documents that have failed: each counts once.
        var failedIDs: Set<ByteKey> = []
        var lastNumber = 0
        var failureListeners: [Int: AsyncStream<DocumentFailure>.Continuation] = [:]
    }

    /// So many failures are kept.
    static let failureLimit = 1000
    /// So many ids are kept; documents beyond them count once for each failure.
    private static let idLimit = 100_000

    private let latest = LatestValue(ReplicationStatus())
    private let state = Lock(State())

    var status: ReplicationStatus { latest.value }
    var failures: [DocumentFailure] { state.withLock { $0.failures } }

    func change(_ change: (inout ReplicationStatus) -> Void) { latest.change(change) }

    /// Forgets what an earlier run said.
    func restart() {
        state.withLock { state in
            state.failures = []
            state.failedIDs = []
        }
        change { $0 = ReplicationStatus(activity: .active) }
    }

    func fail(_ failure: DocumentFailure) {
        let (listeners, isNew) = state.withLock { state in
            if state.failures.count < Self.failureLimit { state.failures.append(failure) }
            let id = ByteKey(failure.documentID)
            var isNew = !state.failedIDs.contains(id)
            if isNew, state.failedIDs.count < Self.idLimit { isNew = state.failedIDs.insert(id).inserted }
            return (Array(state.failureListeners.values), isNew)
        }
        for listener in listeners { listener.yield(failure) }
        CofferLog.write(.warning, .sync, subject, "a document stayed away", LogMessage.details(ofSync: failure.error))
        if isNew { change { $0.failedCount += 1 } }
    }

    // MARK: Listening

    func statuses() -> AsyncStream<ReplicationStatus> { latest.values() }

    func failureStream() -> AsyncStream<DocumentFailure> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DocumentFailure.self, bufferingPolicy: .bufferingOldest(Self.failureLimit))
        let number = state.withLock { state in
            state.lastNumber += 1
            state.failureListeners[state.lastNumber] = continuation
            return state.lastNumber
        }
        continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.failureListeners[number] = nil } }
        return stream
    }

    deinit {
        for listener in state.withLock({ Array($0.failureListeners.values) }) { listener.finish() }
    }
}

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
