internal import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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
