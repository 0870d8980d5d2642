internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The files that an import reads: those that were named, and those that are in the folders that were named.
struct ImportFiles {
    struct File: Equatable {
        let path: String
        let byteCount: Int
    }

    private(set) var files: [File] = []

    /// The files in folders that are left alone, as their names do not say that they are JSON.
    private(set) var skipped: [String] = []

    /// How many bytes the files hold together.
    var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }

    private static let extensions: Set<String> = ["json", "ndjson", "jsonl"]

    init(_ paths: [String]) throws(Failure) {
        for path in paths {
            let status = try Self.status(of: path)
            if status.isFolder {
                try addFolder(path)
            } else {
                files.append(File(path: path, byteCount: status.byteCount))
            }
        }
    }

    /// Adds the files right in `folder`, ordered by the bytes of their names; hidden ones and other folders stay out.
    private mutating func addFolder(_ folder: String) throws(Failure) {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: folder)
        } catch {
            throw Failure(describing: error, subject: folder)
        }
        let count = files.count
        for name in names.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) where !name.hasPrefix(".") {
            let path = folder.hasSuffix("/") ? folder + name : folder + "/" + name
            let status = try Self.status(of: path)
            if status.isFolder || !Self.hasExtension(name) {
                skipped.append(path)
            } else {
                files.append(File(path: path, byteCount: status.byteCount))
            }
        }
        guard files.count > count else {
            throw Failure.usage("\(folder): no file in it ends in .json, .ndjson or .jsonl")
        }
    }

    private static func hasExtension(_ name: String) -> Bool {
        guard let dot = name.lastIndex(of: ".") else { return false }
        return extensions.contains(name[name.index(after: dot)...].lowercased())
    }

    private static func status(of path: String) throws(Failure) -> (isFolder: Bool, byteCount: Int) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw Failure.system(errno, path) }
        return (status.st_mode & S_IFMT == S_IFDIR, Int(status.st_size))
    }
}
