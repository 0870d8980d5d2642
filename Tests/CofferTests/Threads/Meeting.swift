import Foundation
import Synchronization
import Testing

@testable import Coffer

/// One of two that meet: does something on a thread of its own, and keeps what came of it.
final class Side<Value: Sendable>: Sendable {
    private let result = Shared<Result<Value, any Error>?>(nil)
    private let hasEnded = Gate()

    init(_ body: @escaping @Sendable () throws -> Value) {
        Thread { [result, hasEnded] in
            result.value = Result(catching: body)
            hasEnded.open()
        }.start()
    }

    var isOver: Bool { result.value != nil }

    /// Whether it is still at work after a while in which it would have ended if nothing kept it.
    var isKept: Bool {
        for _ in 0..<75 {
            if isOver { return false }
            Thread.sleep(forTimeInterval: 0.002)
        }
        return true
    }

    /// What it returned; throws what it threw. Fails where it never ends.
    @discardableResult
    func outcome() throws -> Value {
        hasEnded.wait()
        return try #require(result.value, "it hangs").get()
    }
}

/// A place where one side is held in the middle of its work, the first time that it comes there, until the other has come.
final class Hold: Sendable {
    private let armed: Atomic<Bool>
    private let reached = Atomic(false)
    private let isReached = Gate()
    private let mayGoOn = Gate()

    init(isArmed: Bool = true) { armed = Atomic(isArmed) }

    func arm() { armed.store(true, ordering: .sequentiallyConsistent) }

    /// Whether the next who comes is held.
    var isArmed: Bool { armed.load(ordering: .sequentiallyConsistent) }

    /// Whether somebody was held.
    var hasHeld: Bool { reached.load(ordering: .sequentiallyConsistent) }

    /// Called by the side that is held.
    func pause() {
        guard armed.exchange(false, ordering: .sequentiallyConsistent) else { return }
        reached.store(true, ordering: .sequentiallyConsistent)
        isReached.open()
        mayGoOn.wait()
    }

    /// Waits until somebody is held here.
    func wait() throws { try #require(isReached.wait(), "nobody came") }

    func release() { mayGoOn.open() }
}

/// Holds a thread between SQLite's commit and everything that follows it: see ``Storage/hold(atEndOfCommit:)``.
private final class EndOfCommit {
    private let stop: Hold
    init(_ stop: Hold) { self.stop = stop }
    deinit { stop.pause() }
}

extension Storage {
    /// Has the transaction under way be held right after SQLite has committed it, before anybody is told. What would undo
    /// it is let go of then.
    func hold(atEndOfCommit stop: Hold) {
        let end = EndOfCommit(stop)
        whenRolledBack { withExtendedLifetime(end) {} }
    }
}

/// What happens to a store while somebody is in the middle of something else.
enum Moment: String, CaseIterable, Sendable {
    case close, deletion, keyChange, renewal, backup, replacement

    /// Those after which the database is not open any more.
    static let ends: [Moment] = [.close, .deletion, .replacement]
    static let others: [Moment] = [.keyChange, .renewal, .backup]

    func act(on database: Database, in stores: TestStores) throws {
        switch self {
        case .close: try database.close()
        case .deletion: try database.delete()
        case .keyChange: try database.changeEncryptionKey(to: key)
        case .renewal:
            try database.storage.exclusively { () throws(CofferError) in try database.storage.renewWriter() }
        case .backup: try database.backup(to: stores.url("copy"), encryptionKey: key)
        case .replacement:
            let other = try stores.open("other")
            try other.save(json: json(1), withID: "other")
            try other.close()
            try database.close()
            try stores.manager.replaceDatabase(
                named: "db", withDatabaseAt: stores.url("other"), encryptionKey: TestStores.key)
        }
    }

    /// The key that opens the store afterwards.
    var key: SymmetricKey { self == .keyChange ? testKey(9) : TestStores.key }

    /// Closes the store and opens it again. Expects that it is sound, that its documents have these contents, and that
    /// nothing is left over: no staged file, and no old generation.
    func expectSound(_ stores: TestStores, closing database: Database? = nil, holds contents: [String: Data?]) throws {
        try database?.close()
        if self == .deletion {
            #expect(!stores.manager.databaseExists(named: "db"))
            #expect(try FileManager.default.contentsOfDirectory(atPath: stores.directory.path) == [])
            return
        }
        let again = try stores.existing(key: key)
        let expected: [String: Data?] = self == .replacement ? ["other": nil] : contents
        #expect(try again.documentIDs() == expected.keys.sorted())
        for (id, content) in expected {
            let revision = try again.document(withID: id).currentRevision
            #expect(try revision?.attachment(named: "a")?.content == content)
        }
        #expect(try again.verify().findings == [])
        try again.close()
        let generation = try stores.generation()
        for folder in ["incoming", "attachments"] {
            let names = try FileManager.default.contentsOfDirectory(atPath: generation.appending(path: folder).path)
            #expect(names.count == (folder == "incoming" ? 0 : expected.values.count { $0 != nil }))
        }
        #expect(try stores.generations().count == 1)
    }
}
