import Foundation
import TestSupport

@testable import Coffer
@testable import CofferVault

/// A small store that is made on purpose, so that others can read it: a vector, or what a reader is tried on.
struct StoreRecipe: Sendable {
    /// A key as a vector says it.
    enum Key: Sendable {
        case password(String)
        case bytes(UInt8)

        /// Each of the 32 bytes is one more than the one before.
        var keyBytes: [UInt8]? { if case .bytes(let first) = self { (0..<32).map { first &+ $0 } } else { nil } }

        var symmetricKey: SymmetricKey {
            get throws {
                switch self {
                case .password(let password): SymmetricKey(password: password)
                case .bytes: try SymmetricKey(data: keyBytes ?? [])
                }
            }
        }

        var json: JSONObject {
            switch self {
            case .password(let password): ["password": .string(password)]
            case .bytes: ["bytes": .string((keyBytes ?? []).hex)]
            }
        }
    }

    var name: String
    var comment: String
    /// The database's name.
    var database: String
    /// Each of them opens it; empty when it is not encrypted.
    var keys: [Key]
    /// Makes the store in a directory, with costs of passwords as asked for.
    var make: @Sendable (_ managers: Managers, _ recipe: StoreRecipe) throws -> Void

    /// Managers of one directory that differ in what a new password costs.
    struct Managers {
        var scrypt: Manager
        var pbkdf2: Manager

        init(_ directory: URL) {
            scrypt = Manager(
                directory: directory, fileSystem: SystemFileSystem(), passwordCost: .scrypt(log2N: 10, p: 1))
            pbkdf2 = Manager(
                directory: directory, fileSystem: SystemFileSystem(), passwordCost: .pbkdf2(iterations: 100_000))
        }
    }

    var fileName: String { database.replacing("/", with: ":") + ".coffer" }

    /// Makes the store in `directory`.
    ///
    /// - Returns: what a vector says of it: its keys, and what it holds.
    func write(to directory: URL) throws -> JSONObject {
        try make(Managers(directory), self)
        let store = try open(Managers(directory).scrypt) { $0.readOnly = true }
        defer { try? store.close() }
        return [
            "comment": .string(comment), "holds": .object(try StoreDescription.of(store)),
            "keys": .array(keys.map { .object($0.json) }), "store": .string(fileName),
        ]
    }

    func open(_ manager: Manager, _ change: (inout DatabaseOptions) -> Void = { _ in }) throws -> Database {
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = try keys.first?.symmetricKey
        options.compactsInBackground = false
        change(&options)
        return try manager.openDatabase(named: database, options: options)
    }

    // MARK: All of them

    static let all = [everything, keyedNames, unencrypted, empty, killed, changedKey, later]

    private static let everything = StoreRecipe(
        name: "everything", comment: "Everything that a store can hold, and a key of each kind; slot 1 is empty.",
        database: "every-thing/(1)", keys: [.password("pässwo\u{308}rd 1"), .bytes(1), .password("by PBKDF2")]
    ) { managers, recipe in
        var database = try recipe.open(managers.scrypt)
        let removed = try database.addKey(SymmetricKey(password: "goes again"))
        try database.addKey(recipe.keys[1].symmetricKey, label: "a machine's, schlüssel")
        try database.removeKey(removed.id)
        // It takes the empty slot, so that the next key does not and the slot is empty in the end.
        let filler = try database.addKey(testKey(9))
        try database.close()
        database = try recipe.open(managers.pbkdf2)
        try database.addKey(recipe.keys[2].symmetricKey, label: "PBKDF2")
        try database.removeKey(filler.id)
        try StoreContent.fill(database)
        try StoreContent.fillWithHistories(database)
        try database.close()
    }

    private static let keyedNames = StoreRecipe(
        name: "keyed-names", comment: "Attachment files whose names are keyed.", database: "keyed", keys: [.bytes(32)]
    ) { managers, recipe in
        let database = try recipe.open(managers.scrypt) { $0.keyedNames = true }
        try StoreContent.fillWithAttachments(database)
        try database.close()
    }

    private static let unencrypted = StoreRecipe(
        name: "unencrypted", comment: "Not encrypted: SQLite, and files that are their contents.", database: "plain",
        keys: []
    ) { managers, recipe in
        let database = try recipe.open(managers.scrypt)
        try StoreContent.fill(database)
        try database.close()
    }

    private static let empty = StoreRecipe(
        name: "empty", comment: "Just created.", database: "empty", keys: [.bytes(64)]
    ) { managers, recipe in
        try recipe.open(managers.scrypt).close()
    }

    private static let killed = StoreRecipe(
        name: "killed",
        comment: "As a kill leaves it: most of it is in the log, and in incoming/ is a file that nobody saved.",
        database: "killed", keys: [.password("hot")]
    ) { managers, recipe in
        try recipe.open(managers.scrypt).close()
        let database = try recipe.open(managers.scrypt)
        try StoreContent.fillWithAttachments(database, lengths: [0, 16_384])
        try database.save(json: Data(#"{"n":1}"#.utf8), withID: "later")
        // What is on the disk while nothing runs is what a kill leaves.
        let store = managers.scrypt.directory.appending(path: recipe.fileName)
        let copy = managers.scrypt.directory.appending(path: "copy")
        try FileManager.default.copyItem(at: store, to: copy)
        try database.close()
        try FileManager.default.removeItem(at: store)
        try FileManager.default.moveItem(at: copy, to: store)
        let incoming = try generation(of: store).appending(path: "incoming/0123456789abcdef")
        try Data("half of a".utf8).write(to: incoming)
    }

    private static let changedKey = StoreRecipe(
        name: "changed-key", comment: "Encrypted under a second key, so of generation 2; the first one was a password.",
        database: "changed", keys: [.bytes(96)]
    ) { managers, recipe in
        let database = try recipe.open(managers.scrypt) { $0.encryptionKey = SymmetricKey(password: "first") }
        try StoreContent.fillWithAttachments(database, lengths: [0, 16_384])
        try database.changeEncryptionKey(to: recipe.keys[0].symmetricKey)
        try database.close()
    }

    private static let later = StoreRecipe(
        name: "other-names", comment: "With names in it that mean nothing, and a generation that something left.",
        database: "other", keys: [.bytes(128)]
    ) { managers, recipe in
        let database = try recipe.open(managers.scrypt)
        try StoreContent.fillWithAttachments(database, lengths: [0, 16_384])
        try database.close()
        let store = managers.scrypt.directory.appending(path: recipe.fileName)
        let current = try generation(of: store)
        for path in ["MANIFEST.new", "README", "MANIFEST.bak"] {
            try Data("nobody reads this".utf8).write(to: store.appending(path: path))
        }
        for path in ["attachments/\(String(repeating: "0", count: 40)).blob", "attachments/x.blob", "notes"] {
            try Data("nor this".utf8).write(to: current.appending(path: path))
        }
        let other = store.appending(path: "g0000000000000002-0123456789abcdef/attachments")
        try FileManager.default.createDirectory(at: other, withIntermediateDirectories: true)
        try Data("no database".utf8).write(to: other.deletingLastPathComponent().appending(path: "db.sqlite3"))
    }

    /// The one directory of a generation in `store`.
    static func generation(of store: URL) throws -> URL {
        let names = try FileManager.default.contentsOfDirectory(atPath: store.path).filter { $0.hasPrefix("g0") }
        guard names.count == 1 else { throw CofferError(.damaged, of: store.path) }
        return store.appending(path: names[0], directoryHint: .isDirectory)
    }
}
