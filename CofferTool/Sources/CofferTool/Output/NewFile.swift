#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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
