#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Which file or folder something is, whatever it is called.
struct FileIdentity: Equatable {
    private let device: dev_t
    private let number: ino_t

    init(_ status: stat) { (device, number) = (status.st_dev, status.st_ino) }

    /// What is at `path`, behind symbolic links; nil if nothing is.
    init?(path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// What is open; nil if nothing is.
    init?(descriptor: Int32) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Whether the folder at `path` is this one, or anywhere in it.
    func contains(folder path: String) -> Bool {
        var path = path
        var last: FileIdentity?
        // The topmost folder is above itself.
        while let folder = FileIdentity(path: path), folder != last {
            if folder == self { return true }
            last = folder
            path += "/.."
        }
        return false
    }
}

/// A new file for its owner alone, which never replaces an existing one.
enum NewFile {
    /// Makes the file and opens it for writing; -1 where that fails, with the reason in `errno`.
    static func open(_ path: String) -> Int32 {
        #if canImport(Glibc)
        unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        #else
        unsafe Darwin.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        #endif
    }

    /// Writes it so that it is there as a whole, on the disk, or not at all.
    ///
    /// - Parameter mode: who may read it. Its owner alone, unless another is given.
    static func write(_ bytes: [UInt8], to path: String, mode: mode_t = 0o600) throws(Failure) {
        let descriptor = open(path)
        guard descriptor >= 0 else { throw Failure.system(errno, path) }
        do throws(Failure) {
            try Console.write(bytes, to: descriptor, named: path)
            // Not by its name, which others may give another file where the folder is theirs.
            guard mode == 0o600 || fchmod(descriptor, mode) == 0 else { throw Failure.system(errno, path) }
            guard fsync(descriptor) == 0 else { throw Failure.system(errno, path) }
        } catch {
            close(descriptor)
            unsafe unlink(path)
            throw error
        }
        close(descriptor)
        try Folder.synchronize(Folder.parent(of: path))
    }
}

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
