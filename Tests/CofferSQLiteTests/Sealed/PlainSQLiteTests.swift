#if os(Linux)
import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

/// Where no SQLCipher is installed. Tests run on SQLCipher, so that these have a process of their own, which finds rubbish under
/// all of its names.
@Suite("SQLite without SQLCipher")
struct PlainSQLiteTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let isAlone = environment["COFFER_WITHOUT_SQLCIPHER"] != nil

    @Test(
        "Without SQLCipher, all tests of sealed pages pass on the system's SQLite, which reads SQLCipher's and is read by it",
        .enabled(if: !isAlone), .timeLimit(.minutes(10)))
    func ownProcess() throws {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        for number in 1...20 { try writer.insert(number, String(repeating: "here \(number) ", count: 100)) }
        _ = try writer.checkpoint(patience: .zero)
        for number in 21...30 { try writer.insert(number, String(repeating: "here \(number) ", count: 100)) }
        let rows = try writer.rows()
        // Left as a crash leaves it.
        let copy = try fixture.restored(fixture.image())
        let libraries = fixture.folder.file("libraries")
        try FileManager.default.createDirectory(atPath: libraries, withIntermediateDirectories: false)
        for suffix in [".so", ".so.0", ".so.1", ".so.2"] {
            try Data("rubbish".utf8).write(to: URL(fileURLWithPath: libraries + "/libsqlcipher" + suffix))
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = [
            "--testing-library", "swift-testing", "--filter",
            "PlainSQLiteTests|Sealed(Connection|Log|Cache|Thread)Tests",
        ]
        process.environment = Self.environment.merging(
            [
                "LD_LIBRARY_PATH": libraries + ":" + (Self.environment["LD_LIBRARY_PATH"] ?? ""),
                "COFFER_WITHOUT_SQLCIPHER": copy.path,
                "COFFER_TEST_KEY": fixture.key.withBytes { Data($0).base64EncodedString() },
            ]) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let tail = text.suffix(2_000)
        #expect(process.terminationStatus == 0, "\(tail)")
        #expect(text.contains("Test \"Sealed and plain files work, and SQLCipher's are refused\" passed"), "\(tail)")
        #expect(
            text.contains("Test \"A log that ends within a transaction ends with the one before\" passed"), "\(tail)")
        // What the other library wrote, and left in the log.
        #expect(try Reopened(copy) == .rows(rows + ["100 there"]))
        try writer.close()
    }

    @Test("Sealed and plain files work, and SQLCipher's are refused", .enabled(if: isAlone))
    func alone() throws {
        let library = try Library.load()
        #expect(library.cipherVersion == nil)
        #expect(throws: CofferError(.encryptionUnavailable)) { try library.requireEncryption() }
        let folder = TemporaryFolder()
        let path = folder.file("plain.sqlite3")
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        #expect(throws: CofferError(.encryptionUnavailable)) {
            _ = try Connection(
                path: path, subject: "test", access: .create, protection: .sqlCipher(SymmetricKey(), .portable),
                cacheByteCount: 1 << 20)
        }
        let plain = try Connection(
            path: path, subject: "test", access: .create, protection: .none, cacheByteCount: 1 << 20)
        try plain.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v)")
        try plain.close()

        let other = try #require(Self.environment["COFFER_WITHOUT_SQLCIPHER"])
        let data = try #require(Self.environment["COFFER_TEST_KEY"].flatMap { Data(base64Encoded: $0) })
        let pages = try SealedPages(
            path: other, subject: "test", key: SymmetricKey(data: data), binding: SealedFixture.binding,
            cacheByteCount: 1 << 20)
        let connection = try Connection(
            path: other, subject: "test", access: .readWrite, protection: .sealed(pages), cacheByteCount: 1 << 20)
        let rows = try connection.rows()
        #expect(rows.count == 30 && rows.allSatisfy { $0.contains("here") })
        #expect(try connection.integrity() == "ok")
        try connection.insert(100, "there")
        // The log stays for the other library to read.
        connection.abandon()
    }

    @Test("Copies between plain and sealed files have every table, row and index", .enabled(if: isAlone))
    func copies() throws {
        for (source, target) in [(false, false), (false, true), (true, false), (true, true)] {
            let folder = TemporaryFolder()
            func protection(_ isSealed: Bool, _ path: String) throws -> PageProtection {
                #expect(FileManager.default.createFile(atPath: path, contents: nil))
                guard isSealed else { return .none }
                let pages = try SealedPages(
                    path: path, subject: "test", key: SymmetricKey(), binding: SealedFixture.binding,
                    cacheByteCount: 1 << 20)
                try pages.writeEmptyDatabase()
                return .sealed(pages)
            }
            let (path, copyPath) = (folder.file("source"), folder.file("copy"))
            let from = try protection(source, path)
            let to = try protection(target, copyPath)
            let created = try Connection(
                path: path, subject: "test", access: .create, protection: from, cacheByteCount: 1 << 20)
            try created.execute(
                """
                CREATE TABLE t (n INTEGER PRIMARY KEY, v);
                CREATE TABLE "o'ther ""name" (id TEXT PRIMARY KEY, content BLOB) WITHOUT ROWID;
                CREATE TABLE IF NOT EXISTS unnumbered (v UNIQUE);
                CREATE INDEX t_by_v ON t (v);
                CREATE UNIQUE INDEX IF NOT EXISTS t_by_n ON t (n, v);
                INSERT INTO "o'ther ""name" VALUES ('a', zeroblob(20000)), ('b', x'00');
                INSERT INTO unnumbered VALUES (1), ('x'), (NULL);
                """)
            for number in 1...100 { try created.insert(number, String(repeating: "row \(number) ", count: 50)) }
            try created.switchToWriteAheadLog()
            try created.close()
            let exporting = try Connection(
                path: path, subject: "test", access: .exporting, protection: from, cacheByteCount: 1 << 20)
            try exporting.export(to: copyPath, protection: to, cacheByteCount: 1 << 20) {
                true
            } check: { () throws(CofferError) in
            }
            try exporting.close()
            func contents(_ path: String, _ protection: PageProtection) throws -> [String] {
                let connection = try Connection(
                    path: path, subject: "test", access: .readOnly, protection: protection, cacheByteCount: 1 << 20)
                #expect(try connection.integrity() == "ok")
                return try connection.rows()
                    + Statement(connection, "SELECT type, name, sql FROM sqlite_master ORDER BY name").all {
                        "\($0.text(0)) \($0.text(1)) \($0.text(2))"
                    }
                    + Statement(connection, "SELECT hex(content) FROM \"o'ther \"\"name\" ORDER BY id").all {
                        $0.text(0)
                    }
                    + Statement(connection, "SELECT quote(v) FROM unnumbered ORDER BY rowid").all { $0.text(0) }
            }
            #expect(try contents(copyPath, to) == contents(path, from))
        }
    }
}
#endif
