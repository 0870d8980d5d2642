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
