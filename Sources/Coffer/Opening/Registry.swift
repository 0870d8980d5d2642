internal import CofferSealing
internal import CofferVault
internal import Foundation

/// The open databases of this process, found by the identity of their directories.
///
/// A store's lock keeps other processes out; this keeps the threads of one process from meeting that lock. One instance
/// serves everybody who asks for the same store. It is held weakly: a database that nobody uses closes.
final class Registry: Sendable {
    static let shared = Registry()

    /// A place where a store is or may come to be.
    struct Place: Hashable, Sendable {
        var directory: StoreIdentity
        var fileName: String
    }

    private final class Entry {
        weak var database: Database?
        init(_ database: Database) { self.database = database }
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
    func database(_ identity: StoreIdentity) -> Database? {
        condition.lock()
        defer { condition.unlock() }
        while let entry = unsafe state.open[identity] {
            if let database = entry.database, !database.storage.isClosing { return database }
            condition.wait()
        }
        return nil
    }

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
