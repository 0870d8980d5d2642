package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The real file system.
package struct SystemFileSystem: FileSystem {
    package init() {}

    // MARK: Changes

    package func makeDirectory(_ name: String, in parent: Directory) throws(CofferError) {
        try attempt("mkdir", parent.path(of: name)) { unsafe mkdirat(parent.descriptor, name, 0o700) }
    }

    package func createFile(_ name: String, in directory: Directory) throws(CofferError) -> File {
        let path = directory.path(of: name)
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = try attempt("create", path) { unsafe openat(directory.descriptor, name, flags, 0o600) }
        return File(adopting: descriptor, path: path)
    }

    package func write(_ bytes: borrowing RawSpan, to file: File) throws(CofferError) {
        try unsafe bytes.withUnsafeBytes { (bytes) throws(CofferError) in
            var count = 0
            while count < bytes.count {
                count += try attempt("write", file.path) {
                    unsafe Platform.write(file.descriptor, UnsafeRawBufferPointer(rebasing: bytes[count...]))
                }
            }
        }
    }

    package func synchronize(_ file: File) throws(CofferError) {
        try attempt("fsync", file.path) { Platform.synchronize(file.descriptor) }
    }

    package func synchronize(_ directory: Directory) throws(CofferError) {
        try attempt("fsync", directory.path) { Platform.synchronize(directory.descriptor) }
    }

    package func synchronizeFileSystem(of directory: Directory) throws(CofferError) {
        try attempt("syncfs", directory.path) { Platform.synchronizeFileSystem(directory.descriptor) }
    }

    package func rename(
        _ name: String, in directory: Directory, to newName: String, in newDirectory: Directory
    ) throws(CofferError) {
        try attempt("rename", directory.path(of: name)) {
            unsafe renameat(directory.descriptor, name, newDirectory.descriptor, newName)
        }
    }

    package func renameWithoutReplacing(
        _ name: String, in directory: Directory, to newName: String, in newDirectory: Directory
    ) throws(CofferError) {
        try attemptWhereSupported("rename without replacing", directory.path(of: name)) {
            Platform.renameWithoutReplacing(directory.descriptor, name, newDirectory.descriptor, newName)
        }
    }

    package func exchange(
        _ name: String, in directory: Directory, with otherName: String, in otherDirectory: Directory
    ) throws(CofferError) {
        try attemptWhereSupported("exchange", directory.path(of: name)) {
            Platform.exchange(directory.descriptor, name, otherDirectory.descriptor, otherName)
        }
    }

    package func unlink(_ name: FileName, in directory: Directory) throws(CofferError) {
        try attempt("unlink", directory.path(of: name)) {
            unsafe name.withCString { unsafe unlinkat(directory.descriptor, $0, 0) }
        }
    }

    package func removeDirectory(_ name: FileName, in parent: Directory) throws(CofferError) {
        try attempt("rmdir", parent.path(of: name)) {
            unsafe name.withCString { unsafe unlinkat(parent.descriptor, $0, AT_REMOVEDIR) }
        }
    }

    package func setOwner(_ owner: FileOwner, of file: File) throws(CofferError) {
        try attempt("chown", file.path) { fchown(file.descriptor, owner.user, owner.group) }
    }

    package func setOwner(_ owner: FileOwner, of directory: Directory) throws(CofferError) {
        try attempt("chown", directory.path) { fchown(directory.descriptor, owner.user, owner.group) }
    }

    package func setPermissions(_ permissions: UInt16, of file: File) throws(CofferError) {
        try attempt("chmod", file.path) { fchmod(file.descriptor, mode_t(permissions)) }
    }

    // MARK: What changes nothing

    package func openDirectory(path: String) throws(CofferError) -> Directory {
        let descriptor = try attempt("open", path) { unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        return Directory(adopting: descriptor, path: path)
    }

    package func openDirectory(_ name: FileName, in parent: Directory) throws(CofferError) -> Directory {
        let path = parent.path(of: name)
        let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        let descriptor = try attempt("open", path) {
            unsafe name.withCString { unsafe openat(parent.descriptor, $0, flags) }
        }
        return Directory(adopting: descriptor, path: path)
    }

    package func openFile(_ name: FileName, in directory: Directory) throws(CofferError) -> File {
        let path = directory.path(of: name)
        // O_NONBLOCK: a FIFO put in a file's place would otherwise wait for a writer.
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        let descriptor = try attempt("open", path) {
            unsafe name.withCString { unsafe openat(directory.descriptor, $0, flags) }
        }
        return File(adopting: descriptor, path: path)
    }

    package func read(
        into buffer: UnsafeMutableRawBufferPointer, from file: File, at offset: Int
    ) throws(CofferError) -> Int {
        var count = 0
        while count < buffer.count {
            let read = try attempt("read", file.path) {
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
                return unsafe pread(file.descriptor, rest.baseAddress, rest.count, off_t(offset + count))
            }
            if read == 0 { break }
            count += read
        }
        return count
    }

    package func data(of file: File, from offset: Int) throws(CofferError) -> Range<Int>? {
        let start: Int
        do throws(CofferError) {
            start = try attempt("lseek", file.path) { Platform.seekData(file.descriptor, from: offset) }
        } catch {
            switch error.systemErrorNumber {
            case ENXIO: return nil
            case EINVAL, ENOTSUP, ENOTTY, ESPIPE: return offset..<Int.max
            default: throw error
            }
        }
        let end = Platform.seekHole(file.descriptor, from: start)
        // It may have been cut in between.
        return start..<(end > start ? end : Int.max)
    }

    package func names(in directory: Directory) throws(CofferError) -> [FileName] {
        // Opened once more, since the place in a listing belongs to the opening.
        try Platform.names(listedBy: openDirectory(FileName("."), in: directory))
    }

    package func status(of name: FileName, in directory: Directory) throws(CofferError) -> FileStatus? {
        var status = stat()
        do {
            try attempt("stat", directory.path(of: name)) {
                unsafe name.withCString { unsafe fstatat(directory.descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) }
            }
        } catch {
            if error.systemErrorNumber == ENOENT { return nil }
            throw error
        }
        return FileStatus(status)
    }

    package func status(of file: File) throws(CofferError) -> FileStatus {
        try status(of: file.descriptor, path: file.path)
    }

    package func status(of directory: Directory) throws(CofferError) -> FileStatus {
        try status(of: directory.descriptor, path: directory.path)
    }

    private func status(of descriptor: Int32, path: String) throws(CofferError) -> FileStatus {
        var status = stat()
        try attempt("stat", path) { unsafe fstat(descriptor, &status) }
        return FileStatus(status)
    }

    package func networkFileSystem(of directory: Directory) throws(CofferError) -> String? {
        try Platform.networkFileSystem(of: directory.descriptor, path: directory.path)
    }

    package func reportsFailedWrites(_ directory: Directory) throws(CofferError) -> Bool {
        try Platform.reportsFailedWrites(directory.descriptor, path: directory.path)
    }

    package func lock(_ directory: Directory, for use: LockUse) throws(CofferError) -> Bool {
        let operation = (use == .writing ? LOCK_EX : LOCK_SH) | LOCK_NB
        do {
            try attempt("flock", directory.path) { flock(directory.descriptor, operation) }
            return true
        } catch {
            if error.systemErrorNumber == EWOULDBLOCK { return false }
            throw error
        }
    }

    package func unlock(_ directory: Directory) {
        _ = flock(directory.descriptor, LOCK_UN)
    }
}

/// Makes a call again for as long as a signal interrupts it, and throws what the system answered.
@discardableResult
func attempt<Result: SignedInteger>(
    _ call: String, _ path: String, _ body: () -> Result
) throws(CofferError) -> Result {
    while true {
        let result = body()
        let number = errno
        if result >= 0 { return result }
        if number != EINTR { throw CofferError(SystemError(call: call, number: number), at: path) }
    }
}

/// The same for a call that some file systems lack: they get a 501 instead of an errno that says little.
func attemptWhereSupported(_ call: String, _ path: String, _ body: () -> Int32) throws(CofferError) {
    do {
        try attempt(call, path, body)
    } catch {
        guard let number = error.systemErrorNumber, [EINVAL, ENOSYS, ENOTSUP].contains(number) else { throw error }
        throw CofferError(
            .unsupportedFormat, of: path, "this file system can't \(call), which a store needs", cause: error.cause)
    }
}

/// What the operating system answered: the call and its `errno`.
package struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    package let call: String
    package let number: Int32

    package init(call: String, number: Int32) {
        self.call = call
        self.number = number
    }

    /// Such as `fsync: Input/output error`.
    package var description: String {
        var message = [CChar](repeating: 0, count: 256)
        guard unsafe strerror_r(number, &message, message.count) == 0 else { return "\(call): error \(number)" }
        let bytes = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return "\(call): \(String(decoding: bytes, as: UTF8.self))"
    }
}

extension CofferError {
    /// The error for what the system answered about `path`.
    package init(_ error: SystemError, at path: String) {
        let code: Code =
            switch error.number {
            case ENOSPC, EDQUOT: .noSpace
            case EROFS: .readOnly
            default: .ioFailed
            }
        self.init(code, of: path, error.description, cause: error)
    }

    /// The `errno` that led to this error, if one did.
    package var systemErrorNumber: Int32? { (cause as? SystemError)?.number }

    /// Whether there is nothing of the name that was to be used.
    var isMissing: Bool { systemErrorNumber == ENOENT }
}
