internal import CofferSealing
internal import Synchronization

/// How many requests of a kind are on their way at a time.
///
/// A server that is far away gets more, so that the way there and back is waited for less often. One that takes long for each
/// gets no more than two: it would answer the last of many after everybody has given up.
final class RequestWindow: Sendable {
    /// So many however long the server takes: it reads one while it works on the other.
    static let least = 2

    private let state = Lock(least)
    private let limit: Int
    private let patience: Duration

    /// - Parameters:
    ///   - limit: so many at most.
    ///   - patience: a server that sends nothing for that time doesn't answer.
    init(limit: Int = 8, patience: Duration) {
        self.limit = limit
        self.patience = patience
    }

    var count: Int { state.withLock { $0 } }

    /// Does `work`, and notes how long it took.
    func measure<Value>(_ work: () async throws -> Value) async throws -> Value {
        let start = ContinuousClock.now
        let value = try await work()
        note(.now - start)
        return value
    }

    /// Notes that a request was answered after that time: a tenth of what is borne leaves room for all others before it.
    func note(_ duration: Duration) {
        state.withLock { count in
            count = duration < patience / 10 ? min(count + 1, limit) : Self.least
        }
    }
}
