internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Synchronization

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
