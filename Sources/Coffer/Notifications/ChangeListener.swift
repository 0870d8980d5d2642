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

/// The calls of listeners that are under way, so that a close can wait for them, and refuse to wait for its own.
final class ListenerCalls: Sendable {
    private struct State {
        /// The threads that are in a call, by the call's number.
        var threads: [Int: UInt] = [:]
        var lastNumber = 0
    }

    private let state = Monitor(State())

    /// Runs `body`, a listener's, on the calling thread.
    func run(_ body: () -> Void) {
        let number = state.withLock { state in
            state.lastNumber += 1
            state.threads[state.lastNumber] = currentThreadIdentity()
            return state.lastNumber
        }
        body()
        state.change { $0.threads[number] = nil }
    }

    /// Whether the calling thread is in a listener's call.
    var isInCall: Bool { state.withLock { $0.threads.values.contains(currentThreadIdentity()) } }

    /// Waits for the calls that are under way now.
    ///
    /// - Returns: false when some still are after `deadline`.
    func waitForThoseUnderWay(until deadline: ContinuousClock.Instant) -> Bool {
        let last = state.withLock(\.lastNumber)
        return state.wait { state in
            guard state.threads.keys.contains(where: { $0 <= last }) else { return .done(true) }
            let remaining = ContinuousClock.now.duration(to: deadline)
            return remaining > .zero ? .again(within: remaining) : .done(false)
        }
    }
}
