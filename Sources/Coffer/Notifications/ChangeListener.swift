public import Dispatch
internal import CofferSealing
internal import Synchronization

extension Database {
    // MARK: Watching

    /// The commits of this database from here on, one element each, in their order. What was changed before is what
    /// ``changes(since:options:)`` lists; what one commit changed is its ``DatabaseChanges/changes``.
    ///
    /// ```swift
    /// for await commit in database.changes {
    ///     switch commit {
    ///     case .committed(let changes): show(changes.map(\.documentID))
    ///     case .missed(let sequence): catchUp(since: sequence)
    ///     }
    /// }
    /// ```
    ///
    /// An element comes when its commit is on the disk, and none for what was rolled back, an inner transaction's changes
    /// included. Local documents are not told of. Up to 1,024 commits wait for a slow consumer, with 100,000 changes in all
    /// of them; one that is further behind gets one ``DatabaseChanges/missed(since:)`` instead. The sequence ends when the
    /// database is closed, and does not keep it open. A change of the database's key does not end it.
    public var changes: DatabaseChangeSequence { DatabaseChangeSequence(storage.hub, documentID: nil) }

    /// Has `listener` called with each commit from here on, in their order and one call after another.
    ///
    /// What it receives, and when, is as in ``changes``, but for a pause of about a millisecond after a call, in which
    /// commits that follow closely gather. It may read and write the database; what it reads may be newer than
    /// what it receives. It can't close or delete the database, or change its key, which waits for listeners: that is a
    /// 400. It is called until it is removed. A commit before a close is delivered even after it.
    ///
    /// - Parameters:
    ///   - queue: where it is called. Default: nil, a queue of its own.
    ///   - listener: what is called.
    /// - Returns: what to remove it by. The listener does not end with it.
    @discardableResult
    public func addChangeListener(
        on queue: DispatchQueue? = nil, _ listener: @escaping @Sendable (DatabaseChanges) -> Void
    ) -> ChangeListenerToken {
        storage.addChangeListener(on: queue, documentID: nil, listener)
    }

    /// Removes a listener: see ``ChangeListenerToken/remove()``.
    public func removeChangeListener(_ token: ChangeListenerToken) { token.remove() }
}

extension Document {
    // MARK: Watching

    /// The commits from here on that change this document, with what they change of it: see ``Database/changes``.
    public var changes: DatabaseChangeSequence { DatabaseChangeSequence(database.storage.hub, documentID: documentID) }

    /// Has `listener` called with each commit from here on that changes this document: see
    /// ``Database/addChangeListener(on:_:)``.
    @discardableResult
    public func addChangeListener(
        on queue: DispatchQueue? = nil, _ listener: @escaping @Sendable (DatabaseChanges) -> Void
    ) -> ChangeListenerToken {
        database.storage.addChangeListener(on: queue, documentID: documentID, listener)
    }
}

extension Storage {
    fileprivate func addChangeListener(
        on queue: DispatchQueue?, documentID: String?, _ body: @escaping @Sendable (DatabaseChanges) -> Void
    ) -> ChangeListenerToken {
        let queue = queue ?? DispatchQueue(label: "coffer.listener", qos: .userInitiated)
        return ChangeListenerToken(
            ChangeListener(on: queue, documentID: documentID, calls: hub.calls, body), in: hub)
    }
}

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
