package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A name in an open directory: where a store is, or should be. Nothing of that name has to exist.
struct StoreLocation: Sendable {
    let parent: Directory
    let name: String
    let fileSystem: any FileSystem

    var path: String { parent.path(of: name) }

    /// Opens the directory that `path` lies in; links on the way are followed, the last component never is.
    ///
    /// Throws `invalidArgument` (400) for a path that names no entry of a directory, `databaseNotFound` (404) when the
    /// directory it would be in is missing, `notOwner` (403) when the way there is closed to this user.
    init(path: String, fileSystem: any FileSystem) throws(CofferError) {
        guard !path.utf8.contains(0) else { throw CofferError(.invalidArgument, "a path with a zero byte") }
        // A trailing slash would have a link at the end followed.
        var trimmed = path[...]
        while trimmed.utf8.count > 1, trimmed.utf8.last == UInt8(ascii: "/") { trimmed = trimmed.dropLast() }
        let slash = trimmed.utf8.lastIndex(of: UInt8(ascii: "/"))
        let name = String(slash.map { trimmed[trimmed.utf8.index(after: $0)...] } ?? trimmed)
        guard !["", ".", ".."].contains(name) else {
            throw CofferError(.invalidArgument, of: path, "not the path of a store")
        }
        let parentPath = slash.map { $0 == trimmed.startIndex ? "/" : String(trimmed[..<$0]) } ?? "."
        do {
            parent = try fileSystem.openDirectory(path: parentPath)
        } catch {
            throw error.opening(path, missing: .databaseNotFound)
        }
        self.name = name
        self.fileSystem = fileSystem
    }

    private init(parent: Directory, name: String, fileSystem: any FileSystem) {
        self.parent = parent
        self.name = name
        self.fileSystem = fileSystem
    }

    /// Another name in the same directory.
    func beside(_ name: String) -> StoreLocation { StoreLocation(parent: parent, name: name, fileSystem: fileSystem) }

    /// The status of what is there, not followed; nil when the name is free.
    func status() throws(CofferError) -> FileStatus? { try fileSystem.status(of: name, in: parent) }

    /// Opens the store's directory.
    ///
    /// Throws `databaseNotFound` (404) when the name is free, `notAStore` (404) when something else than a directory is
    /// there, `notOwner` (403) when it is closed to this user.
    func openDirectory() throws(CofferError) -> Directory {
        do {
            return try fileSystem.openDirectory(name, in: parent)
        } catch {
            throw error.opening(path, missing: .databaseNotFound)
        }
    }
}

extension CofferError {
    /// What a failed opening of a directory means to the caller.
    fileprivate func opening(_ path: String, missing: Code) -> CofferError {
        switch systemErrorNumber {
        case ENOENT: CofferError(missing, of: path, cause: cause)
        case ENOTDIR, ELOOP: CofferError(.notAStore, of: path, "not a directory", cause: cause)
        case EACCES: CofferError(.notOwner, of: path, "this user may not enter it", cause: cause)
        default: self
        }
    }
}

/// Which store something is, whatever its path: what a registry of open stores is keyed by.
package struct StoreIdentity: Sendable, Hashable {
    private let file: FileIdentity

    init(_ file: FileIdentity) { self.file = file }

    /// The identity of the directory at `path`, learned without locking it or opening anything in it.
    ///
    /// Throws as ``LockedStore/open(path:access:timeout:otherOwners:fileSystem:)`` does when there is no store. A directory is not
    /// looked into, so having an identity doesn't make it a store.
    package init(path: String, fileSystem: any FileSystem = SystemFileSystem()) throws(CofferError) {
        let location = try StoreLocation(path: path, fileSystem: fileSystem)
        guard let status = try location.status() else { throw CofferError(.databaseNotFound, of: path) }
        guard status.kind == .directory else { throw CofferError(.notAStore, of: path, "not a directory") }
        self.init(status.identity)
    }

    /// The identity of a directory that stores are in. Unlike a store it may be reached by a symbolic link.
    ///
    /// Throws `databaseNotFound` (404) when it is missing, `notAStore` (404) when it is not a directory, `notOwner` (403) when
    /// it is closed to this user.
    package init(
        ofDirectoryAt path: String, fileSystem: any FileSystem = SystemFileSystem()
    ) throws(CofferError) {
        do {
            self.init(try fileSystem.status(of: fileSystem.openDirectory(path: path)).identity)
        } catch {
            throw error.opening(path, missing: .databaseNotFound)
        }
    }
}
