internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The files that an import attaches: those that were named, and all that are anywhere in the folders that were named.
///
/// Nothing is left out in silence. A symbolic link, a pipe or a device among them is a failure.
struct FileTree {
    struct File: Equatable {
        let path: String
        /// The path below the folder that was named; of a file that was named itself, its name.
        let id: String
        let byteCount: Int

        var name: String { id.split(separator: "/").last.map(String.init) ?? id }
    }

    private(set) var files: [File] = []

    /// How many bytes the files hold together.
    var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }

    private let store: FileIdentity?

    /// `store` is the folder that the files go to, which can't be among them.
    init(_ paths: [String], importedTo store: String) throws(Failure) {
        self.store = FileIdentity(path: store)
        for path in paths {
            let count = files.count
            let name = path.split(separator: "/").last.map(String.init) ?? path
            try add(path, id: nil, name: name)
            guard files.count > count else { throw Failure.usage("\(path): there is no file in it") }
        }
        files.sort { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
    }

    /// Adds a file, or what is in a folder. `id` is nil for what was named itself, as a folder's name is no part of ids.
    private mutating func add(_ path: String, id: String?, name: String) throws(Failure) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { throw Failure.system(errno, path) }
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            files.append(File(path: path, id: id ?? name, byteCount: Int(status.st_size)))
        case S_IFDIR:
            guard FileIdentity(status) != store else { throw Failure.notAFile(path, "it is the store itself") }
            let folder = path.hasSuffix("/") ? path : path + "/"
            for name in try Self.names(in: path) {
                try add(folder + name, id: id.map { $0 + "/" + name } ?? name, name: name)
            }
        case S_IFLNK:
            throw Failure.notAFile(path, "a symbolic link")
        default:
            throw Failure.notAFile(path, "neither a file nor a folder")
        }
    }

    private static func names(in folder: String) throws(Failure) -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder)
        } catch {
            throw Failure(describing: error, subject: folder)
        }
    }
}
