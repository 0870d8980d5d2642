import CofferVault
import Foundation

/// What is in a directory: files and directories by number, and the names that lead to them.
package struct DiskTree: Sendable {
    package let root: Int
    package var names: [DiskOperation.Place: Int] = [:]
    /// The contents of files; what is not among them is a directory.
    package var contents: [Int: Data] = [:]

    init(root: Int) { self.root = root }

    /// What is at `path` now, each numbered by `node`.
    init(at path: String, node: (FileIdentity) -> Int) throws {
        root = node(try Self.status(path).identity)
        var directories = [(path, root)]
        while let (path, directory) = directories.popLast() {
            for name in try FileManager.default.contentsOfDirectory(atPath: path).sorted() {
                let entry = "\(path)/\(name)"
                let status = try Self.status(entry)
                let number = node(status.identity)
                names[DiskOperation.Place(directory: directory, name: name)] = number
                if status.isDirectory {
                    directories.append((entry, number))
                } else {
                    contents[number] = try Data(contentsOf: URL(filePath: entry))
                }
            }
        }
    }

    static func status(_ path: String) throws -> (identity: FileIdentity, isDirectory: Bool) {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw CocoaError(.fileReadNoSuchFile) }
        let identity = FileIdentity(
            device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino))
        return (identity, status.st_mode & S_IFMT == S_IFDIR)
    }

    /// Every path below the root, with a file's content and a directory's nil. What no name leads to is left out.
    package var paths: [String: Data?] {
        let entries = Dictionary(grouping: names, by: \.key.directory)
        var paths: [String: Data?] = [:]
        var directories = [("", root)]
        while let (path, directory) = directories.popLast() {
            for (place, number) in entries[directory] ?? [] {
                let entry = path + place.name
                paths[entry] = .some(contents[number])
                if contents[number] == nil { directories.append((entry + "/", number)) }
            }
        }
        return paths
    }
}

/// Makes the directory at `path`, with `paths` in it.
package func write(_ paths: [String: Data?], to path: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for (name, content) in paths.sorted(by: { $0.key < $1.key }) {
        let entry = "\(path)/\(name)"
        if let content {
            try content.write(to: URL(filePath: entry))
        } else {
            try FileManager.default.createDirectory(atPath: entry, withIntermediateDirectories: true)
        }
    }
}
