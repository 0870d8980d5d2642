internal import CofferSealing
internal import Dispatch
internal import Synchronization

/// Stands for a listener, to remove it by.
///
/// The listener does not end with its token: it is called until it is removed or its database is closed. Safe from any
/// thread.
public final class ChangeListenerToken: Sendable {
    private let listener: ChangeListener
    private let hub: ChangeHub
    private let number: Int

    init(_ listener: ChangeListener, in hub: ChangeHub) {
        self.listener = listener
        self.hub = hub
        number = hub.add(listener)
    }

    /// Removes the listener. No call of it begins after this; one that has begun may still be under way. Removing it again
    /// does nothing.
    public func remove() {
        hub.remove(number)
        listener.remove()
    }
}

/// Calls a closure with each commit, on a queue, one call after another.
///
/// Waking the queue's thread costs more than a call. Where commits follow each other closely, it sleeps a moment after
/// its calls, and finds several.
final class ChangeListener: ChangeObserver {
    /// How long after a call the next one begins at the earliest, if it has to be asked for.
    static let pause = DispatchTimeInterval.milliseconds(1)

    private struct State {
        var queue = ChangeQueue()
        /// Whether a call is on its way or under way: the next one is asked for at its end, so that they stay in order on
        /// any queue.
        var isScheduled = false
        /// When all that waited was told, and the pause after that is over.
        var restedAt = DispatchTime(uptimeNanoseconds: 0)
        var body: (@Sendable (DatabaseChanges) -> Void)?
    }

    private let state: Lock<State>
    private let documentID: String?
    private let queue: DispatchQueue
    private let calls: ListenerCalls

    init(
        on queue: DispatchQueue, documentID: String?, calls: ListenerCalls,
        _ body: @escaping @Sendable (DatabaseChanges) -> Void
    ) {
        self.queue = queue
        self.documentID = documentID
        self.calls = calls
        state = Lock(State(body: body))
    }

    func observe(_ commit: Commit) {
        guard let commit = commit.limited(to: documentID) else { return }
        let restedAt: DispatchTime? = state.withLock { state in
            guard state.body != nil else { return nil }
            state.queue.append(commit)
            defer { state.isScheduled = true }
            return state.isScheduled ? nil : state.restedAt
        }
        guard let restedAt else { return }
        if restedAt > .now() { queue.asyncAfter(deadline: restedAt) { self.deliverNext() } } else { schedule() }
    }

    /// What was committed before is still told.
    func finish() {}

    func remove() {
        // Let go of outside the lock: what the closure holds may end here.
        _ = state.withLock { state in
            state.queue.removeAll()
            defer { state.body = nil }
            return state.body
        }
    }

    private func schedule() { queue.async { self.deliverNext() } }

    private func deliverNext() {
        calls.run {
            let next = state.withLock { state in (state.body, state.queue.next()) }
            if let body = next.0, let changes = next.1 { body(changes) }
        }
        let goesOn = state.withLock { state in
            state.isScheduled = !state.queue.isEmpty
            if !state.isScheduled { state.restedAt = .now() + Self.pause }
            return state.isScheduled
        }
        if goesOn { schedule() }
    }
}

extension Commit {
    /// What it says of one document, or all where none is given; nil when that is nothing.
    func limited(to documentID: String?) -> Commit? {
        guard let documentID, isComplete else { return self }
        var own = self
        own.changes = changes.filter { $0.documentID.utf8.elementsEqual(documentID.utf8) }
        return own.changes.isEmpty ? nil : own
    }
}
