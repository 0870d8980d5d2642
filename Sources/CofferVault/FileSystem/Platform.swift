internal import CofferSealing

#if canImport(Glibc)
internal import CLinux
internal import Glibc
#else
internal import Darwin
#endif

/// Where Linux and macOS differ, each call with the return convention of the system: negative, and `errno`.
enum Platform {
    static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        #if canImport(Glibc)
        unsafe Glibc.write(descriptor, bytes.baseAddress, bytes.count)
        #else
        unsafe Darwin.write(descriptor, bytes.baseAddress, bytes.count)
        #endif
    }

    /// Durable on the medium. macOS needs more than `fsync`, which there leaves the drive's own cache alone.
    static func synchronize(_ descriptor: Int32) -> Int32 {
        #if canImport(Glibc)
        return fsync(descriptor)
        #else
        let result = fcntl(descriptor, F_FULLFSYNC)
        // File systems that don't know it (some network and FUSE ones) know fsync.
        guard result < 0, [ENOTSUP, EINVAL, ENOTTY].contains(errno) else { return result }
        return fsync(descriptor)
        #endif
    }

    static func synchronizeFileSystem(_ descriptor: Int32) -> Int32 {
        #if canImport(Glibc)
        return syncfs(descriptor)
        #else
        return fsync_volume_np(descriptor, SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT)
        #endif
    }

    static func renameWithoutReplacing(
        _ directory: Int32, _ name: String, _ newDirectory: Int32, _ newName: String
    ) -> Int32 {
        #if canImport(Glibc)
        return unsafe renameat2(directory, name, newDirectory, newName, UInt32(COFFER_RENAME_NOREPLACE))
        #else
        return unsafe renameatx_np(directory, name, newDirectory, newName, UInt32(RENAME_EXCL))
        #endif
    }

    static func exchange(_ directory: Int32, _ name: String, _ otherDirectory: Int32, _ otherName: String) -> Int32 {
        #if canImport(Glibc)
        return unsafe renameat2(directory, name, otherDirectory, otherName, UInt32(COFFER_RENAME_EXCHANGE))
        #else
        return unsafe renameatx_np(directory, name, otherDirectory, otherName, UInt32(RENAME_SWAP))
        #endif
    }

    /// Where the next data begin, and where the next hole does.
    static func seekData(_ descriptor: Int32, from offset: Int) -> Int {
        #if canImport(Glibc)
        return Int(lseek(descriptor, off_t(offset), Int32(COFFER_SEEK_DATA)))
        #else
        return Int(lseek(descriptor, off_t(offset), SEEK_DATA))
        #endif
    }

    static func seekHole(_ descriptor: Int32, from offset: Int) -> Int {
        #if canImport(Glibc)
        return Int(lseek(descriptor, off_t(offset), Int32(COFFER_SEEK_HOLE)))
        #else
        return Int(lseek(descriptor, off_t(offset), SEEK_HOLE))
        #endif
    }

    static func networkFileSystem(of descriptor: Int32, path: String) throws(CofferError) -> String? {
        var status = statfs()
        try attempt("statfs", path) { unsafe fstatfs(descriptor, &status) }
        #if canImport(Glibc)
        switch UInt32(truncatingIfNeeded: status.f_type) {
        case UInt32(NFS_SUPER_MAGIC): return "NFS"
        case UInt32(SMB_SUPER_MAGIC), UInt32(CIFS_SUPER_MAGIC), UInt32(SMB2_SUPER_MAGIC): return "SMB"
        case UInt32(AFS_SUPER_MAGIC), UInt32(AFS_FS_MAGIC): return "AFS"
        case UInt32(CEPH_SUPER_MAGIC): return "Ceph"
        case UInt32(V9FS_MAGIC): return "9p"
        case UInt32(CODA_SUPER_MAGIC): return "Coda"
        case UInt32(NCP_SUPER_MAGIC): return "NCP"
        default: return nil
        }
        #else
        return UInt32(status.f_flags) & UInt32(MNT_LOCAL) == 0 ? "network volume" : nil
        #endif
    }

    static func freeByteCount(_ descriptor: Int32, path: String) throws(CofferError) -> Int {
        var status = statvfs()
        try attempt("statvfs", path) { unsafe fstatvfs(descriptor, &status) }
        let free = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return free.overflow ? .max : Int(clamping: free.partialValue)
    }

    /// When something was made, in seconds since 1970; nil if the file system doesn't say.
    static func birthTime(of name: UnsafePointer<CChar>, in directory: Int32) -> Int64? {
        #if canImport(Glibc)
        var status = statx()
        guard unsafe statx(directory, name, AT_SYMLINK_NOFOLLOW, UInt32(STATX_BTIME), &status) == 0,
            status.stx_mask & UInt32(STATX_BTIME) != 0
        else { return nil }
        return status.stx_btime.tv_sec
        #else
        var status = stat()
        guard unsafe fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        return Int64(status.st_birthtimespec.tv_sec)
        #endif
    }

    /// Linux's syncfs reports what could not be written since 5.8, and only by what the file system itself notes: overlayfs
    /// and FUSE don't pass it up. macOS promises nothing of the kind.
    static func reportsFailedWrites(_ descriptor: Int32, path: String) throws(CofferError) -> Bool {
        #if canImport(Glibc)
        guard kernelVersion.lexicographicallyPrecedes([5, 8]) == false else { return false }
        var status = statfs()
        try attempt("statfs", path) { unsafe fstatfs(descriptor, &status) }
        switch UInt32(truncatingIfNeeded: status.f_type) {
        case UInt32(EXT4_SUPER_MAGIC), UInt32(XFS_SUPER_MAGIC), UInt32(BTRFS_SUPER_MAGIC), UInt32(F2FS_SUPER_MAGIC),
            UInt32(TMPFS_MAGIC):
            return true
        default: return false
        }
        #else
        return false
        #endif
    }

    #if canImport(Glibc)
    /// Such as [6, 1], of `6.1.0-17-amd64`.
    private static let kernelVersion: [Int] = {
        var names = utsname()
        guard unsafe uname(&names) == 0 else { return [] }
        let release = unsafe withUnsafeBytes(of: &names.release) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return release.split(separator: ".").prefix(2).map { Int($0.prefix { $0.isASCII && $0.isNumber }) ?? 0 }
    }()
    #endif

    /// Every name that the directory lists but `.` and `..`.
    static func names(listedBy directory: Directory) throws(CofferError) -> [FileName] {
        // closedir closes what fdopendir took over, and the directory's descriptor has another owner.
        let copy = try attempt("dup", directory.path) { fcntl(directory.descriptor, F_DUPFD_CLOEXEC, 0) }
        guard let stream = unsafe fdopendir(copy) else {
            let number = errno
            _ = close(copy)
            throw CofferError(SystemError(call: "opendir", number: number), at: directory.path)
        }
        defer { _ = unsafe closedir(stream) }
        var names: [FileName] = []
        while true {
            // readdir returns null at the end and on failure; only errno tells which.
            errno = 0
            guard let entry = unsafe readdir(stream) else { break }
            let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
            let start = unsafe UnsafeRawPointer(entry).advanced(by: nameOffset)
            let byteCount = unsafe strlen(start.assumingMemoryBound(to: CChar.self))
            let name = unsafe FileName(bytes: Array(UnsafeRawBufferPointer(start: start, count: byteCount)))
            if name != FileName(".") && name != FileName("..") { names.append(name) }
        }
        let number = errno
        guard number == 0 else { throw CofferError(SystemError(call: "readdir", number: number), at: directory.path) }
        return names
    }
}
