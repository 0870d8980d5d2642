import CofferSealing
import CofferVault
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

@Suite("What a key change checks of its copy")
struct KeyChangeSchemaTests {
    private let stores = TestStores()

    /// A database without encryption, which has several rows in every table, and is closed.
    private func makeFile() throws -> DatabaseFile {
        let database = try stores.open(key: nil)
        try KeyChangeContent.fill(database)
        for name in ["one", "two", "three"] {
            try database.saveLocalDocument(["name": .string(name)], withID: name)
            try database.document(withID: "body-100").setExpirationDate(.distantFuture)
            try database.document(withID: "body-2000").setExpirationDate(.distantFuture)
            let digest = String(repeating: "a", count: 31) + "\(name.count)"
            try database.putExistingRevision(
                ["conflict": .string(name)], withID: "later", history: [try #require(RevisionID("2-\(digest)"))])
        }
        for path: PropertyPath in ["n", "text"] {
            try database.createIndex(named: path.description, on: path)
            try database.createTextIndex(named: path.description, on: [path])
            try database.updateTextIndex(named: path.description)
        }
        try database.updateIndexes()
        try database.close()
        return DatabaseFile(path: try stores.databaseFile().path, subject: "the test's")
    }

    private func verify(_ file: DatabaseFile, rowCounts: [Int]? = nil) throws -> Int {
        try DatabaseCopy(from: file, to: file, try Manifest.read(path: stores.url().path), WorkMonitor())
            .verify(rowCounts: rowCounts)
    }

    /// The tables and indexes, with the page where each begins and the SQL that made it, empty for indexes of SQLite's own.
    private func trees(of file: DatabaseFile) throws -> [(name: String, root: Int, sql: String)] {
        let connection = try file.connect(.readOnly, cacheByteCount: 1 << 20)
        let trees = try Statement(connection, "SELECT name, rootpage, sql FROM sqlite_master").all {
            (name: $0.text(0), root: Int($0.integer(1)), sql: $0.text(2))
        }
        try connection.close()
        return trees
    }

    @Test("A key change checks every table there is, every index, and every body that may overflow its page")
    func tables() throws {
        let file = try makeFile()
        let tables = Schema.tables + IndexSchema.tables
        let indexes = tables.flatMap(\.indexes).map { "\($0.entryCount) " }
        var count = 0
        for (name, _, sql) in try trees(of: file) {
            guard sql.hasPrefix("CREATE TABLE") else {
                #expect(indexes.count { $0.contains(" INDEXED BY \(name) ") } == 1, "\(name)")
                continue
            }
            count += 1
            let table = try #require(tables.first { "\($0.count) ".contains(" FROM \(name) ") }, "\(name)")
            let hasBodies = sql.contains("digest BLOB") && sql.contains("body BLOB")
            #expect(table.bodies.map { "\($0)".contains("FROM \(name) AS r ") } == (hasBodies ? true : nil), "\(name)")
            #expect((table.keys != nil) == sql.contains("WITHOUT ROWID"), "\(name)")
        }
        #expect(count == tables.count)
    }

    @Test("A copy that has another number of rows than its source, in any table, is damaged")
    func otherRows() throws {
        let file = try makeFile()
        let connection = try file.connect(.readOnly, cacheByteCount: 1 << 20)
        var counts: [Int] = []
        for table in Schema.tables + IndexSchema.tables {
            counts.append(try Statement(connection, table.count).first { Int($0.integer(0)) } ?? 0)
        }
        try connection.close()
        // Nothing waits to be indexed.
        #expect(counts.count { $0 == 0 } == 1, "\(counts)")
        #expect(try verify(file, rowCounts: counts) > 0)
        for place in counts.indices {
            var others = counts
            others[place] += 1
            #expect(thrown { try verify(file, rowCounts: others) }?.code == .damaged, "\(place)")
        }
    }

    @Test("A copy in which two rows of any table, or two entries of any index, have changed places is damaged")
    func otherOrder() throws {
        let file = try makeFile()
        let url = URL(filePath: file.path)
        let sound = try Data(contentsOf: url)
        for (name, root, _) in try trees(of: file) {
            var bytes = [UInt8](sound)
            let page = firstLeaf(below: root, of: bytes)
            let cells = (page - 1) * 4096 + (page == 1 ? 108 : 8)
            if bytes.bigEndian(2, at: cells - 5) < 2 {
                // Nothing waits to be indexed, and the lengths of few texts are one row.
                #expect(["index_debts", "text_lengths"].contains(name))
                continue
            }
            bytes.replaceSubrange(cells..<cells + 4, with: bytes[cells + 2..<cells + 4] + bytes[cells..<cells + 2])
            try Data(bytes).write(to: url)
            #expect(thrown { try verify(file) }?.code == .damaged, "\(name)")
        }
        try sound.write(to: url)
        #expect(try verify(file) > 0)
    }

    /// The first page of rows of the tree that begins on page `root`: sqlite.org/fileformat2.html, section 1.6.
    private func firstLeaf(below root: Int, of bytes: [UInt8]) -> Int {
        var page = root
        while case let start = (page - 1) * 4096, bytes[start] == 2 || bytes[start] == 5 {
            page = bytes.bigEndian(4, at: start + bytes.bigEndian(2, at: start + 12))
        }
        return page
    }

    /// An index, how it gets out of SQLite's sight, and how a row of its table goes or comes meanwhile.
    private static let indexes:
        [(name: StaticString, hiding: StaticString, deletion: StaticString, insertion: StaticString)] = [
            (
                "later_revisions", "DELETE FROM sqlite_master WHERE name = 'later_revisions'",
                "DELETE FROM revisions WHERE sequence = (SELECT max(sequence) FROM revisions WHERE document <> sequence)",
                """
                INSERT INTO revisions SELECT max(sequence) + 1, document, parent, flags, generation + 50, suffix, digest, id, body
                FROM revisions WHERE document <> sequence
                """
            ),
            (
                "uses_of_attachment", "DELETE FROM sqlite_master WHERE name = 'uses_of_attachment'",
                "DELETE FROM attachment_uses WHERE attachment = (SELECT max(attachment) FROM attachment_uses)",
                "INSERT INTO attachment_uses SELECT revision, 77 FROM attachment_uses LIMIT 1"
            ),
            (
                "expirations_by_time", "DELETE FROM sqlite_master WHERE name = 'expirations_by_time'",
                "DELETE FROM expirations WHERE id = (SELECT max(id) FROM expirations)",
                "INSERT INTO expirations VALUES ('other', 77)"
            ),
        ]

    @Test(
        "A copy is damaged whose index has an entry too many or too few, though each tree is sound for itself",
        arguments: indexes.indices, [false, true])
    func otherEntries(_ place: Int, isMissing: Bool) throws {
        let index = Self.indexes[place]
        let file = try makeFile()
        // SQLite doesn't see the index, and leaves it as it is, while the row comes or goes.
        let definition = try #require(try trees(of: file).first { $0.name == "\(index.name)" })
        try change(file) { (connection) throws(CofferError) in try connection.changeSchemaDirectly(index.hiding) }
        try change(file) { (connection) throws(CofferError) in
            try connection.execute(isMissing ? index.insertion : index.deletion)
        }
        try change(file) { (connection) throws(CofferError) in
            try connection.execute("PRAGMA writable_schema = ON")
            let insert = Statement(connection, "INSERT INTO sqlite_master VALUES ('index', ?1, ?2, ?3, ?4)")
            try insert.bind(1, definition.name)
            try insert.bind(
                2, definition.sql.split(separator: " ")[definition.sql.contains("UNIQUE") ? 5 : 4].description)
            try insert.bind(3, Int64(definition.root))
            try insert.bind(4, definition.sql)
            try insert.run()
        }
        let error = thrown { try verify(file) }
        #expect(error?.code == .damaged)
        // SQLite's checks say more of indexes in later versions, and of an index of some rows less.
        guard try Library.load().cipherVersion?.hasPrefix("3.") == true else { return }
        #expect(error?.detail?.contains("index") == true, "\(error?.detail ?? "")")
        let connection = try file.connect(.readOnly, cacheByteCount: 1 << 20)
        #expect(try Statement(connection, "PRAGMA quick_check").first { $0.text(0) } == "ok")
        #expect(try Statement(connection, "PRAGMA integrity_check").first { $0.text(0) } != "ok")
        try connection.close()
    }

    /// Runs `body` in a connection of its own, which sees the schema as it is by then.
    private func change(
        _ file: DatabaseFile, _ body: (borrowing Connection) throws(CofferError) -> Void
    ) throws(CofferError) {
        let connection = try file.connect(.create, cacheByteCount: 1 << 20)
        try body(connection)
        try connection.close()
    }
}
