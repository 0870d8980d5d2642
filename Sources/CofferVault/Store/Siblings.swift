package import CofferSealing

/// A store that is filled under a hidden name before it gets its own. There, it is created and opened like any other
/// store.
///
/// If the process is killed, the next creation or deletion in the directory removes the hidden store. Nobody removes it
/// while it is open, because it is locked then.
package struct HiddenStore: Sendable {
    private let location: StoreLocation
    private let sibling: StoreLocation
    private let otherOwners: OtherOwners

    /// The path of the store until it has its name.
    package var path: String { sibling.path }

    /// Chooses a place beside `path`. Nothing is made there yet.
    ///
    /// - Throws: what
    ///   ``LockedStore/create(path:key:passwordCost:attachmentNames:otherOwners:fileSystem:buildDatabase:)`` throws
    ///   about a place, and `databaseExists` (412) and `notAStore` (404).
    package init(
        beside path: String, otherOwners: OtherOwners = .refused, fileSystem: any FileSystem = SystemFileSystem()
    ) throws(CofferError) {
        location = try LockedStore.locationForCreating(path, otherOwners, fileSystem)
        try LockedStore.requireFree(location)
        sibling = location.beside(try Sibling.randomName())
        self.otherOwners = otherOwners
    }

    /// Gives the store, which is whole and closed, its name in one durable step.
    ///
    /// - Throws: `databaseExists` (412) and `notAStore` (404) if the name was taken meanwhile, `busy` (503) if another
    ///   process has locked the store, `ioFailed` (500). The store is removed then.
    package func giveName() throws(CofferError) {
        let lock = try lock()
        var place = sibling
        do {
            try LockedStore(lock, at: sibling, access: .readWrite, otherOwners: otherOwners).synchronizeAll()
            try place.move(to: location)
            try location.fileSystem.synchronize(location.parent)
        } catch {
            try? place.abandon(movingTo: sibling)
            lock.unlock()
            throw error
        }
        lock.unlock()
    }

    /// Removes the store, which must be closed.
    package func remove() {
        guard let lock = try? lock() else { return }
        try? location.fileSystem.removeTree(sibling.name, in: sibling.parent, first: Generation.firstNames)
        lock.unlock()
    }

    private func lock() throws(CofferError) -> StoreLock {
        guard case .locked(let lock) = try StoreLock.attempt(sibling.openDirectory(), at: sibling, for: .writing) else {
            throw CofferError(.busy, of: location.path, "another process is removing the unfinished store")
        }
        return lock
    }
}

/// A temporary directory beside a store, or beside the place of a future one. Only its owner can enter it, and it is
/// removed with the last reference to it. If the process is killed, the next creation or deletion beside it removes it.
package final class ScratchDirectory: Sendable {
    private let lock: StoreLock
    private let place: StoreLocation

    package var directory: Directory { lock.directory }

    /// - Throws: what making a directory beside `path` throws.
    package init(
        beside path: String, otherOwners: OtherOwners = .refused, fileSystem: any FileSystem = SystemFileSystem()
    ) throws(CofferError) {
        let location = try LockedStore.locationForCreating(path, otherOwners, fileSystem)
        (lock, place) = try Sibling.make(beside: location)
    }

    deinit {
        try? place.fileSystem.removeTree(place.name, in: place.parent)
        lock.unlock()
    }
}

/// The hidden directories beside a store in which one is built before it gets its name, and taken apart after it lost it.
///
/// Whoever works in one holds its lock. One that can be locked was left behind by a process that was killed.
enum Sibling {
    private static let prefix = ".coffer-"

    static func randomName() throws(CofferError) -> String { prefix + hexadecimal(try randomNumber()) }

    /// Whether `name` is one that only ``randomName()`` makes.
    static func isSiblingName(_ name: String) -> Bool {
        let digits = name.utf8.dropFirst(prefix.utf8.count)
        return name.utf8.starts(with: prefix.utf8) && digits.count == 16 && digits.allSatisfy(\.isLowerCaseHexDigit)
    }

    /// Makes a sibling of `location` and locks it.
    ///
    /// Someone who removes leftovers may see it before it is locked; then it is theirs, and another is made.
    static func make(beside location: StoreLocation) throws(CofferError) -> (StoreLock, at: StoreLocation) {
        // Each is lost only to someone who looks in the few microseconds before it is locked.
        for _ in 0..<100 {
            let sibling = location.beside(try randomName())
            try sibling.fileSystem.makeDirectory(sibling.name, in: sibling.parent)
            let attempt: StoreLock.Attempt
            do {
                attempt = try StoreLock.attempt(sibling.openDirectory(), at: sibling, for: .writing)
            } catch {
                if error.code == .databaseNotFound { continue }
                // Empty, and its name in nobody else's hand.
                try? sibling.fileSystem.removeDirectory(sibling.name, in: sibling.parent)
                throw error
            }
            if case .locked(let lock) = attempt { return (lock, sibling) }
        }
        throw CofferError(.busy, of: location.path, "other processes keep removing what is being made")
    }

    /// Removes what killed processes left beside `location`; never a sibling that someone holds, never another name.
    ///
    /// What can't be removed now stays for the next time: it must not keep a store from being made or deleted.
    static func removeLeftovers(beside location: StoreLocation) {
        let fileSystem = location.fileSystem
        guard let names = try? fileSystem.textNames(in: location.parent) else { return }
        for name in names where isSiblingName(name) {
            let sibling = location.beside(name)
            guard let directory = try? sibling.openDirectory(),
                case .locked(let lock)? = try? StoreLock.attempt(directory, at: sibling, for: .writing)
            else { continue }
            try? fileSystem.removeTree(name, in: location.parent, first: Generation.firstNames)
            lock.unlock()
        }
    }
}
