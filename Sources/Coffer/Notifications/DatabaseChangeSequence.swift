internal import CofferSealing
internal import Synchronization

/// The commits of a database as they are made: see ``Database/changes``.
///
/// Begins where it was asked for, and keeps what was not taken yet. For one consumer: a second iteration
/// goes on where the first has stopped. A consumer that wants all changes asks the database for its own sequence.
public struct DatabaseChangeSequence: AsyncSequence, Sendable {
    /// The changes of one commit, or the fact that commits were missed.
    public typealias Element = DatabaseChanges

    /// A change of a database never fails to be told.
    public typealias Failure = Never

    private let subscription: ChangeSubscription

    init(_ hub: ChangeHub, documentID: String?) {
        subscription = ChangeSubscription(hub, documentID: documentID)
    }

    /// Takes the elements one after another.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: subscription) }

    /// Takes the elements of a ``DatabaseChangeSequence``.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let subscription: ChangeSubscription

        /// Waits for the next commit; nil when the database is closed and all were taken, or when the task is cancelled.
        public mutating func next() async -> DatabaseChanges? { await subscription.box.next() }
    }
}

/// Watches as long as somebody holds it.
private final class ChangeSubscription: Sendable {
    let box: ChangeBox
    private let hub: ChangeHub
    private let number: Int

    init(_ hub: ChangeHub, documentID: String?) {
        self.hub = hub
        box = ChangeBox(documentID: documentID)
        number = hub.add(box)
    }

    deinit { hub.remove(number) }
}

/// Where commits wait until a task takes them, or a task for a commit.
private final class ChangeBox: ChangeObserver {
    private struct State {
        var queue = ChangeQueue()
        var waiting: [(number: Int, continuation: CheckedContinuation<DatabaseChanges?, Never>)] = []
        var lastNumber = 0
        var isFinished = false
    }

    private let state = Lock(State())
    private let documentID: String?

    init(documentID: String?) { self.documentID = documentID }

    func observe(_ commit: Commit) {
        guard let commit = commit.limited(to: documentID) else { return }
        let first: (CheckedContinuation<DatabaseChanges?, Never>, DatabaseChanges?)? = state.withLock { state in
            state.queue.append(commit)
            // A waiting task finds nothing else there.
            return state.waiting.isEmpty ? nil : (state.waiting.removeFirst().continuation, state.queue.next())
        }
        first?.0.resume(returning: first?.1)
    }

    func finish() {
        let waiting = state.withLock { state in
            state.isFinished = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for (_, continuation) in waiting { continuation.resume(returning: nil) }
    }

    func next() async -> DatabaseChanges? {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let result: DatabaseChanges?? = state.withLock { state in
                    // A task that is cancelled after this calls cancel(_:), which waits for the lock.
                    if Task.isCancelled { return .some(nil) }
                    if let next = state.queue.next() { return next }
                    if state.isFinished { return .some(nil) }
                    state.waiting.append((number, continuation))
                    return nil
                }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            cancel(number)
        }
    }

    private func cancel(_ number: Int) {
        let continuation: CheckedContinuation<DatabaseChanges?, Never>? = state.withLock { state in
            guard let index = state.waiting.firstIndex(where: { $0.number == number }) else { return nil }
            return state.waiting.remove(at: index).continuation
        }
        continuation?.resume(returning: nil)
    }
}
