internal import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Which file something is, whatever its name: the same until the file is gone.
package struct FileIdentity: Sendable, Hashable {
    package let device: UInt64
    package let inode: UInt64

    package init(device: UInt64, inode: UInt64) {
        self.device = device
        self.inode = inode
    }
}

/// The user and group that a file belongs to.
package struct FileOwner: Sendable, Hashable {
    package let user: UInt32
    package let group: UInt32

    package init(user: UInt32, group: UInt32) {
        self.user = user
        self.group = group
    }

    /// The user that this process acts as.
    package static var currentUser: UInt32 { geteuid() }

    static let root: UInt32 = 0

    package static var isRoot: Bool { currentUser == root }
}

/// What a name in a directory is.
package struct FileStatus: Sendable, Equatable {
    package enum Kind: Sendable, CustomStringConvertible {
        case file, directory, symbolicLink, pipe, socket, device, other

        /// Such as `a file`.
        package var description: String {
            switch self {
            case .file: "a file"
            case .directory: "a folder"
            case .symbolicLink: "a symbolic link"
            case .pipe: "a FIFO"
            case .socket: "a socket"
            case .device: "a device"
            case .other: "no file"
            }
        }
    }

    package let kind: Kind
    package let identity: FileIdentity
    package let byteCount: Int
    package let owner: FileOwner
    /// The lower 12 bits of the mode.
    package let permissions: UInt16
    /// How many names it has; of a directory, whatever the file system counts.
    package let linkCount: Int

    init(_ status: stat) {
        kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .directory
            case S_IFLNK: .symbolicLink
            case S_IFIFO: .pipe
            case S_IFSOCK: .socket
            case S_IFCHR, S_IFBLK: .device
            default: .other
            }
        identity = FileIdentity(
            device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino))
        byteCount = Int(status.st_size)
        owner = FileOwner(user: status.st_uid, group: status.st_gid)
        permissions = UInt16(truncatingIfNeeded: status.st_mode & 0o7777)
        linkCount = Int(clamping: status.st_nlink)
    }
}

extension FileStatus {
    /// What is at `path`, not followed; nil if that can't be told.
    package init?(path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Whether this process may write to what is at `path`.
    package static func isWritable(path: String) -> Bool { unsafe access(path, W_OK) == 0 }
}

/// One name in a directory, as the bytes that the file system keeps: any but zero and `/`, which need not be UTF-8.
///
/// A name that goes through `String` and back can be another one, and then what it named can't be removed.
package struct FileName: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Without a zero at the end.
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }

    package init(_ text: String) { bytes = Array(text.utf8) }

    /// The name as text; nil if it isn't UTF-8.
    package var text: String? { String(validating: bytes, as: UTF8.self) }

    /// The name for messages: where it isn't UTF-8, or has control characters, each byte but printable ASCII is `\x` and two
    /// hex digits.
    package var description: String {
        if let text, !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) { return text }
        return bytes.reduce(into: "") { shown, byte in
            if (0x20...0x7E).contains(byte) {
                shown.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                shown += "\\x" + hexadecimal([byte])
            }
        }
    }

    package static func < (left: FileName, right: FileName) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }

    /// Lends the name to a call of the system, with a zero at the end.
    func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        unsafe (bytes + [0]).withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { preconditionFailure("there is a zero at least") }
            return unsafe body(start.assumingMemoryBound(to: CChar.self))
        }
    }
}
