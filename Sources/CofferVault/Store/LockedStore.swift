package import CofferSealing
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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

/// What a process that is root does about stores of other users.
///
/// SQLite is given paths. Whoever owns a directory can put a link to any file in the place of a name between the look at it
/// and SQLite's opening of it; as root, SQLite follows the link, truncates the file behind it and gives it away.
package enum OtherOwners: Sendable {
    /// It keeps out of them.
    case refused
    /// It takes that risk.
    case trusted

    /// Throws `notOwner` (403) when this process is root, and `owner`, of what is at `path`, is not.
    func admit(_ owner: @autoclosure () throws(CofferError) -> FileOwner, of path: String) throws(CofferError) {
        guard self == .refused, FileOwner.isRoot else { return }
        let owner = try owner()
        guard owner.user != FileOwner.root else { return }
        throw CofferError(
            .notOwner, of: path,
            "it belongs to user \(owner.user), who could make root overwrite any file: do this as that user")
    }
}

extension LockedStore {
    /// Deletes the store, and unlocks what is left of it: nothing. Whatever is open in it must be closed before; content that
    /// is being staged is given up.
    ///
    /// It first loses its name in one step, durably, and is then taken apart. So whatever happens, a power cut included,
    /// the store is whole or its name is free, and what a killed process leaves is removed by the next creation or
    /// deletion in the same directory.
    ///
    /// Throws `readOnly` (403) when it was locked for reading, `ioFailed` (500) when it is no longer where it was opened.
    /// After an error while it is taken apart the name is free and the store closed; after an earlier one it is whole
    /// and open.
    package func delete() throws(CofferError) {
        try checkWritable()
        guard try location.status()?.identity == lock.identity else {
            throw CofferError(.ioFailed, of: path, "the store was moved while it was open")
        }
        let sibling = location.beside(try Sibling.randomName())
        try fileSystem.renameWithoutReplacing(location.name, in: location.parent, to: sibling.name, in: sibling.parent)
        do {
            try fileSystem.synchronize(location.parent)
        } catch {
            // Whether the name would stay away is open, so what it names must stay whole.
            do {
                try fileSystem.renameWithoutReplacing(
                    sibling.name, in: sibling.parent, to: location.name, in: location.parent)
            } catch {
                close()
            }
            throw error
        }
        isDeleted.store(true, ordering: .sequentiallyConsistent)
        defer {
            close()
            Sibling.removeLeftovers(beside: location)
        }
        try takeApart(sibling)
    }

    /// Content is staged without a lock: a file that was let in before the deletion may come into a directory that was
    /// emptied. None is let in any more, so each attempt finds fewer.
    private func takeApart(_ sibling: StoreLocation) throws(CofferError) {
        for _ in 0..<100 {
            do throws(CofferError) {
                return try fileSystem.removeTree(sibling.name, in: sibling.parent, first: Generation.firstNames)
            } catch  where error.systemErrorNumber == ENOTEMPTY {}
        }
        try fileSystem.removeTree(sibling.name, in: sibling.parent, first: Generation.firstNames)
    }
}

extension LockedStore {
    /// What in the store's directory is neither a file nor a folder, or can't be listed: nothing of a store's own is, and
    /// nobody looks into it.
    ///
    /// - Parameter depthLimit: how many levels of folders are looked into; a store's own are three.
    package func specialEntries(depthLimit: Int = 1000) throws(CofferError) -> [(path: String, what: String)] {
        try checkOpen()
        var walk = try TreeWalk(below: directory, fileSystem, depthLimit: depthLimit)
        var entries: [(path: String, what: String)] = []
        while let step = try walk.step() {
            switch step {
            case .entry(let name, _, let status):
                if status.kind != .file && status.kind != .directory {
                    entries.append((walk.path(of: name), status.kind.description))
                }
            case .unreadable(let name, _, _): entries.append((walk.path(of: name), "a folder that can't be listed"))
            case .tooDeep(let name, _): entries.append((walk.path(of: name), "a folder below \(depthLimit) others"))
            case .end: break
            }
        }
        return entries
    }
}

/// A store's directory, open and locked. The lock is the directory's own (`flock` on its descriptor, no lock file): it
/// follows the store when it is renamed and ends with the process that holds it, however that ends.
final class StoreLock: Sendable {
    let directory: Directory
    let identity: FileIdentity
    private let fileSystem: any FileSystem

    private init(_ directory: Directory, identity: FileIdentity, fileSystem: any FileSystem) {
        self.directory = directory
        self.identity = identity
        self.fileSystem = fileSystem
    }

    deinit { unlock() }

    /// Ends the lock now, also when a child process has inherited the descriptor. Again has no effect.
    func unlock() { fileSystem.unlock(directory) }

    /// Locks `directory`, which was opened as `location`, without waiting.
    static func attempt(
        _ directory: Directory, at location: StoreLocation, for use: LockUse
    ) throws(CofferError) -> Attempt {
        let fileSystem = location.fileSystem
        let identity = try fileSystem.status(of: directory).identity
        guard try fileSystem.lock(directory, for: use) else { return .held }
        let lock = StoreLock(directory, identity: identity, fileSystem: fileSystem)
        // Between the opening and the lock, the store may have been renamed or replaced.
        guard try location.status()?.identity == lock.identity else { return .moved }
        return .locked(lock)
    }

    enum Attempt {
        case locked(StoreLock)
        /// Someone else holds a lock that excludes this one.
        case held
        /// The directory was locked, but its name means another one by now, or none.
        case moved
    }
}

/// Waits between attempts at a lock: first a millisecond, then longer, and never past its end.
struct Waiting {
    private let end: ContinuousClock.Instant
    private var pause = Duration.milliseconds(1)

    init(timeout: Duration) { end = .now + timeout }

    /// Blocks the thread for the next pause; false when the time is over.
    ///
    /// - Throws: `cancelled` (499) where `goesOn` says that nobody waits any more.
    mutating func again(while goesOn: () -> Bool) throws(CofferError) -> Bool {
        guard goesOn() else { throw CofferError(.cancelled) }
        let rest = end - .now
        guard rest > .zero else { return false }
        let next = min(pause, rest)
        usleep(UInt32(next / .microseconds(1)) + 1)
        pause = min(pause * 2, .milliseconds(50))
        return true
    }
}
