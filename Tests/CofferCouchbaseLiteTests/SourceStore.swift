import Coffer
@testable import CofferCouchbaseLite
@testable import CofferSQLite
import CofferSealing
import Foundation
import TestSupport
import Testing

/// A store of Couchbase Lite 1.x that a test makes, in that library's format, with the SQLCipher that is loaded.
final class SourceStore {
    /// A row of `revs`.
    struct Row {
        var sequence: Int64
        var document: Int64
        var id: String
        var parent: Int64?
        var isCurrent = true
        var isDeleted = false
        var json: String?
    }

    enum Shape { case folder, file, fileWithOldFolder }

    let folder: URL
    let shape: Shape
    let key: SymmetricKey?
    let version: Int

    init(_ shape: Shape = .folder, version: Int = 102, key: SymmetricKey? = nil) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "cbl-\(UUID().uuidString)")
        self.shape = shape
        self.key = key
        self.version = version
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if shape == .folder { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
        try FileManager.default.createDirectory(at: attachments, withIntermediateDirectories: true)
        try Data().write(to: file)
        let connection = try connect(.create)
        try connection.execute(
            """
            CREATE TABLE docs (doc_id INTEGER PRIMARY KEY, docid TEXT UNIQUE NOT NULL, expiry_timestamp INTEGER);
            CREATE TABLE revs (
                sequence INTEGER PRIMARY KEY AUTOINCREMENT, doc_id INTEGER NOT NULL, revid TEXT NOT NULL COLLATE BINARY,
                parent INTEGER, current BOOLEAN, deleted BOOLEAN DEFAULT 0, json BLOB, no_attachments BOOLEAN,
                doc_type TEXT);
            CREATE INDEX revs_parent ON revs(parent);
            CREATE INDEX revs_current ON revs(doc_id, current desc, deleted, revid desc);
            CREATE TABLE localdocs (docid TEXT UNIQUE NOT NULL, revid TEXT NOT NULL, json BLOB);
            CREATE TABLE views (view_id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, version TEXT);
            CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT);
            INSERT INTO info VALUES ('max_revs', '20'), ('privateUUID', 'p'), ('publicUUID', 'q');
            """)
        if version < 17 || version == 20 {
            try connection.execute(
                """
                CREATE TABLE attachments (
                    sequence INTEGER NOT NULL, filename TEXT NOT NULL, key BLOB NOT NULL, type TEXT,
                    length INTEGER NOT NULL, revpos INTEGER DEFAULT 0, encoding INTEGER DEFAULT 0, encoded_length INTEGER);
                CREATE INDEX attachments_by_sequence ON attachments(sequence, filename);
                """)
        }
        try connection.execute(assembled: "PRAGMA user_version = \(version)")
        try connection.close()
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// A source with so many revisions that several batches are read, the last one incomplete: the first document's parent
    /// and the second one's child are in the last.
    static func ofSeveralBatches() throws -> SourceStore {
        let (count, digits) = (2_500, String(repeating: "a", count: 32))
        let source = try SourceStore()
        var rows = (1...Int64(count)).map {
            SourceStore.Row(sequence: $0, document: $0, id: "1-" + digits, json: #"{"n":\#($0)}"#)
        }
        rows[0].id = "2-" + digits
        rows[0].parent = 2_400
        rows[2_399].document = 1
        rows[2_399].isCurrent = false
        rows[1].isCurrent = false
        rows[2_449].document = 2
        rows[2_449].id = "2-" + digits
        rows[2_449].parent = 2
        let documents = (1...Int64(count)).map { ($0, "document-\($0)") }
        try source.add(documents: Dictionary(uniqueKeysWithValues: documents), rows)
        return source
    }

    /// The path to import.
    var url: URL { folder.appending(path: shape == .folder ? "people.cblite2" : "people.cblite") }

    /// The database file.
    var file: URL { shape == .folder ? url.appending(path: "db.sqlite3") : url }

    var attachments: URL {
        switch shape {
        case .folder: url.appending(path: "attachments")
        case .file: folder.appending(path: "people attachments")
        case .fileWithOldFolder: folder.appending(path: "people/attachments")
        }
    }

    func connect(_ access: Connection.Access) throws -> Connection {
        try Connection(
            path: file.path(percentEncoded: false), subject: "source", access: access, key: key, profile: .sqlCipher3,
            cacheByteCount: 1 << 20)
    }

    /// Runs SQL that holds no foreign values.
    func run(_ sql: String) throws {
        let connection = try connect(.readWrite)
        try connection.execute(assembled: sql)
        try connection.close()
    }

    func add(documents: [Int64: String], _ rows: [Row]) throws {
        let connection = try connect(.readWrite)
        try add(documents: documents, rows, to: connection)
        try connection.close()
    }

    func add(documents: [Int64: String], _ rows: [Row], to connection: borrowing Connection) throws {
        try connection.execute("BEGIN")
        let document = Statement(connection, "INSERT INTO docs (doc_id, docid) VALUES (?1, ?2)")
        for (number, id) in documents {
            try document.bind(1, number)
            try document.bind(2, id)
            try document.run()
        }
        let revision = Statement(
            connection,
            """
            INSERT INTO revs (sequence, doc_id, revid, parent, current, deleted, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """)
        for row in rows {
            try revision.bind(1, row.sequence)
            try revision.bind(2, row.document)
            try revision.bind(3, row.id)
            try revision.bind(4, row.parent)
            try revision.bind(5, row.isCurrent ? 1 : 0 as Int64)
            try revision.bind(6, row.isDeleted ? 1 : 0 as Int64)
            if let json = row.json { try revision.bind(7, Array(json.utf8)) } else { try revision.bindNull(7) }
            try revision.run()
        }
        document.finalize()
        revision.finalize()
        try connection.execute("COMMIT")
    }

    /// Makes the schema name the collation that only Couchbase Lite has, as its own files do.
    func nameCollations() throws {
        try run(
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = replace(sql, 'COLLATE BINARY', 'COLLATE REVID') WHERE name = 'revs'
            """)
    }

    // MARK: Attachments

    static func sha1(_ data: Data) throws -> [UInt8] { try Digest.sha1(of: Array(data)) }

    static func digest(_ data: Data) throws -> String { "sha1-" + Data(try sha1(data)).base64EncodedString() }

    func name(of data: Data, isUpperCase: Bool = true) throws -> String {
        let digits = try Self.sha1(data).hex
        return (isUpperCase ? digits.uppercased() : digits) + ".blob"
    }

    func write(_ data: Data, isUpperCase: Bool = true, key: SymmetricKey? = nil) throws {
        var bytes = data
        if let key {
            let vector = Array(repeating: UInt8(7), count: 16)
            var cipher = try PaddedCipher(.encrypting, key: key, vector: vector)
            bytes = Data(vector) + Data(try cipher.update(Array(data)))
            let end = cipher.finish()
            bytes += Data(try #require(end))
            try Data("AES".utf8).write(to: attachments.appending(path: "_encryption"))
        }
        try bytes.write(to: attachments.appending(path: name(of: data, isUpperCase: isUpperCase)))
    }

    // MARK: Looking

    /// All files and their bytes.
    func snapshot() throws -> [String: Data] {
        var files: [String: Data] = [:]
        let all = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        while let next = all?.nextObject() as? URL {
            if let data = try? Data(contentsOf: next) { files[next.path] = data }
        }
        return files
    }
}

/// A folder for new databases, which is removed with this object.
final class Target {
    let manager: Manager

    init() throws {
        manager = try Manager(
            directory: FileManager.default.temporaryDirectory.appending(path: "target-\(UUID().uuidString)"))
    }

    deinit { try? FileManager.default.removeItem(at: manager.directory) }

    /// What is in the folder, hidden files too.
    var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: manager.directory.path(percentEncoded: false))) ?? []
    }

    func take(
        _ source: SourceStore, key: SymmetricKey? = nil, encryptionKey: SymmetricKey? = nil,
        options: CouchbaseLiteImportOptions = .init()
    ) throws -> (Database, CouchbaseLiteImportReport) {
        let report = try manager.importCouchbaseLite(
            at: source.url, named: "people", key: key, encryptionKey: encryptionKey, options: options)
        return (try manager.database(named: "people", encryptionKey: encryptionKey), report)
    }
}
