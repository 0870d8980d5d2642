package import CofferSealing

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
