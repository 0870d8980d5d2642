package import CofferSealing
internal import Synchronization

/// A store that nobody else writes while this value lives: the directory, open and locked.
///
/// Opening goes step by step, and none is skipped by the types: ``open(path:access:timeout:otherOwners:fileSystem:)`` →
/// ``readManifest()`` → ``Manifest/unlock(with:)`` → ``generation(of:)``; then the layer above proves the database
/// itself and, where ``isStale(_:bindingSequence:)`` says so, ``recover(_:attachmentHasRow:updatingBindingRow:)`` finishes what a killed
/// process left. Nothing on the disk changes before that last step.
///
/// Calls may come from any thread, but one at a time. After ``close()``, and after the last reference is gone, the store
/// is unlocked.
package final class LockedStore: Sendable {
    package enum Access: Sendable {
        /// Alone: no other process has the store open.
        case readWrite
        /// Beside any number of others that read. Nothing is changed, not even what needs recovery.
        case readOnly
        /// Alone, and for nothing but to give the store a MANIFEST, which it may lack.
        case restoring
    }

    package let access: Access
    /// What was said about them when it was opened.
    let otherOwners: OtherOwners
    let location: StoreLocation
    let directory: Directory
    let lock: StoreLock
    private let isOpen = Atomic(true)
    /// Set for good when it has lost its name, and is taken apart.
    let isDeleted = Atomic(false)
    /// Held by what still changes the store although nobody waits for it.
    private let work = Lock(())
    private let lastWork = Lock<(@Sendable () -> Void)?>(nil)
    /// What is known of generations that are not the store's, by their names.
    let notes = Lock<[String: Note]>([:])

    init(_ lock: StoreLock, at location: StoreLocation, access: Access, otherOwners: OtherOwners) {
        self.lock = lock
        // A store that was just made was opened under another name.
        directory = lock.directory.renamed(to: location.path)
        self.location = location
        self.access = access
        self.otherOwners = otherOwners
    }

    /// Locks the store at `path`.
    ///
    /// Tries until `timeout` has passed, at least once; the calling thread waits meanwhile, as long as `goesOn` is true. The key
    /// is not needed yet.
    ///
    /// Throws `databaseNotFound` (404) when there is nothing of that name, `notAStore` (404) for anything but a directory
    /// with a MANIFEST, `notOwner` (403) for a store of another user that is to be written or can't be entered, and for root
    /// for any store of another user unless these are trusted, `unsupportedFormat` (501) on a network file system, where no lock can be trusted, and `busy` (503) when others hold it.
    package static func open(
        path: String, access: Access, timeout: Duration = .zero, otherOwners: OtherOwners = .refused,
        fileSystem: any FileSystem = SystemFileSystem(), while goesOn: () -> Bool = { true }
    ) throws(CofferError) -> LockedStore {
        let location = try StoreLocation(path: path, fileSystem: fileSystem)
        var waiting = Waiting(timeout: timeout)
        while true {
            let directory = try location.openDirectory()
            try refuseNetwork(directory, fileSystem)
            let owner =
                access == .restoring
                ? try Manifest.ownerIfLost(in: directory, fileSystem) : try Manifest.owner(in: directory, fileSystem)
            guard access == .readOnly || FileOwner.isRoot || owner.user == FileOwner.currentUser else {
                throw CofferError(.notOwner, of: path, "it belongs to user \(owner.user)")
            }
            // MANIFEST can be a second name of a file of root's, where the directory is somebody else's.
            try otherOwners.admit(owner, of: path)
            try otherOwners.admit(fileSystem.status(of: directory).owner, of: path)
            let use: LockUse = access == .readOnly ? .reading : .writing
            switch try StoreLock.attempt(directory, at: location, for: use) {
            case .locked(let lock):
                return LockedStore(lock, at: location, access: access, otherOwners: otherOwners)
            case .moved: continue
            case .held:
                guard try waiting.again(while: goesOn) else {
                    throw CofferError(.busy, of: path, "another process has the store open")
                }
            }
        }
    }

    static func refuseNetwork(_ directory: Directory, _ fileSystem: any FileSystem) throws(CofferError) {
        guard let kind = try fileSystem.networkFileSystem(of: directory) else { return }
        throw CofferError(
            .unsupportedFormat, of: directory.path,
            "it is on a network file system (\(kind)), where locks can't be trusted; keep stores on a local disk")
    }

    /// Where the store was when it was opened.
    package var path: String { location.path }

    /// Which store it is, whatever its path.
    package var identity: StoreIdentity { StoreIdentity(lock.identity) }

    /// Reads MANIFEST and checks what can be checked without a key.
    ///
    /// Throws `notAStore` (404) when it is missing, and as ``Manifest/init(bytes:)``.
    package func readManifest() throws(CofferError) -> Manifest {
        try checkOpen()
        return try Manifest.read(in: directory, fileSystem)
    }

    /// Unlocks the store. Whatever is open in it must be closed before. Again has no effect.
    package func close() {
        guard isOpen.exchange(false, ordering: .sequentiallyConsistent) else { return }
        work.withLock { _ in
            lastWork.withLock { $0.take() }?()
            lock.unlock()
        }
    }

    /// Has ``close()`` do `work` last, while nobody else can have the store yet: instead of any that was given before.
    package func whenClosed(_ work: @escaping @Sendable () -> Void) { lastWork.withLock { $0 = work } }

    /// Runs `body` unless the store is closed; closing waits for it.
    func whileOpen<Result>(_ body: () -> Result) -> Result? {
        work.withLock { _ in isOpen.load(ordering: .sequentiallyConsistent) ? body() : nil }
    }

    var fileSystem: any FileSystem { location.fileSystem }

    func checkOpen() throws(CofferError) {
        guard isOpen.load(ordering: .sequentiallyConsistent), !isDeleted.load(ordering: .sequentiallyConsistent) else {
            throw CofferError(.closed, of: path)
        }
    }

    func checkWritable() throws(CofferError) {
        try checkOpen()
        guard access == .readWrite else { throw CofferError(.readOnly, of: path) }
    }
}
