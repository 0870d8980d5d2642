package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Every call of the operating system that the vault makes: the one seam between a store and its disk.
///
/// The calls under "Changes" are all that a store on disk goes through besides what the database library does to its own
/// files, so whoever puts another conformer in between sees, counts, fails or cuts short every step of creating,
/// recovering and deleting. Names are single components below an open directory, and none is followed when it is a
/// symbolic link. Calls may come from any thread.
///
/// All throw `noSpace` (507) on a full disk or quota, `readOnly` (403) on a read-only file system, `unsupportedFormat`
/// (501) where the file system lacks the call, and `ioFailed` (500) otherwise, with the ``SystemError`` as the cause.
package protocol FileSystem: Sendable {
    // MARK: Changes

    /// Makes a directory that only its owner can enter (0700).
    func makeDirectory(_ name: String, in parent: Directory) throws(CofferError)

    /// Makes a file that only its owner can open (0600), and opens it for reading and writing; it must not exist.
    func createFile(_ name: String, in directory: Directory) throws(CofferError) -> File

    /// Appends all of `bytes` at the file's position.
    func write(_ bytes: borrowing RawSpan, to file: File) throws(CofferError)

    /// Makes the file's content durable, on the medium itself as far as the system can promise it.
    func synchronize(_ file: File) throws(CofferError)

    /// Makes the directory's entries durable.
    func synchronize(_ directory: Directory) throws(CofferError)

    /// Makes everything on the file system that holds `directory` durable.
    ///
    /// Where ``reportsFailedWrites(_:)`` holds it fails when anything that was written there since `directory` was
    /// opened could not be brought to the disk, by whomever; elsewhere it may not say so.
    func synchronizeFileSystem(of directory: Directory) throws(CofferError)

    /// Renames in one step; what `newName` named before is gone.
    func rename(
        _ name: String, in directory: Directory, to newName: String, in newDirectory: Directory) throws(CofferError)

    /// Renames in one step, and fails with `EEXIST` when `newName` exists.
    func renameWithoutReplacing(
        _ name: String, in directory: Directory, to newName: String, in newDirectory: Directory) throws(CofferError)

    /// Lets two names change places in one step.
    func exchange(
        _ name: String, in directory: Directory, with otherName: String, in otherDirectory: Directory
    ) throws(CofferError)

    /// Removes the name of anything but a directory.
    func unlink(_ name: FileName, in directory: Directory) throws(CofferError)

    /// Removes an empty directory.
    func removeDirectory(_ name: FileName, in parent: Directory) throws(CofferError)

    /// Gives a file to another user, which only root can.
    func setOwner(_ owner: FileOwner, of file: File) throws(CofferError)

    /// Gives a directory to another user, which only root can.
    func setOwner(_ owner: FileOwner, of directory: Directory) throws(CofferError)

    /// Sets the file's permission bits.
    func setPermissions(_ permissions: UInt16, of file: File) throws(CofferError)

    // MARK: What changes nothing

    /// Opens a directory by path. Symbolic links on the way and at its end are followed.
    func openDirectory(path: String) throws(CofferError) -> Directory

    /// Opens a directory; fails with `ENOTDIR` or `ELOOP` when the name is a symbolic link.
    func openDirectory(_ name: FileName, in parent: Directory) throws(CofferError) -> Directory

    /// Opens a file for reading; fails with `ELOOP` when the name is a symbolic link. Never waits, whatever the name is.
    func openFile(_ name: FileName, in directory: Directory) throws(CofferError) -> File

    /// Fills `buffer` with the bytes from `offset` on and returns how many they are; fewer than it holds only where the
    /// file ends.
    func read(
        into buffer: UnsafeMutableRawBufferPointer, from file: File, at offset: Int
    ) throws(CofferError) -> Int

    /// The next bytes from `offset` on that the file system keeps: those before are a hole, and read as zeros. Nil where there
    /// is nothing or only a hole up to the end. Where the file system doesn't tell, all that may come is taken for data.
    func data(of file: File, from offset: Int) throws(CofferError) -> Range<Int>?

    /// The names in the directory but `.` and `..`, in no order.
    func names(in directory: Directory) throws(CofferError) -> [FileName]

    /// What `name` is, not followed; nil when there is nothing of that name.
    func status(of name: FileName, in directory: Directory) throws(CofferError) -> FileStatus?

    func status(of file: File) throws(CofferError) -> FileStatus

    func status(of directory: Directory) throws(CofferError) -> FileStatus

    /// The kind of network file system that holds `directory`; nil on a local one.
    func networkFileSystem(of directory: Directory) throws(CofferError) -> String?

    /// Whether ``synchronizeFileSystem(of:)`` can stand for a sync of each file on the file system that holds `directory`.
    func reportsFailedWrites(_ directory: Directory) throws(CofferError) -> Bool

    /// Locks the directory without waiting; false when someone else holds it. A lock belongs to the open directory: a
    /// second opening of the same one conflicts with the first, in one process too.
    func lock(_ directory: Directory, for use: LockUse) throws(CofferError) -> Bool

    func unlock(_ directory: Directory)
}

/// What other holders a lock admits at the same time.
package enum LockUse: Sendable {
    /// Any number of others that read.
    case reading
    /// Nobody.
    case writing
}

extension FileSystem {
    /// The bytes that this user may still write to the file system that holds `directory`.
    package func freeByteCount(of directory: Directory) throws(CofferError) -> Int {
        try Platform.freeByteCount(directory.descriptor, path: directory.path)
    }

    /// Up to `byteCount` bytes from `offset` on; fewer only where the file ends.
    package func read(_ byteCount: Int, from file: File, at offset: Int) throws(CofferError) -> [UInt8] {
        try [UInt8](capacity: byteCount) { (output) throws(CofferError) in
            try unsafe output.withUnsafeMutableBufferPointer { (buffer, count) throws(CofferError) in
                count = try unsafe read(into: UnsafeMutableRawBufferPointer(buffer), from: file, at: offset)
            }
        }
    }

    /// Gives a file that was just made to `owner` when this process is root and it isn't theirs yet, so that what an operator
    /// does as root doesn't lock the app out.
    ///
    /// Never by its name, which may mean another file by now, and never a file of somebody else's or one with a second name.
    package func hand(_ file: File, to owner: FileOwner) throws(CofferError) {
        guard FileOwner.isRoot else { return }
        let status = try status(of: file)
        guard status.owner != owner else { return }
        guard status.kind == .file, status.linkCount <= 1, status.owner.user == FileOwner.root else {
            throw CofferError(.notOwner, of: file.path, "it is not the file that was made, so it keeps its owner")
        }
        try setOwner(owner, of: file)
    }

    /// The same for a directory that was just made.
    func hand(_ directory: Directory, to owner: FileOwner) throws(CofferError) {
        guard FileOwner.isRoot else { return }
        let status = try status(of: directory)
        guard status.owner != owner else { return }
        guard status.owner.user == FileOwner.root else {
            throw CofferError(
                .notOwner, of: directory.path, "it is not the directory that was made, so it keeps its owner")
        }
        try setOwner(owner, of: directory)
    }

    /// Makes a directory for `owner`, and opens it.
    func makeDirectory(_ name: String, in parent: Directory, for owner: FileOwner) throws(CofferError) -> Directory {
        try makeDirectory(name, in: parent)
        let directory = try openDirectory(name, in: parent)
        try hand(directory, to: owner)
        return directory
    }
}

/// The same calls for names that are known to be text: those that Coffer gives.
extension FileSystem {
    package func unlink(_ name: String, in directory: Directory) throws(CofferError) {
        try unlink(FileName(name), in: directory)
    }

    package func removeDirectory(_ name: String, in parent: Directory) throws(CofferError) {
        try removeDirectory(FileName(name), in: parent)
    }

    package func openDirectory(_ name: String, in parent: Directory) throws(CofferError) -> Directory {
        try openDirectory(FileName(name), in: parent)
    }

    package func openFile(_ name: String, in directory: Directory) throws(CofferError) -> File {
        try openFile(FileName(name), in: directory)
    }

    package func status(of name: String, in directory: Directory) throws(CofferError) -> FileStatus? {
        try status(of: FileName(name), in: directory)
    }

    /// The names in the directory that are text: all that Coffer gives are.
    package func textNames(in directory: Directory) throws(CofferError) -> [String] {
        try names(in: directory).compactMap(\.text)
    }
}

/// An open directory, closed with its last reference. Any thread may use it.
package struct Directory: Sendable {
    private let owned: OwnedDescriptor

    /// Where it is, as far as this process knows: for messages, and for a library that takes only paths.
    package let path: String

    /// Takes over `descriptor`.
    package init(adopting descriptor: Int32, path: String) {
        owned = OwnedDescriptor(descriptor)
        self.path = path
    }

    /// Valid for as long as this value or a copy lives.
    package var descriptor: Int32 { owned.descriptor }

    /// The same open directory, after it was given another name.
    func renamed(to path: String) -> Directory { Directory(owned, path: path) }

    private init(_ owned: OwnedDescriptor, path: String) {
        self.owned = owned
        self.path = path
    }

    /// The path of an entry.
    package func path(of name: String) -> String { path.hasSuffix("/") ? path + name : "\(path)/\(name)" }

    /// The path of an entry as messages have it, whatever its name is.
    func path(of name: FileName) -> String { path(of: name.description) }
}

/// An open file, closed with its last reference. Any thread may use it.
package struct File: Sendable {
    private let owned: OwnedDescriptor

    /// Where it was when it was opened: for messages.
    package let path: String

    /// Takes over `descriptor`.
    package init(adopting descriptor: Int32, path: String) {
        owned = OwnedDescriptor(descriptor)
        self.path = path
    }

    /// Valid for as long as this value or a copy lives.
    package var descriptor: Int32 { owned.descriptor }
}

/// The one owner of a descriptor.
private final class OwnedDescriptor: Sendable {
    let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { _ = close(descriptor) }
}
