internal import CofferSealing
internal import Synchronization

/// What a feature keeps for an open store, or does for it automatically: made when it is first needed, and told what happens
/// to the store until that is closed.
///
/// The store knows no feature. A feature finds its companion by the type: see ``Companions``.
protocol StorageCompanion: AnyObject, Sendable {
    init()

    /// Whether transactions that begin now note each of their changes, and don't only count them.
    var needsChanges: Bool { get }

    /// Called by whoever holds the writer's lock, when an outermost transaction is durable. Must not wait for anybody.
    ///
    /// - Parameter commit: what it changed; nil if that was not a document.
    func didCommit(_ commit: Commit?, _ writer: borrowing Writer, in storage: Storage)

    /// Called when another generation takes the place of the current one, and when a close begins: what was begun for it is
    /// given up.
    func giveUpUnfinished()

    /// Waits for calls of the app's code that are under way.
    ///
    /// - Throws: `invalidArgument` (400) inside such a call, which would wait for itself; `busy` (503).
    func waitForCalls(until deadline: ContinuousClock.Instant, subject: String) throws(CofferError)

    /// Called once, when the store is closed.
    ///
    /// - Returns: what is to be let go of where nothing is locked: closures of the app's, whose ends may run its code.
    func finish() -> [any Sendable]
}

extension StorageCompanion {
    var needsChanges: Bool { false }
    func didCommit(_ commit: Commit?, _ writer: borrowing Writer, in storage: Storage) {}
    func giveUpUnfinished() {}
    func waitForCalls(until deadline: ContinuousClock.Instant, subject: String) throws(CofferError) {}
    func finish() -> [any Sendable] { [] }
}

/// The companions of one open store. Safe from any thread.
final class Companions: Sendable {
    private struct State {
        var made: [ObjectIdentifier: any StorageCompanion] = [:]
        var isFinished = false
    }

    private let state = Lock(State())

    /// The companion of that type, which is made at the first call; one of a closed store is finished from the beginning.
    subscript<Companion: StorageCompanion>(_ type: Companion.Type) -> Companion {
        let (companion, isLate) = state.withLock { state -> (Companion, Bool) in
            if let known = state.made[ObjectIdentifier(type)] as? Companion { return (known, false) }
            let new = Companion()
            state.made[ObjectIdentifier(type)] = new
            return (new, state.isFinished)
        }
        if isLate { _ = companion.finish() }
        return companion
    }

    /// Those that were made so far.
    var all: [any StorageCompanion] { state.withLock { Array($0.made.values) } }

    /// Finishes all, once, and those that are made from here on.
    ///
    /// - Returns: what is to be let go of where nothing is locked.
    func finish() -> [any Sendable] {
        let all = state.withLock { state in
            state.isFinished = true
            return Array(state.made.values)
        }
        return all.flatMap { $0.finish() }
    }
}

// What a store asks of all of them.

extension Storage {
    /// Waits for calls of the app's code that are under way.
    ///
    /// - Throws: `invalidArgument` (400) inside such a call, which would wait for itself; `busy` (503).
    func waitForCalls() throws(CofferError) {
        for companion in companions.all {
            try companion.waitForCalls(until: .now + settings.busyTimeout, subject: subject)
        }
    }

    /// Whether transactions that begin now note each of their changes.
    var areChangesNeeded: Bool { companions.all.contains { $0.needsChanges } }
}
