package import CofferSealing

/// A directory for files that are needed for the length of some work: beside a store or where one will be, for its owner alone,
/// and gone with its last reference. One that a killed process leaves is removed by the next creation or deletion beside it.
package final class ScratchDirectory: Sendable {
    private let lock: StoreLock
    private let place: StoreLocation

    package var directory: Directory { lock.directory }

    /// - Throws: as making a directory in that of `path` does.
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
