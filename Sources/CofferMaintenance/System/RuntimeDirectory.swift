internal import CofferSealing
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Where the sockets of one user are: a directory that nobody else can look into.
///
/// A socket's name says in which directory its process has stores open, so that it is found without asking all.
struct RuntimeDirectory {
    /// The environment's variable that names another directory than the usual one.
    static let variable = "COFFER_RUNTIME_DIR"

    let path: String

    /// Where they may be: in the directory that the environment names, and in no other; without one in `coffer` in the user's
    /// run-time directory, which is there while the user has a session, and in `coffer-UID` among the temporary files.
    static func candidates(environment: [String: String] = ProcessInfo.processInfo.environment) -> [RuntimeDirectory] {
        let user = geteuid()
        if let path = environment[variable], path.hasPrefix("/") { return [RuntimeDirectory(path: path)] }
        let own = isDirectory("/run/user/\(user)", of: user) ? [RuntimeDirectory(path: "/run/user/\(user)/coffer")] : []
        return own + [RuntimeDirectory(path: "/tmp/coffer-\(user)")]
    }

    /// - Parameter path: without the slash that a folder's may end in.
    init(path: String) { self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path }

    /// Makes it, if it isn't there.
    ///
    /// - Throws: `ioFailed` (500) where it can't be made; `notOwner` (403) where others may look into it.
    func make() throws(CofferError) {
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemError.failure(errno, path) }
        guard isOwn else {
            throw CofferError(
                .notOwner, of: path,
                "it is not a directory that belongs to this user and is closed to everyone else (mode 700)")
        }
    }

    /// Whether it is this user's, and closed to all others: what is in it was put there by this user or by root.
    var isOwn: Bool { Self.isDirectory(path, of: geteuid(), isClosed: true) }

    private static func isDirectory(_ path: String, of user: uid_t, isClosed: Bool = false) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == user
            && (!isClosed || status.st_mode & 0o077 == 0)
    }

    private static let ending = ".socket"

    /// Where this process listens for what concerns stores in a directory. Others that share it, in containers too, have
    /// another.
    func newSocketPath(forStoresIn directory: FileIdentity) -> String {
        let number = String(UInt32.random(in: .min ... .max), radix: 16)
        return "\(path)/\(directory.text)-\(getpid())-\(number)\(Self.ending)"
    }

    /// The sockets of processes that have stores in that directory open, as far as they still run.
    func socketPaths(forStoresIn directory: FileIdentity) -> [String] {
        guard isOwn, let names = try? FileManager.default.contentsOfDirectory(atPath: path) else { return [] }
        return names.filter { $0.hasPrefix(directory.text + "-") && $0.hasSuffix(Self.ending) }.sorted()
            .map { "\(path)/\($0)" }
    }

    /// Removes the sockets of processes that have ended.
    func removeDeadSockets(forStoresIn directory: FileIdentity) {
        for path in socketPaths(forStoresIn: directory) {
            // A process of that number is just about to listen there, or is another's by now.
            guard let process = Self.process(ofSocketAt: path), kill(process, 0) != 0, errno == ESRCH else { continue }
            do throws(CofferError) {
                // In another container there may be one with that number.
                if try UnixSocket.connected(to: path) == nil { unsafe unlink(path) }
            } catch {}  // Somebody may be there all the same.
        }
    }

    private static func process(ofSocketAt path: String) -> pid_t? {
        let parts = path.split(separator: "-")
        return parts.count > 1 ? parts[parts.count - 2].split(separator: "/").last.flatMap { pid_t($0) } : nil
    }
}

/// What tells a directory from every other of this machine, whatever path leads to it.
struct FileIdentity: Hashable, Codable, Sendable {
    let device: UInt64
    let inode: UInt64

    /// That of the directory at `path`, which may be reached by links.
    ///
    /// - Throws: `databaseNotFound` (404) when there isn't one, `ioFailed` (500).
    init(ofDirectoryAt path: String) throws(CofferError) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            guard errno == ENOENT || errno == ENOTDIR else { throw SystemError.failure(errno, path) }
            throw CofferError(.databaseNotFound, of: path)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw CofferError(.notAStore, of: path, "not a directory") }
        (device, inode) = (UInt64(truncatingIfNeeded: status.st_dev), UInt64(status.st_ino))
    }

    /// In hex, for a name.
    var text: String { String(device, radix: 16) + "-" + String(inode, radix: 16) }
}
