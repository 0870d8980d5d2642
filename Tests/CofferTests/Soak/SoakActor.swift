import Foundation

@testable import Coffer
import TestSupport

/// One thread or task, and what it wrote: only it writes documents whose ids begin with its name.
///
/// Unchecked, since it works in one session at a time, and is looked at between them.
final class SoakActor: @unchecked Sendable {
    let number: Int
    let store: Int
    let isTask: Bool
    var model = SoakModel()
    /// Numbers of contents, unique in the store.
    private var lastContent = 0
    private var actionCount = 0
    private var episodeCount = 0

    init(_ number: Int, store: Int, isTask: Bool) {
        self.number = number
        self.store = store
        self.isTask = isTask
    }

    var name: String { "a\(number)" }

    func nextContent() -> Int {
        lastContent += 1
        return lastContent * 10 + number
    }

    // MARK: A thread

    /// Works on the store for a while, asking for it again and again.
    func work(until end: ContinuousClock.Instant, _ store: SoakStore) {
        while ContinuousClock.now < end && !store.run.isOver {
            do {
                try episode(store)
            } catch {
                store.run.fail("\(store.name), \(name): \(error)")
            }
        }
        store.run.note("\(store.name) \(name)", nil)
    }

    private func episode(_ store: SoakStore) throws {
        var random = nextEpisode(store)
        guard let database = try open(store, &random) else { return }
        model.acknowledged = []
        let sequences = Shared(0)
        let token = random.isOne(in: 3) ? database.addChangeListener { noteTold($0, sequences, store.run) } : nil
        defer { token?.remove() }
        for _ in 0..<1 + random.below(16) {
            var choice = nextAction(store)
            let action = choice.pick(SoakAction.ofThreads) ?? .save
            guard
                try perform(
                    action, in: store, { try self.act(action, SoakPlace(store, database), &choice) })
            else { break }
        }
        if !random.isOne(in: 4) { _ = try perform(.owe, in: store) { try Self.owe(database) } }
        switch random.below(4) {
        case 0: _ = try perform(.close, in: store) { try database.close() }
        case 1:
            // Two at once.
            let closing = DispatchGroup()
            closing.enter()
            Thread {
                try? database.close()
                closing.leave()
            }.start()
            _ = try perform(.close, in: store) { try database.close() }
            closing.wait()
        default: store.run.done.count("dropped")
        }
    }

    private func open(_ store: SoakStore, _ random: inout SeededNumbers) throws -> Database? {
        var database: Database?
        let options = store.options(&random)
        _ = try perform(.open, in: store) {
            database = try store.stores.manager.openDatabase(named: store.name, options: options)
        }
        if let database { store.noteOpened(database) }
        model.trail.note("opened")
        return database
    }

    /// - Returns: whether the database is still open.
    private func perform(_ action: SoakAction, in store: SoakStore, _ body: () throws -> Void) throws -> Bool {
        store.run.note("\(store.name) \(name)", "\(action) \(actionCount)")
        do {
            try body()
            store.run.done.count("\(action)")
            return true
        } catch {
            return try judge(error, of: action, store)
        }
    }

    // MARK: A task

    /// The same in a task, through the `async` forms.
    func workInTask(until end: ContinuousClock.Instant, _ store: SoakStore) async {
        while ContinuousClock.now < end && !store.run.isOver {
            do {
                try await episodeInTask(store)
            } catch {
                store.run.fail("\(store.name), \(name): \(error)")
            }
        }
        store.run.note("\(store.name) \(name)", nil)
    }

    private func episodeInTask(_ store: SoakStore) async throws {
        var random = nextEpisode(store)
        let options = store.options(&random)
        let database: Database
        do {
            store.run.note("\(store.name) \(name)", "open \(actionCount)")
            database = try await store.stores.manager.openDatabase(named: store.name, options: options)
            store.run.done.count("open")
        } catch {
            _ = try judge(error, of: .open, store)
            return
        }
        store.noteOpened(database)
        model.trail.note("opened")
        model.acknowledged = []
        let place = SoakPlace(store, database)
        let told = random.isOne(in: 3) ? Task { [changes = database.changes] in await collect(changes) } : nil
        let live = random.isOne(in: 3) ? Task { [name] in try await place.watch(owner: name) } : nil
        for _ in 0..<1 + random.below(16) {
            var choice = nextAction(store)
            let action = choice.pick(SoakAction.ofTasks) ?? .save
            guard try await perform(action, in: store, { try await self.actInTask(action, place, &choice) }) else {
                break
            }
        }
        live?.cancel()
        if random.isOne(in: 2) {
            _ = try await perform(.owe, in: store) {
                try await database.storage.inBackground { try Self.owe(database) }
            }
        }
        if told != nil || random.isOne(in: 3) {
            _ = try await perform(.close, in: store) { try await database.close() }
            // One that others keep busy stays open, and nothing would end what is told.
            let isClosed = database.storage.isClosing
            if !isClosed { told?.cancel() }
            if let told, let revisions = await told.value, isClosed {
                let missing = model.acknowledged.filter { !revisions.contains($0) }
                try soakExpect(missing.isEmpty, "\(missing.count) acknowledged revisions were not told: \(missing)")
                store.run.done.count("told")
            }
        } else {
            store.run.done.count("dropped")
        }
        if let live { _ = try await perform(.live, in: store) { try await live.value } }
    }

    private func perform(
        _ action: SoakAction, in store: SoakStore, _ body: () async throws -> Void
    ) async throws -> Bool {
        store.run.note("\(store.name) \(name)", "\(action) \(actionCount)")
        do {
            try await body()
            store.run.done.count("\(action)")
            return true
        } catch {
            return try judge(error, of: action, store)
        }
    }

    // MARK: Both

    private func nextEpisode(_ store: SoakStore) -> SeededNumbers {
        episodeCount += 1
        return SeededNumbers(seed: store.run.seed, store.number, number, 0, episodeCount)
    }

    /// What an action draws from: it follows from the number of the action, and not from what others drew.
    private func nextAction(_ store: SoakStore) -> SeededNumbers {
        actionCount += 1
        return SeededNumbers(seed: store.run.seed, store.number, number, 1, actionCount)
    }

    /// What may happen to any call: others close the database, or keep it from its turn.
    ///
    /// - Returns: whether the database is still open.
    private func judge(_ error: any Error, of action: SoakAction, _ store: SoakStore) throws -> Bool {
        model.trail.note("\(error)")
        switch (error as? CofferError)?.code {
        case .closed?:
            store.run.done.count("closed")
            return false
        case .busy?:
            store.run.done.count("busy")
            return true
        case .cancelled? where action == .live || action == .cancel:
            return true
        default:
            throw SoakMismatch("\(action), action \(actionCount): \(error)\n  after \(model.trail.text)")
        }
    }
}

/// Where an action takes place.
struct SoakPlace: Sendable {
    let store: SoakStore
    let database: Database

    init(_ store: SoakStore, _ database: Database) {
        self.store = store
        self.database = database
    }
}

/// Sees that what a listener is told comes in order.
private func noteTold(_ commit: DatabaseChanges, _ last: Shared<Int>, _ run: SoakRun) {
    for change in commit.changes {
        if change.sequence < last.value { run.fail("sequence \(change.sequence) was told after \(last.value)") }
        last.value = change.sequence
    }
}

/// All revisions that a listener is notified of until the database is closed; nil if it missed some.
private func collect(_ changes: DatabaseChangeSequence) async -> Set<RevisionID>? {
    var revisions: Set<RevisionID>? = []
    for await commit in changes {
        if case .missed = commit { revisions = nil }
        revisions?.formUnion(commit.changes.compactMap(\.revisionID))
    }
    return revisions
}
