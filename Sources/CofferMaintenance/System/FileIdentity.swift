internal import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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
