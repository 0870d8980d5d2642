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

    /// Makes the names in a folder durable.
    static func synchronize(_ path: String) throws(Failure) {
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure.system(errno, path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Failure.system(errno, path) }
    }
}
