package import CofferSealing

/// A store that is filled under a hidden name before it gets its own, by whoever opens it there as any other.
///
/// A process that is killed leaves what the next creation or deletion in the directory removes. Nobody removes it while it is
/// open, since whoever has it open holds its lock.
package struct HiddenStore: Sendable {
    private let location: StoreLocation
    private let sibling: StoreLocation
    private let otherOwners: OtherOwners

    /// Where it is until it has its name.
    package var path: String { sibling.path }

    /// A place beside `path`, where nothing is made yet.
    ///
    /// - Throws: as ``LockedStore/create(path:key:passwordCost:attachmentNames:otherOwners:fileSystem:buildDatabase:)`` does
    ///   of a place, and `databaseExists` (412), `notAStore` (404).
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
    /// - Throws: `databaseExists` (412) and `notAStore` (404) where the name was taken meanwhile, `busy` (503) where somebody
    ///   has the store, `ioFailed` (500). The store is removed then.
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

    /// Removes what is there, once it is closed.
    package func remove() {
        guard let lock = try? lock() else { return }
        try? location.fileSystem.removeTree(sibling.name, in: sibling.parent, first: Generation.firstNames)
        lock.unlock()
    }

    private func lock() throws(CofferError) -> StoreLock {
        guard case .locked(let lock) = try StoreLock.attempt(sibling.openDirectory(), at: sibling, for: .writing) else {
            throw CofferError(.busy, of: location.path, "another process removes what was being made")
        }
        return lock
    }
}
