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

    /// The directory that the environment names; otherwise `coffer` in the user's run-time directory, or where the system made
    /// none, `coffer-UID` among the temporary files.
    init(environment: [String: String] = ProcessInfo.processInfo.environment) {
        let user = geteuid()
        if let path = environment[Self.variable], path.hasPrefix("/") {
            self.path = path
        } else if Self.isDirectory("/run/user/\(user)", of: user) {
            path = "/run/user/\(user)/coffer"
        } else {
            path = "/tmp/coffer-\(user)"
        }
    }

    init(path: String) { self.path = path }

    /// Makes it, if it isn't there.
    ///
    /// - Throws: `ioFailed` (500) where it can't be made; `notOwner` (403) where others may look into it.
    func make() throws(CofferError) {
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemError.failure(errno, path) }
        guard isOwn else {
            throw CofferError(
                .notOwner, of: path, "it is no directory of this user that is closed to everybody else (mode 700)")
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

    /// Removes the sockets at which nobody listens any more.
    func removeDeadSockets(forStoresIn directory: FileIdentity) {
        for path in socketPaths(forStoresIn: directory) {
            do throws(CofferError) {
                if try UnixSocket.connected(to: path) == nil { unsafe unlink(path) }
            } catch {}  // Somebody may be there all the same.
        }
    }
}
