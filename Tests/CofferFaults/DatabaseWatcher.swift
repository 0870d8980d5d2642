import CofferVault
import Foundation

/// Looks for what the database library wrote to its own files, which no step says.
///
/// Not the index of the log: whoever opens the database alone makes that anew.
struct DatabaseWatcher {
    private let path: String
    private var known: [DiskOperation.Place: Data]

    init(_ path: String, _ tree: DiskTree) {
        self.path = path
        known = tree.names.filter { Self.isDatabaseFile($0.key.name) }.compactMapValues { tree.contents[$0] }
    }

    static let databaseName = "db.sqlite3"

    private static func isDatabaseFile(_ name: String) -> Bool {
        ["", "-wal", "-journal"].contains { name == databaseName + $0 }
    }

    /// Calls `body` for each file of a database in `directory` and below. After every step of a change: Foundation's lists of
    /// directories take a tenth of a whole replay.
    private static func visitDatabaseFiles(
        in directory: String, _ body: (_ directory: String, _ name: String) -> Void
    ) {
        guard let stream = opendir(directory) else { return }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if isDatabaseFile(name) {
                body(directory, name)
            } else if Int32(entry.pointee.d_type) == DT_DIR, name != ".", name != ".." {
                visitDatabaseFiles(in: "\(directory)/\(name)", body)
            }
        }
    }

    /// What has changed since the last call, the database itself before its log.
    mutating func changes(_ node: (FileIdentity) -> Int) -> [DiskOperation] {
        var found: [DiskOperation.Place: Data] = [:]
        Self.visitDatabaseFiles(in: path) { directory, name in
            guard let status = try? DiskTree.status(directory),
                let content = try? Data(contentsOf: URL(filePath: "\(directory)/\(name)"))
            else { return }
            found[DiskOperation.Place(directory: node(status.identity), name: name)] = content
        }
        var changes: [DiskOperation] = []
        for place in Set(found.keys).union(known.keys).sorted(by: { ($0.directory, $0.name) < ($1.directory, $1.name) })
        where found[place] != known[place] {
            changes.append(.databaseFile(place, found[place]))
        }
        known = found
        return changes
    }
}
