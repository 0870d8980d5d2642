import Foundation

/// One change of the file system, with all that a replay of it needs. Files and directories are numbered in the order in
/// which they were first seen, since inodes are used again.
package enum DiskOperation: Sendable, Equatable {
    package struct Place: Sendable, Hashable {
        package let directory: Int
        package let name: String
    }

    case makeDirectory(Place, made: Int)
    case createFile(Place, made: Int)
    case write([UInt8], to: Int)
    case synchronizeFile(Int)
    case synchronizeDirectory(Int)
    case synchronizeFileSystem
    case rename(Place, to: Place)
    case renameWithoutReplacing(Place, to: Place)
    case exchange(Place, with: Place)
    case unlink(Place)
    case removeDirectory(Place)
    case setOwner(Int)
    case setPermissions(Int)

    /// A file that the database library writes has this content since, or is gone: no step, but seen between two of them.
    case databaseFile(Place, Data?)
    /// Something was promised since: no step either.
    case acknowledged(Int)

    /// Whether it is a sync that the vault asked for.
    package var isSynchronization: Bool {
        switch self {
        case .synchronizeFile, .synchronizeDirectory, .synchronizeFileSystem: true
        default: false
        }
    }
}
