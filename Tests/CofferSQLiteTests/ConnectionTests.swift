import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

enum ExpectedVersion {
    static let text = ProcessInfo.processInfo.environment["COFFER_EXPECTED_SQLCIPHER"]
}

@Suite("A keyed connection")
struct ConnectionTests {
    let folder = TemporaryFolder()

    private func create(key: SymmetricKey?) throws -> String {
        let path = folder.file("db.sqlite3")
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let connection = try connect(path, .create, key)
        try connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'canary-in-a-row')")
        try connection.switchToWriteAheadLog()
        try connection.close()
        return path
    }

    private func connect(_ path: String, _ access: Connection.Access, _ key: SymmetricKey?) throws -> Connection {
        try Connection(path: path, subject: "test", access: access, key: key, cacheByteCount: 1 << 20)
    }

    private func value(_ connection: borrowing Connection) throws -> String? {
        try Statement(connection, "SELECT v FROM t WHERE n = 1").first { $0.text(0) }
    }

    @Test("The library that was loaded is SQLCipher, and says so")
    func isSQLCipher() throws {
        let library = try Library.load()
        #expect(library.cipherVersion != nil)
        #expect(library.keepsTemporaryDataInMemory)
        try library.requireEncryption()
    }

    /// `COFFER_EXPECTED_SQLCIPHER` is how the version begins that whoever runs the tests wants to have tested.
    @Test(
        "The loaded SQLCipher is of the version that was asked for",
        .enabled(if: ExpectedVersion.text != nil, "whatever is installed will do"))
    func isExpectedVersion() throws {
        let version = try #require(Library.load().cipherVersion)
        print("SQLCipher \(version) on SQLite \(try Library.load().version)")
        #expect(version.hasPrefix(try #require(ExpectedVersion.text)))
    }

    @Test(
        "Temporary data that outgrow the cache are in no file",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd"), "only there a removed file can be seen"),
        arguments: [true, false])
    func temporaryData(isEncrypted: Bool) throws {
        let key = isEncrypted ? try SymmetricKey() : nil
        let connection = try connect(try create(key: key), .readWrite, key)
        try connection.execute(
            """
            CREATE TEMP TABLE many (v);
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
            INSERT INTO many SELECT zeroblob(1000) FROM numbers
            """)
        let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
        }
        #expect(files.contains { $0.hasSuffix("/db.sqlite3") })
        // What SQLite calls its temporary files.
        #expect(!files.contains { $0.contains("etilqs") })
        try connection.close()
    }

    /// SQLCipher 3.4.1 reports it as an error like any other, which was taken for damage.
    @Test("An export that is interrupted, at whichever of its steps, was cancelled", arguments: [true, false])
    func interruptedExport(isEncrypted: Bool) throws {
        let key = isEncrypted ? try SymmetricKey() : nil
        let path = try create(key: key)
        let connection = try connect(path, .readWrite, key)
        try connection.execute(
            """
            BEGIN;
            WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
                INSERT INTO t SELECT n, 'row ' || n FROM numbers;
            CREATE INDEX t_by_v ON t (v);
            COMMIT;
            """)
        try connection.close()
        // Interrupted at the first question, then at the second, and so on until none is left.
        var (interruptedCount, isComplete) = (0, false)
        while !isComplete && interruptedCount < 1_000 {
            let copy = folder.file("copy\(interruptedCount).sqlite3")
            #expect(FileManager.default.createFile(atPath: copy, contents: nil))
            let source = try connect(path, .exporting, key)
            var askCount = 0
            do throws(CofferError) {
                try source.export(to: copy, key: key, cacheByteCount: 1 << 20) {
                    askCount += 1
                    return askCount <= interruptedCount
                } check: { () throws(CofferError) in
                }
                isComplete = true
            } catch {
                #expect(error.code == .cancelled, "\(error)")
                interruptedCount += 1
            }
            try source.close()
        }
        #expect(isComplete)
        #expect(interruptedCount > 3)
    }

    @Test("A keyed connection reads back with the key, and nothing in the file is readable")
    func roundTrip() throws {
        let key = try SymmetricKey()
        let path = try create(key: key)
        for access in [Connection.Access.readWrite, .readOnly, .immutable] {
            let connection = try connect(path, access, key)
            #expect(try value(connection) == "canary-in-a-row")
            try connection.close()
        }
        #expect(try Data(contentsOf: URL(filePath: path)).range(of: Data("canary-in-a-row".utf8)) == nil)
        #expect(try !Data(contentsOf: URL(filePath: path)).starts(with: Data("SQLite format 3".utf8)))
    }

    @Test("Without a key the file is SQLite's own, and the search for plaintext finds it")
    func unencrypted() throws {
        let path = try create(key: nil)
        #expect(try Data(contentsOf: URL(filePath: path)).starts(with: Data("SQLite format 3".utf8)))
        #expect(try Data(contentsOf: URL(filePath: path)).range(of: Data("canary-in-a-row".utf8)) != nil)
        #expect(try value(connect(path, .readOnly, nil)) == "canary-in-a-row")
    }

    @Test("Another key than the file's is damage to a connection: the manifest has proven the key before")
    func anotherKey() throws {
        let path = try create(key: SymmetricKey())
        for access in [Connection.Access.readWrite, .readOnly, .immutable] {
            #expect(throws: CofferError(.damaged)) { _ = try connect(path, access, SymmetricKey()) }
            #expect(throws: CofferError(.damaged)) { _ = try connect(path, access, nil) }
        }
    }

    @Test(
        "A pointer to a page that no file can have is damage, not a full disk",
        arguments: [0x4000_0000, 0x7465_7874, 0x7FFF_FFFF, 0xFFFF_FFFF] as [UInt32])
    func pointerBeyondTheEnd(page: UInt32) throws {
        let path = folder.file("db.sqlite3")
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let created = try connect(path, .create, nil)
        try created.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v)")
        try created.execute("INSERT INTO t VALUES (1, replace(hex(zeroblob(10000)), '0', 'x'))")
        try created.switchToWriteAheadLog()
        try created.close()
        var content = try Data(contentsOf: URL(filePath: path))
        // The pages that hold nothing else begin with the number of the next.
        let filled = Data(repeating: UInt8(ascii: "x"), count: 4092)
        let first = try #require(
            stride(from: 0, to: content.count, by: 4096).first { content[($0 + 4)...].starts(with: filled) })
        content.replaceSubrange(first..<first + 4, with: withUnsafeBytes(of: page.bigEndian, Array.init))
        try content.write(to: URL(filePath: path))
        for access in [Connection.Access.readWrite, .readOnly, .exporting, .immutable] {
            let connection = try connect(path, access, nil)
            let error = #expect(throws: CofferError.self, "\(access)") { try value(connection) }
            #expect(error?.code == .damaged, "\(access)")
            try connection.close()
        }
    }

    @Test("A connection makes no file that is missing")
    func missing() throws {
        let path = folder.file("missing.sqlite3")
        for access in [Connection.Access.create, .readWrite, .readOnly, .immutable] {
            #expect(throws: CofferError(.ioFailed)) { _ = try connect(path, access, SymmetricKey()) }
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("An immutable connection makes no file and takes any path", arguments: ["plain", "with space", "ä?#%25"])
    func immutable(name: String) throws {
        let key = try SymmetricKey()
        let path = try create(key: key)
        let directory = folder.file(name)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        try FileManager.default.moveItem(atPath: path, toPath: directory + "/db.sqlite3")
        let connection = try connect(directory + "/db.sqlite3", .immutable, key)
        #expect(try value(connection) == "canary-in-a-row")
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["db.sqlite3"])
    }

    @Test("Every kind of value comes back as it was bound")
    func values() throws {
        let connection = try Connection(inMemoryOf: "test")
        try connection.execute("CREATE TABLE v (a)")
        let insert = Statement(connection, "INSERT INTO v VALUES (?1)")
        let read = Statement(connection, "SELECT a FROM v WHERE rowid = ?1")

        for number in [Int64.min, -1, 0, 1, Int64.max] {
            try insert.bind(1, number)
            try insert.run()
            try read.bind(1, connection.lastInsertedRowID)
            #expect(try read.first { $0.integer(0) } == number)
        }
        for text in ["", "a", "e\u{301}", "a\0b", String(repeating: "x", count: 100_000)] {
            try insert.bind(1, text)
            try insert.run()
            try read.bind(1, connection.lastInsertedRowID)
            let result = try #require(try read.first { ($0.text(0), $0.isNull(0), $0.isBlob(0)) })
            #expect(Array(result.0.utf8) == Array(text.utf8))
            #expect(!result.1 && !result.2)
        }
        for count in [0, 1, 5000] {
            try insert.bind(1, [UInt8](repeating: 7, count: count))
            try insert.run()
            try read.bind(1, connection.lastInsertedRowID)
            let result = try #require(try read.first { ($0.bytes(0), $0.isBlob(0)) })
            #expect(result.0 == [UInt8](repeating: 7, count: count))
            #expect(result.1)
        }
        try insert.bindNull(1)
        try insert.run()
        try read.bind(1, connection.lastInsertedRowID)
        #expect(try read.first { $0.isNull(0) } == true)
    }

    @Test("Two words come back from SQLite as they were bound, as 16 bytes, and nothing else comes as words")
    func words() throws {
        let connection = try Connection(inMemoryOf: "test")
        let echo = Statement(connection, "SELECT ?1")
        let bytes = Array(UInt8(1)...16)
        let words: (high: UInt64, low: UInt64) = (0x0102_0304_0506_0708, 0x090A_0B0C_0D0E_0F10)
        try echo.bind(1, words.high, words.low)
        let result = try #require(try echo.first { ($0.bytes(0), $0.isBlob(0), $0.words(0)) })
        #expect(result.0 == bytes)
        #expect(result.1)
        #expect(try #require(result.2) == words)
        for other in [[], Array(bytes.dropLast()), bytes + [17]] {
            try echo.bind(1, other)
            #expect(try echo.first { $0.words(0) == nil } == true)
        }
        try echo.bind(1, String(repeating: "x", count: 16))
        #expect(try echo.first { $0.words(0) == nil } == true)
        try echo.bindNull(1)
        #expect(try echo.first { $0.words(0) == nil } == true)
    }

    // Each left an entry in a list for as long as its connection was open, which is as long as the app runs.
    @Test("Statements that are used once leave nothing behind, and those that last are freed by a close")
    func statementsUsedOnce() throws {
        let key = try SymmetricKey()
        let connection = try connect(create(key: key), .readWrite, key)
        let lasting = Statement(connection, "SELECT v FROM t WHERE n = 1")
        for _ in 0..<10_000 { #expect(try value(connection) == "canary-in-a-row") }
        #expect(connection.handle.adoptedStatementCount <= 128)
        for _ in 0..<1_000 {
            #expect(try lasting.first { $0.text(0) } == "canary-in-a-row")
            lasting.finalize()
        }
        #expect(connection.handle.adoptedStatementCount <= 128)
        #expect(try lasting.step())
        try connection.close()
    }

    @Test("A statement of a closed connection says closed")
    func closed() throws {
        let connection = try Connection(inMemoryOf: "test")
        let statement = Statement(connection, "SELECT 1")
        #expect(try statement.first { $0.integer(0) } == 1)
        try connection.close()
        #expect(throws: CofferError(.closed)) { try statement.step() }
        try connection.close()
    }

    @Test(
        "The WAL's length is known after each commit, and it starts again after a checkpoint that no reader holds up"
    )
    func log() throws {
        let path = try create(key: SymmetricKey(data: [UInt8](repeating: 1, count: 32)))
        let connection = try connect(path, .readWrite, SymmetricKey(data: [UInt8](repeating: 1, count: 32)))
        #expect(connection.logFrameCount == 0)
        try connection.execute("INSERT INTO t VALUES (2, 'x')")
        let count = connection.logFrameCount
        #expect(count > 0)

        let reader = try connect(path, .readOnly, SymmetricKey(data: [UInt8](repeating: 1, count: 32)))
        try reader.execute("BEGIN; SELECT * FROM t")
        try connection.execute("INSERT INTO t VALUES (3, 'x')")
        #expect(try !connection.checkpoint(patience: .milliseconds(1)))
        try reader.execute("COMMIT")
        #expect(try connection.checkpoint(patience: .zero))
        try connection.execute("INSERT INTO t VALUES (4, 'x')")
        #expect((1...count).contains(connection.logFrameCount))
    }
}

/// A folder of the test's own, removed with it.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        path = NSTemporaryDirectory() + "coffer-sqlite-" + UUID().uuidString
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { path + "/" + name }

    /// What is in it, in order.
    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
}
