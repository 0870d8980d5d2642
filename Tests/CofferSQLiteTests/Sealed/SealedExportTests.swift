import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

@Suite("Copies between files that are protected in different ways")
struct SealedExportTests {
    enum Kind: CaseIterable, Sendable { case none, sqlCipher, sealed }

    /// A file of a kind, and how it is opened.
    private struct File {
        let path: String
        let protection: PageProtection

        init(_ kind: Kind, at path: String) throws {
            self.path = path
            #expect(FileManager.default.createFile(atPath: path, contents: nil))
            switch kind {
            case .none: protection = .none
            case .sqlCipher: protection = .sqlCipher(try SymmetricKey(), .portable)
            case .sealed:
                let pages = try SealedPages(
                    path: path, subject: "test", key: try SymmetricKey(), binding: SealedFixture.binding,
                    cacheByteCount: 1 << 20)
                try pages.writeEmptyDatabase()
                protection = .sealed(pages)
            }
        }

        func connect(_ access: Connection.Access) throws -> Connection {
            try Connection(
                path: path, subject: "test", access: access, protection: protection, cacheByteCount: 1 << 20)
        }
    }

    private static func contents(_ connection: borrowing Connection) throws -> [String] {
        let rows = try connection.rows()
        let schema = try Statement(connection, "SELECT type, name, sql FROM sqlite_master ORDER BY name").all {
            "\($0.text(0)) \($0.text(1)) \($0.text(2))"
        }
        let blobs = try Statement(connection, "SELECT id, content FROM blobs ORDER BY id").all {
            "\($0.text(0)) \($0.bytes(1).count) \($0.bytes(1).last ?? 0)"
        }
        return rows + schema + blobs
    }

    @Test(
        "What is committed, in the file or in its log, is in the copy, whatever the two are protected by",
        arguments: Kind.allCases, Kind.allCases)
    func pair(source: Kind, target: Kind) throws {
        let folder = TemporaryFolder()
        let file = try File(source, at: folder.file("source ä%?#.sqlite3"))
        let created = try file.connect(.create)
        try created.execute(
            """
            CREATE TABLE t (n INTEGER PRIMARY KEY, v);
            CREATE TABLE blobs (id TEXT PRIMARY KEY, content) WITHOUT ROWID;
            CREATE INDEX t_by_v ON t (v);
            """)
        try created.switchToWriteAheadLog()
        try created.close()
        let writer = try file.connect(.readWrite)
        for number in 1...50 { try writer.insert(number, String(repeating: "canary \(number) ", count: 20)) }
        try writer.execute("INSERT INTO blobs VALUES ('a', zeroblob(20000)), ('b', x'0102'), ('c', zeroblob(0))")
        _ = try writer.checkpoint(patience: .zero)
        try writer.insert(51, "in the log")
        let expected = try Self.contents(writer)

        let copy = try File(target, at: folder.file("copy ä%?#.sqlite3"))
        let exporting = try file.connect(.exporting)
        var isChecked = false
        try exporting.export(to: copy.path, protection: copy.protection, cacheByteCount: 1 << 20) {
            true
        } check: { () throws(CofferError) in
            isChecked = true
        }
        #expect(isChecked)
        try exporting.close()
        try writer.close()

        let reopened = try copy.connect(.create)
        try reopened.switchToWriteAheadLog()
        #expect(try Self.contents(reopened) == expected)
        #expect(try reopened.integrity() == "ok")
        #expect(try Statement(reopened, "PRAGMA auto_vacuum").first { $0.integer(0) } == 2)
        try reopened.close()
        let bytes = try Data(contentsOf: URL(fileURLWithPath: copy.path))
        #expect((bytes.range(of: Data("canary".utf8)) != nil) == (target == .none))
        #expect(try folder.names().allSatisfy { !$0.contains("-journal") })
        for access in [Connection.Access.readWrite, .immutable] {
            #expect(try Self.contents(copy.connect(access)) == expected)
        }
    }

    @Test("A copy of a sealed file with a damaged page fails, and never holds fewer rows", arguments: Kind.allCases)
    func damagedSource(target: Kind) throws {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        for number in 1...100 { try writer.insert(number, String(repeating: "row \(number) ", count: 60)) }
        try writer.close()
        let image = fixture.image()
        for page in 2...SealedBytes(image: image).pageCount where page != 2 {
            var damaged = image
            damaged.file[SealedBytes.pageRange(page).lowerBound] ^= 1
            let source = try fixture.restored(damaged)
            let copy = try File(target, at: fixture.folder.file("copy \(page)"))
            let error = #expect(throws: CofferError.self, "page \(page)") {
                let connection = try source.connect(.exporting)
                try connection.export(to: copy.path, protection: copy.protection, cacheByteCount: 1 << 20) {
                    true
                } check: { () throws(CofferError) in
                }
            }
            #expect(error?.code == .damaged, "page \(page)")
        }
    }
}
