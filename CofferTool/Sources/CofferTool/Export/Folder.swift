#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What folders need when files are made in them.
enum Folder {
    /// The folder that something is in, or will be.
    static func parent(of path: String) -> String {
        var name = path[...]
        while name.count > 1, name.hasSuffix("/") { name = name.dropLast() }
        guard let slash = name.lastIndex(of: "/") else { return "." }
        return slash == name.startIndex ? "/" : String(name[..<slash])
    }

    /// Whether a folder is at `path`, or where a link there leads to.
    static func isThere(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Whether nothing is at `path`, or where a link there leads to.
    static func isMissing(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) != 0 && errno == ENOENT
    }

    /// Makes the names in a folder durable.
    static func synchronize(_ path: String) throws(Failure) {
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure.system(errno, path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Failure.system(errno, path) }
    }
}
