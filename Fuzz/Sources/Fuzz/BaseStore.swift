import Coffer
import Foundation

/// The stores that are changed: made once a process by this version, in memory, and copied for each run.
///
/// The layout is always the same, though keys and salts aren't: a run can be repeated from its bytes.
struct BaseStore {
    static let photo: Data = {
        var random = SeededRandom(state: 1)
        return Data((0..<2 * 16_384 + 100).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }()
    static let long = Data(#"{"t":"\#(String(repeating: "long text ", count: 900))"}"#.utf8)

    static func key(_ byte: UInt8) -> SymmetricKey {
        do { return try SymmetricKey(data: [UInt8](repeating: byte, count: 32)) } catch { fatalError("\(error)") }
    }

    /// A directory of this process's own. A run of minutes leaves no more than this behind, where even that.
    static let directory: URL = {
        let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        let place = access(memory.path, W_OK) == 0 ? memory : URL.temporaryDirectory
        let directory = place.appending(path: "coffer-fuzz-\(getpid())", directoryHint: .isDirectory)
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        } catch { fatalError("\(error)") }
        atexit { try? FileManager.default.removeItem(at: BaseStore.directory) }
        return directory
    }()

    /// Encrypted and not, each without a log and with one.
    static let all: [BaseStore] = {
        do {
            return try [
                BaseStore(key: key(7), hasLog: false), BaseStore(key: key(7), hasLog: true),
                BaseStore(key: nil, hasLog: false), BaseStore(key: nil, hasLog: true),
            ]
        } catch { fatalError("\(error)") }
    }()

    /// Of the directory.
    static let manager: Manager = {
        do { return try Manager(directory: directory) } catch { fatalError("\(error)") }
    }()

    /// Every file, by its path in the store, and every directory with nil.
    let files: [(path: String, content: Data?)]
    let key: SymmetricKey?

    /// - Parameter more: what else is done with it.
    init(key: SymmetricKey?, hasLog: Bool, _ more: ((Database) throws -> Void)? = nil) throws {
        self.key = key
        let manager = try Manager(directory: Self.directory)
        let name = "base\(key == nil ? "-plain" : "")\(hasLog ? "-log" : "")\(more == nil ? "" : "-more")"
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = key
        var database = try manager.openDatabase(named: name, options: options)
        try database.inTransaction {
            try database.save(json: Data(#"{"n":1}"#.utf8), withID: "short")
            try database.save(json: Self.long, withID: "long")
            try database.save(json: Data("{}".utf8), withID: "gone")
            try database.document(withID: "gone").delete()
            let draft = try database.document(withID: "photo").newRevision()
            draft.setAttachment(named: "photo", contentType: nil, content: Self.photo)
            try draft.save()
            for suffix in ["b", "c"] {
                let history = ["2-\(suffix)", "1-a"].compactMap { RevisionID($0) }
                try database.putExistingRevision(["n": 3], withID: "torn", history: history)
            }
        }
        try database.saveLocalDocument(["n": 1], withID: "local")
        try more?(database)
        let url = Self.directory.appending(path: "\(name).coffer", directoryHint: .isDirectory)
        try database.close()
        if hasLog {
            // What is only in the log: a second revision of one document. Copied while open, so that it stays there.
            database = try manager.openDatabase(named: name, options: options)
            let draft = try database.document(withID: "short").newRevision()
            draft["n"] = 2
            try draft.save()
        }
        files = try FileManager.default.subpathsOfDirectory(atPath: url.path).sorted().map { path in
            var isDirectory: ObjCBool = false
            let file = url.appending(path: path)
            _ = FileManager.default.fileExists(atPath: file.path, isDirectory: &isDirectory)
            return (path, isDirectory.boolValue ? nil : try Data(contentsOf: file))
        }
        try database.close()
        try database.deleteAfterCopying(manager, name, options)
    }

    /// Puts the store into `url`, where nothing is.
    func write(to url: URL, _ change: (_ path: String, inout Data) -> Bool = { _, _ in true }) throws {
        let manager = FileManager.default
        try manager.createDirectory(
            at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        for (path, content) in files {
            let file = url.appending(path: path)
            if var content {
                if change(path, &content) { try content.write(to: file) }
            } else {
                try manager.createDirectory(at: file, withIntermediateDirectories: false)
            }
        }
    }
}

extension Database {
    fileprivate func deleteAfterCopying(_ manager: Manager, _ name: String, _ options: DatabaseOptions) throws {
        try manager.openDatabase(named: name, options: options).delete()
    }
}
