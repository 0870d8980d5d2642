internal import CofferRecords
internal import CofferSealing
internal import CofferVault
internal import Foundation

/// The open databases of this process, found by the identity of their directories.
///
/// A store's lock keeps other processes out; this keeps the threads of one process from meeting that lock. One instance
/// serves everybody who asks for the same store. It is held weakly: a database that nobody uses closes.
///
/// A store can outlive its `Database`: a blob refers to the `Storage` alone, and so does a compaction in the background.
/// Then it is handed out with a new instance. Waiting for its close could be waiting for the caller's own blob.
final class Registry: Sendable {
    static let shared = Registry()

    /// A place where a store is or may come to be.
    struct Place: Hashable, Sendable {
        var directory: StoreIdentity
        var fileName: String
    }

    private struct Entry {
        weak var database: Database?
        weak var storage: Storage?

        init(_ database: Database) {
            self.database = database
            storage = database.storage
        }
    }

    private struct State {
        var open: [StoreIdentity: Entry] = [:]
        /// Where a store is being opened, created or replaced right now.
        var inUse: Set<Place> = []
    }

    private let state = Monitor(State())

    private init() {}

    /// Runs `body` while no other thread of this process opens or creates a store at `place`.
    func withExclusiveUse<Value>(of place: Place, _ body: () throws(CofferError) -> Value) throws(CofferError) -> Value
    {
        state.wait { $0.inUse.insert(place).inserted ? .done(()) : .untilItChanges }
        defer { state.change { _ = $0.inUse.remove(place) } }
        return try body()
    }

    /// The open database with this identity. One that is closing right now is waited for, and gone then.
    ///
    /// - Parameter makeDatabase: makes another database around a storage whose own is gone.
    func database(_ identity: StoreIdentity, around makeDatabase: (Storage) -> Database) -> Database? {
        // A storage must not end while the lock is held, since ``remove(_:)`` learns of its end: what is found here and
        // not returned is closing, and whoever closes it holds it.
        state.wait { state in
            guard let entry = state.open[identity] else { return .done(nil) }
            if let database = entry.database {
                if !database.storage.isClosing { return .done(database) }
            } else if let storage = entry.storage, !storage.isClosing {
                let database = makeDatabase(storage)
                state.open[identity]?.database = database
                return .done(database)
            }
            return .untilItChanges
        }
    }

    /// Waits until no store with this identity is open.
    ///
    /// - Returns: false when somebody has its database, or something else keeps it open for longer than its own work may
    ///   take.
    func waitUntilClosed(_ identity: StoreIdentity) -> Bool {
        let start = ContinuousClock.now
        while true {
            let entry = state.withLock { $0.open[identity] }
            let (database, storage) = (entry?.database, entry?.storage)
            // Either may be let go of here, as the last reference.
            guard entry != nil else { return true }
            if let database, !database.storage.isClosing { return false }
            if let storage, !storage.isClosing, .now - start >= storage.settings.busyTimeout { return false }
            Thread.sleep(forTimeInterval: Self.pause)
        }
    }

    /// Seconds between two looks at a store that nobody has the database of.
    private static let pause = 0.005

    func add(_ database: Database, _ identity: StoreIdentity) {
        state.withLock { $0.open[identity] = Entry(database) }
    }

    func remove(_ identity: StoreIdentity) {
        state.change { $0.open[identity] = nil }
    }
}
