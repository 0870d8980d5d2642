internal import Coffer
internal import CofferSealing
internal import CofferVault

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The database file of a source and its log. They are only read, and copied if SQLite would have to change something.
///
/// Without a log, the file is read in place, as an immutable one. With a write-ahead log, or the rollback journal of an
/// interrupted transaction, SQLite creates files and may write. It then gets a copy of both files, in a directory that
/// is removed with this value. The copy is encrypted as the source is.
struct SourceFiles {
    /// The file that SQLite opens.
    let path: String
    let access: SourceAccess
    /// Whether the first bytes are those of a database that isn't encrypted.
    let isPlain: Bool

    private let location: SourceLocation
    private let scratch: ScratchDirectory?
    private let fingerprints: [String: Fingerprint]

    enum SourceAccess { case immutable, log, journal }

    private static let sqliteHeader = Array("SQLite format 3\0".utf8)

    /// - Parameter scratchPath: the path beside which a copy is made, if one is needed.
    /// - Throws: `busy` (503) if the database is open elsewhere, `invalidArgument` (400) for symbolic links,
    ///   `notAStore` (404) for an empty file, `ioFailed` (500), `noSpace` (507).
    init(_ location: SourceLocation, scratchPath: String, monitor: ImportMonitor) throws(CofferError) {
        self.location = location
        do throws(CofferError) {
            let fileSystem = SourceLocation.fileSystem
            let file = try Self.open(location.fileName, in: location.directory)
            try Self.refuseOpen(file)
            let start = try fileSystem.read(Self.sqliteHeader.count, from: file, at: 0)
            guard !start.isEmpty else { throw CofferError(.notAStore, "its database is an empty file") }
            isPlain = start == Self.sqliteHeader
            var fingerprints = [location.fileName: try Fingerprint(file)]
            var copied: [String] = []
            for suffix in ["-wal", "-journal"] {
                let name = location.fileName + suffix
                guard let status = try fileSystem.status(of: name, in: location.directory) else { continue }
                try SourceLocation.requireFile(status)
                fingerprints[name] = try Fingerprint(Self.open(name, in: location.directory))
                if status.byteCount > 0 { copied.append(name) }
            }
            self.fingerprints = fingerprints
            guard !copied.isEmpty else {
                path = location.databasePath
                access = .immutable
                scratch = nil
                return
            }
            access = copied.contains(location.fileName + "-journal") ? .journal : .log
            let scratch = try ScratchDirectory(beside: scratchPath)
            for name in [location.fileName] + copied {
                try Self.copy(name, from: location.directory, to: scratch.directory, monitor)
            }
            path = scratch.directory.path(of: location.fileName)
            self.scratch = scratch
        } catch {
            throw error.about(location.subject)
        }
    }

    /// Checks that the source hasn't changed since it was opened.
    ///
    /// - Throws: `busy` (503).
    func checkUnchanged() throws(CofferError) {
        for (name, known) in fingerprints {
            let now = try? Fingerprint(Self.open(name, in: location.directory))
            guard now == known else {
                throw CofferError(
                    .busy, of: location.subject, "it changed while it was read; close it everywhere, and try again")
            }
        }
    }

    private static func open(_ name: String, in directory: Directory) throws(CofferError) -> File {
        let file = try SourceLocation.fileSystem.openFile(name, in: directory)
        try SourceLocation.requireFile(SourceLocation.fileSystem.status(of: file))
        return file
    }

    private static func copy(
        _ name: String, from directory: Directory, to target: Directory, _ monitor: ImportMonitor
    ) throws(CofferError) {
        let fileSystem = SourceLocation.fileSystem
        let source = try open(name, in: directory)
        let copy = try fileSystem.createFile(name, in: target)
        var offset = 0
        while true {
            try monitor.checkCancelled()
            let bytes = try fileSystem.read(1 << 20, from: source, at: offset)
            guard !bytes.isEmpty else { return }
            try unsafe fileSystem.write(bytes.span.bytes, to: copy)
            offset += bytes.count
        }
    }

    /// Throws if the database is open. A connection to an SQLite database with a write-ahead log, and one that is
    /// reading a database without, holds a lock on a range of its bytes (SQLite's os.h, "SHARED_FIRST"). Asking about
    /// it takes no lock.
    private static func refuseOpen(_ file: File) throws(CofferError) {
        #if os(Linux)
        var question = flock()
        question.l_type = Int16(F_WRLCK)
        question.l_whence = Int16(SEEK_SET)
        question.l_start = 0x4000_0000
        question.l_len = 512
        // F_OFD_GETLK, which also sees the locks of this process (fcntl(2)).
        guard unsafe fcntl(file.descriptor, 36, &question) == 0, question.l_type != Int16(F_UNLCK) else { return }
        throw CofferError(.busy, "it is open elsewhere; close it there, and try again")
        #endif
    }
}

/// What differs after a file was changed.
private struct Fingerprint: Equatable {
    private let identity: FileIdentity
    private let byteCount: Int
    private let seconds: Int
    private let nanoseconds: Int

    init(_ file: File) throws(CofferError) {
        var status = stat()
        guard unsafe fstat(file.descriptor, &status) == 0 else {
            throw CofferError(.ioFailed, "its database can't be examined")
        }
        identity = FileIdentity(
            device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino))
        byteCount = Int(status.st_size)
        #if os(Linux)
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        #else
        (seconds, nanoseconds) = (status.st_mtimespec.tv_sec, status.st_mtimespec.tv_nsec)
        #endif
    }
}
