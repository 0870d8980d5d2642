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

    /// What has changed since the last call, the database itself before its log.
    mutating func changes(_ node: (FileIdentity) -> Int) -> [DiskOperation] {
        var found: [DiskOperation.Place: Data] = [:]
        for name in (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? [] {
            let components = name.split(separator: "/")
            let file = "\(path)/\(name)"
            guard let last = components.last.map(String.init), Self.isDatabaseFile(last),
                let directory = try? DiskTree.status((file as NSString).deletingLastPathComponent),
                let content = try? Data(contentsOf: URL(filePath: file))
            else { continue }
            found[DiskOperation.Place(directory: node(directory.identity), name: last)] = content
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
