internal import CofferSealing
internal import CofferSQLite
internal import Synchronization

/// A revision, as it is in a row of the source.
struct SourceRevision {
    let sequence: Int64
    let document: Int64
    /// The bytes of its id, which may be neither a valid revision id nor text.
    let id: [UInt8]
    let parent: Int64?
    let isCurrent: Bool
    let isDeletion: Bool
    let json: [UInt8]?

    fileprivate init(_ row: Statement) {
        sequence = row.integer(0)
        document = row.integer(1)
        id = row.bytes(2)
        parent = row.isNull(3) ? nil : row.integer(3)
        isCurrent = row.integer(4) != 0
        isDeletion = row.integer(5) != 0
        // An empty body is the same as a missing one.
        json = row.bytesIfAny(6).flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// What the history of a revision needs to know of an ancestor.
struct SourceAncestor {
    let document: Int64
    let id: [UInt8]
    let parent: Int64?
    let hasBody: Bool
}

/// An attachment, as it is in a row of the table that old stores have.
struct SourceAttachment {
    let name: [UInt8]
    let key: [UInt8]
    let contentType: [UInt8]?
    let length: Int64?
    let generation: Int64
    let isGzip: Bool
}

/// The database of a source, for the thread whose turn it is.
final class SharedSourceDatabase: Sendable {
    private let database: Lock<SourceDatabase>

    init(_ database: sending SourceDatabase) { self.database = Lock(database) }

    func withLock<Result, Failure: Error>(
        _ body: (SourceDatabase) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try database.withLock { (database) throws(Failure) in try body(database) }
    }
}

/// The database of a source, open for reading.
///
/// Indexes are never used: they name collations that only Couchbase Lite has, and in a hostile file they may contradict
/// the table.
final class SourceDatabase {
    let version: Int
    private let subject: String
    private let connection: Connection
    private let hasAttachmentTable: Bool
    private let hasExpirations: Bool
    private let tables: Set<String>

    private let scan: Statement
    private var isScanned = false
    private let revision: Statement
    private let ancestor: Statement
    private let document: Statement
    private let attachments: Statement

    private static let cacheByteCount = 8 << 20

    /// Opens the database.
    ///
    /// - Parameter key: 32 bytes; nil for a database that is not encrypted.
    /// - Returns: nil if the first page can't be read with that key.
    /// - Throws: `unsupportedFormat` (501), `notAStore` (404), `damaged` (500).
    static func open(
        _ files: SourceFiles, subject: String, key: SymmetricKey?
    ) throws(CofferError) -> SourceDatabase? {
        do throws(CofferError) {
            return try SourceDatabase(files, subject, key)
        } catch {
            if error.cause is NotADatabase { return nil }
            throw error.about(subject)
        }
    }

    private init(_ files: SourceFiles, _ subject: String, _ key: SymmetricKey?) throws(CofferError) {
        self.subject = subject
        let access: Connection.Access =
            switch files.access {
            case .immutable: .immutable
            case .log: .readOnly
            // SQLite rolls the interrupted transaction back, in the copy.
            case .journal: .readWrite
            }
        connection = try Connection(
            path: files.path, subject: subject, access: access, key: key, profile: .sqlCipher3,
            cacheByteCount: Self.cacheByteCount)
        // The schema may be hostile, so it must not call functions. SQLite before 3.31 has no such setting, and ignores
        // it.
        try connection.execute("PRAGMA trusted_schema = OFF")
        version = Int(try Statement(connection, "PRAGMA user_version").first { $0.integer(0) } ?? 0)
        tables = try Self.tables(connection)
        try Self.check(version, tables)
        guard try Statement(connection, "PRAGMA encoding").first({ $0.text(0) }) == "UTF-8" else {
            throw CofferError(.unsupportedFormat, of: subject, "its text encoding is not UTF-8")
        }
        hasAttachmentTable = tables.contains("attachments")
        let columns = Statement(connection, "PRAGMA table_info(docs)")
        var hasExpirations = false
        while try columns.step() { if columns.text(1) == "expiry_timestamp" { hasExpirations = true } }
        columns.finalize()
        self.hasExpirations = hasExpirations
        scan = Statement(
            connection,
            "SELECT sequence, doc_id, revid, parent, current, deleted, json FROM revs NOT INDEXED ORDER BY sequence")
        revision = Statement(
            connection,
            """
            SELECT sequence, doc_id, revid, parent, current, deleted, json FROM revs NOT INDEXED WHERE sequence = ?1
            """)
        ancestor = Statement(
            connection, "SELECT doc_id, revid, parent, json IS NULL FROM revs NOT INDEXED WHERE sequence = ?1")
        document = Statement(connection, "SELECT docid FROM docs NOT INDEXED WHERE doc_id = ?1")
        attachments = Statement(
            connection, "SELECT filename, key, type, length, revpos, encoding FROM attachments WHERE sequence = ?1")
    }

    private static func tables(_ connection: borrowing Connection) throws(CofferError) -> Set<String> {
        let list = Statement(connection, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        defer { list.finalize() }
        var names: Set<String> = []
        while try list.step() { names.insert(list.text(0)) }
        return names
    }

    private static func check(_ version: Int, _ tables: Set<String>) throws(CofferError) {
        if version >= 200 {
            throw CofferError(
                .unsupportedFormat,
                "it is a store of Couchbase Lite 2 or later (schema \(version)), and only stores of 1.x can be imported; "
                    + "let its app push it to a Sync Gateway, and pull from there")
        }
        guard version != 0 || tables.contains("revs") else {
            throw CofferError(.notAStore, "it is a database, but not one of Couchbase Lite")
        }
        guard (11...20).contains(version) || (100...102).contains(version) else {
            throw CofferError(
                .unsupportedFormat,
                "its schema has the unknown version \(version); versions 11 to 20 and 100 to 102 can be imported"
            )
        }
        guard tables.isSuperset(of: ["docs", "revs"]) else {
            throw CofferError(.damaged, "it lacks a table that every Couchbase Lite database has: docs or revs")
        }
    }

    /// Closes the database. An error is ignored, since it was only read.
    ///
    /// There is no next revision then, even for a thread that still reads ahead.
    func close() {
        isScanned = true
        try? connection.close()
    }

    /// Ends long statements once `goesOn` returns false.
    func ask(_ goesOn: @escaping () -> Bool) { connection.ask(goesOn) }

    // MARK: Revisions

    /// A revision's place in its tree.
    struct Link {
        let sequence: Int64
        let document: Int64
        let parent: Int64?
        /// Whether the source marks it as current.
        let isCurrent: Bool
        let generation: Int
    }

    /// Calls `body` with each revision's link.
    func forEachLink(_ body: (Link) -> Void) throws(CofferError) {
        // The sum has no collation. The column's own is not available here.
        let links = Statement(
            connection, "SELECT sequence, doc_id, parent, current, CAST(revid AS INTEGER) + 0 FROM revs NOT INDEXED")
        defer { links.finalize() }
        while try links.step() {
            body(
                Link(
                    sequence: links.integer(0), document: links.integer(1),
                    parent: links.isNull(2) ? nil : links.integer(2), isCurrent: links.integer(3) != 0,
                    generation: Int(links.integer(4))))
        }
    }

    /// The next revision, in the order of sequences; nil after the last, however often.
    func nextRevision() throws(CofferError) -> SourceRevision? {
        // A statement that has ended would begin again.
        guard !isScanned else { return nil }
        guard try scan.step() else {
            isScanned = true
            return nil
        }
        return SourceRevision(scan)
    }

    func revision(_ sequence: Int64) throws(CofferError) -> SourceRevision? {
        try revision.bind(1, sequence)
        return try revision.first { SourceRevision($0) }
    }

    func ancestor(_ sequence: Int64) throws(CofferError) -> SourceAncestor? {
        try ancestor.bind(1, sequence)
        return try ancestor.first {
            SourceAncestor(
                document: $0.integer(0), id: $0.bytes(1), parent: $0.isNull(2) ? nil : $0.integer(2),
                hasBody: $0.integer(3) == 0)
        }
    }

    /// The id of a document; nil if there is no such row.
    func documentID(_ number: Int64) throws(CofferError) -> [UInt8]? {
        try document.bind(1, number)
        return try document.first { $0.bytes(0) }
    }

    /// The rows of a revision in the attachment table of old stores.
    func attachments(of sequence: Int64) throws(CofferError) -> [SourceAttachment] {
        guard hasAttachmentTable else { return [] }
        try attachments.bind(1, sequence)
        defer { attachments.reset() }
        var found: [SourceAttachment] = []
        while try attachments.step() {
            found.append(
                SourceAttachment(
                    name: attachments.bytes(0), key: attachments.bytes(1), contentType: attachments.bytesIfAny(2),
                    length: attachments.isNull(3) ? nil : attachments.integer(3), generation: attachments.integer(4),
                    isGzip: attachments.integer(5) != 0))
        }
        return found
    }

    // MARK: The rest

    /// Calls `body` with each local document.
    func forEachLocalDocument(
        _ body: (_ id: [UInt8], _ json: [UInt8]?) throws(CofferError) -> Void
    ) throws(CofferError) {
        guard tables.contains("localdocs") else { return }
        let list = Statement(connection, "SELECT docid, json FROM localdocs NOT INDEXED")
        defer { list.finalize() }
        while try list.step() { try body(list.bytes(0), list.bytesIfAny(1)) }
    }

    /// Calls `body` with each document that expires.
    func forEachExpiration(
        _ body: (_ id: [UInt8], _ time: Int64) throws(CofferError) -> Void
    ) throws(CofferError) {
        guard hasExpirations else { return }
        let list = Statement(
            connection, "SELECT docid, expiry_timestamp FROM docs NOT INDEXED WHERE expiry_timestamp IS NOT NULL")
        defer { list.finalize() }
        while try list.step() { try body(list.bytes(0), list.integer(1)) }
    }

    /// Calls `body` with each setting.
    func forEachSetting(_ body: (_ key: String, _ value: String) -> Void) throws(CofferError) {
        guard tables.contains("info") else { return }
        let list = Statement(connection, "SELECT key, value FROM info NOT INDEXED")
        defer { list.finalize() }
        while try list.step() { body(list.text(0), list.text(1)) }
    }

    func viewCount() throws(CofferError) -> Int {
        guard tables.contains("views") else { return 0 }
        let count = Statement(connection, "SELECT count(*) FROM views NOT INDEXED")
        defer { count.finalize() }
        return Int(try count.first { $0.integer(0) } ?? 0)
    }
}
