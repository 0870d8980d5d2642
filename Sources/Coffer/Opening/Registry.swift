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

    private final class Entry {
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

    // NSCondition is thread safe by its contract; `state` is only touched while it is locked.
    private let condition = NSCondition()
    private nonisolated(unsafe) var state = State()

    private init() {}

    /// Runs `body` while no other thread of this process opens or creates a store at `place`.
    func withExclusiveUse<Value>(of place: Place, _ body: () throws(CofferError) -> Value) throws(CofferError) -> Value
    {
        condition.lock()
        while unsafe !state.inUse.insert(place).inserted { condition.wait() }
        condition.unlock()
        defer {
            condition.lock()
            _ = unsafe state.inUse.remove(place)
            condition.broadcast()
            condition.unlock()
        }
        return try body()
    }

    /// The open database with this identity. One that is closing right now is waited for, and gone then.
    ///
    /// - Parameter makeDatabase: makes another database around a storage whose own is gone.
    func database(_ identity: StoreIdentity, around makeDatabase: (Storage) -> Database) -> Database? {
        condition.lock()
        defer { condition.unlock() }
        // A storage must not end while the lock is held, since its end is told to ``remove(_:)``: what is found here and not
        // returned is closing, and whoever closes it holds it.
        while let entry = unsafe state.open[identity] {
            if let database = entry.database {
                if !database.storage.isClosing { return database }
            } else if let storage = entry.storage, !storage.isClosing {
                let database = makeDatabase(storage)
                entry.database = database
                return database
            }
            condition.wait()
        }
        return nil
    }

    /// Waits until no store with this identity is open.
    ///
    /// - Returns: false when somebody has its database, or something else keeps it open for longer than its own work may
    ///   take.
    func waitUntilClosed(_ identity: StoreIdentity) -> Bool {
        let start = ContinuousClock.now
        while true {
            condition.lock()
            let entry = unsafe state.open[identity]
            let (database, storage) = (entry?.database, entry?.storage)
            condition.unlock()
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
        condition.lock()
        unsafe state.open[identity] = Entry(database)
        condition.unlock()
    }

    func remove(_ identity: StoreIdentity) {
        condition.lock()
        unsafe state.open[identity] = nil
        condition.broadcast()
        condition.unlock()
    }
}
