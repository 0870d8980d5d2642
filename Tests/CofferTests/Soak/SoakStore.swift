import Dispatch
import CofferSealing
import Foundation
import Synchronization

@testable import Coffer
import TestSupport

/// One store and its actors. They work on it for a moment, with openings and closings of their own; then all of them have
/// let go of it, and the store is verified and compared with what they know. Then they go on.
final class SoakStore: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case encrypted, keyed, unencrypted
    }

    let kind: Kind
    let number: Int
    let stores: TestStores
    let run: SoakRun
    let actors: [SoakActor]

    /// How often all actors together have raised the counter that they share.
    let raisedCount = Atomic(0)

    /// The storage that was last handed out, to tell an opening from a database that was open.
    private let lastStorage = Lock(Last())
    private struct Last { weak var storage: Storage? }

    var name: String { kind.rawValue }

    /// Opens the store always, whatever other keys come and go.
    var key: SymmetricKey? { kind == .unencrypted ? nil : TestStores.key }

    init(_ kind: Kind, _ number: Int, _ stores: TestStores, _ run: SoakRun) {
        self.kind = kind
        self.number = number
        self.stores = stores
        self.run = run
        actors = (0..<5).map { SoakActor($0, store: number, isTask: $0 >= 3) }
    }

    // MARK: Opening

    /// Options under which everything automatic happens as often as it can, by and large.
    func options(_ random: inout SeededNumbers) -> DatabaseOptions {
        var options = DatabaseOptions()
        options.encryptionKey = key
        options.keyedNames = kind == .keyed
        options.durability = random.isOne(in: 8) ? .full : .relaxed
        options.cacheByteCount = 1 << 20
        // What is not compacted while the store is open is due when it is opened again.
        options.compactsInBackground = !random.isOne(in: 3)
        options.compactionPolicy.leastByteCount = 64 << 10
        options.checkpointFrameCount = random.pick([4, 8, 64, 4096]) ?? 8
        options.idleReaderLimit = 2
        if random.isOne(in: 8) { options.busyTimeout = .milliseconds(30) }
        return options
    }

    func noteOpened(_ database: Database) {
        let isNew = lastStorage.withLock { last in
            defer { last.storage = database.storage }
            return last.storage !== database.storage
        }
        run.done.count(isNew ? "openings" : "joinings")
    }

    // MARK: Living

    func live() {
        var random = SeededNumbers(seed: run.seed, number)
        do {
            try create()
            // At least once, however busy the machine is.
            repeat {
                session(lasting: .milliseconds(50 + random.below(250)))
                guard run.failure == nil else { break }
                try verify()
                if random.isOne(in: 2) { try compare(&random) }
                if random.isOne(in: 12) {
                    try patiently { try stores.open(name, key: key).delete() }
                    try create()
                }
            } while !run.isOver
        } catch {
            run.fail("\(name): \(error)")
        }
    }

    private func create() throws {
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = key
        options.keyedNames = kind == .keyed
        for actor in actors { actor.model = SoakModel() }
        raisedCount.store(0, ordering: .relaxed)
        let database = try stores.manager.openDatabase(named: name, options: options)
        try database.save(SoakCounter(n: 0), withID: SoakCounter.id)
        try database.close()
        run.done.count("created")
    }

    private func session(lasting time: Duration) {
        let end = min(ContinuousClock.now + time, run.end)
        let group = DispatchGroup()
        for actor in actors {
            group.enter()
            if actor.isTask {
                Task { [self] in
                    await actor.workInTask(until: end, self)
                    group.leave()
                }
            } else {
                Thread { [self] in
                    actor.work(until: end, self)
                    group.leave()
                }.start()
            }
        }
        group.wait()
    }

    // MARK: Judging

    /// Tries `body` until it isn't busy. A compaction that is still under way keeps the store open with the options of whoever
    /// opened it, who may have had no patience.
    private func patiently<Value>(_ body: () throws -> Value) throws -> Value {
        let end = ContinuousClock.now + longestWait
        while true {
            do {
                return try body()
            } catch let error as CofferError where error.code == .busy && .now < end {
                Thread.sleep(forTimeInterval: 0.01)
            }
        }
    }

    private func verify() throws {
        run.note(name, "verify")
        let result = try patiently {
            try stores.manager.verifyDatabase(named: name, encryptionKey: key, level: .everything)
        }
        try soakExpect(result.isSound, "\(result.findings.count) findings: \(result.findings.prefix(5))")
        run.done.count("verified")
    }

    /// Compares all of it with what the actors know, while none of them is at work.
    private func compare(_ random: inout SeededNumbers) throws {
        run.note(name, "compare")
        // Whoever finds it open would find what has expired since it was opened.
        try patiently { try stores.open(name, key: key).close() }
        if random.isOne(in: 2) {
            try patiently {
                let database = try stores.open(name, key: key)
                try SoakActor.owe(database)
                try database.close()
            }
        }
        let opened = Date()
        var options = options(&random)
        options.busyTimeout = .seconds(60)
        let database = try stores.manager.openDatabase(named: name, options: options)
        noteOpened(database)
        defer { try? database.close() }
        var count = 1
        var isExact = true
        for actor in actors {
            try actor.compareAll(in: database, openedAt: opened)
            count += actor.model.documents.values.count { $0.current != nil }
            isExact = isExact && actor.model.documents.values.allSatisfy { $0.expiration == nil }
        }
        if isExact {
            let found = try database.documentCount
            try soakExpect(found == count, "\(found) documents, not \(count)")
        }
        let raised = try database.document(withID: SoakCounter.id).decode(SoakCounter.self).n
        let expected = raisedCount.load(ordering: .relaxed)
        try soakExpect(raised == expected, "the counter was raised \(expected) times and stands at \(raised)")
        run.note(name, nil)
        run.done.count("compared")
    }
}

/// What all actors of a store raise, one after another: no raise may be lost.
struct SoakCounter: Codable, Sendable {
    static let id = "shared counter"
    var n: Int
}
