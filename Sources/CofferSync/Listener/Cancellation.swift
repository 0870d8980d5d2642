internal import Coffer
internal import Synchronization

/// Tells work on another thread that the task that waits for it was cancelled: its client has gone, or the server stops.
final class Cancellation: Sendable {
    private let isRequested = Atomic(false)

    func request() { isRequested.store(true, ordering: .relaxed) }

    /// - Throws: `CancellationError` once it was requested.
    func check() throws {
        if isRequested.load(ordering: .relaxed) { throw CancellationError() }
    }
}

extension Database {
    /// Runs `body` as one transaction: see `inTransaction`. It can look whether the task was cancelled, and throw, which takes
    /// back what it has done.
    func inTransactionUntilCancelled<Value: Sendable>(
        _ body: @escaping @Sendable (Cancellation) throws -> Value
    ) async throws -> Value {
        let cancellation = Cancellation()
        return try await withTaskCancellationHandler {
            try await inTransaction { try body(cancellation) }
        } onCancel: {
            cancellation.request()
        }
    }
}
