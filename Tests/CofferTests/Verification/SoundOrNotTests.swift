import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

/// What looks like damage and is none, and what looks sound and isn't.
@Suite("A verification of what is hard to tell")
struct SoundOrNotTests {
    let stores = TestStores()

    private func save(_ database: Database, _ count: Int, from first: Int = 0) throws {
        try database.inTransaction {
            for number in first..<first + count {
                try database.save(
                    json: Data(#"{"text":"\#(String(repeating: "\(number) ", count: 300))"}"#.utf8),
                    withID: "document-\(number)")
            }
        }
    }

    private func findings(
        _ name: String = "db", key: SymmetricKey? = TestStores.key, _ level: VerificationLevel = .everything
    ) throws -> [VerificationFinding] {
        try stores.manager.verifyDatabase(named: name, encryptionKey: key, level: level).findings
    }

    private func execute(_ sql: StaticString, _ name: String = "db") throws {
        let connection = try DatabaseFile(path: stores.databaseFile(name).path, subject: "the test's")
            .connect(.readWrite, cacheByteCount: 1 << 20)
        try connection.execute(sql)
        try connection.close()
    }

    @Test("A verification takes a change of keys that was cut short for no damage: the binding row is behind MANIFEST")
    func slotChange() throws {
        let database = try stores.open()
        try save(database, 3)
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("before"))
        try database.addKey(testKey(9))
        try database.close()
        // The new MANIFEST beside the old database.
        let manifest = stores.url("before").appending(path: "MANIFEST")
        try FileManager.default.removeItem(at: manifest)
        try FileManager.default.copyItem(at: stores.url().appending(path: "MANIFEST"), to: manifest)
        #expect(try findings("before") == [])
        #expect(try stores.manager.verifyDatabase(named: "before", encryptionKey: testKey(9)).documentCount == 3)
    }

    @Test("A verification takes a database whose own key was removed for sound, and one without MANIFEST not")
    func removedKey() throws {
        let database = try stores.open()
        let own = try #require(try database.keys.first { $0.isCurrent })
        try database.addKey(testKey(9))
        try database.removeKey(own.id)
        #expect(try database.verify().findings == [])
        let other = try #require(try database.keys.first)
        try database.replaceKey(other.id, with: testKey(10))
        #expect(try database.verify().findings == [])
        let manifest = stores.url().appending(path: "MANIFEST")
        let bytes = try Data(contentsOf: manifest)
        try FileManager.default.removeItem(at: manifest)
        #expect(try database.verify(.keys).findings.map(\.kind) == [.manifest])
        try bytes.write(to: manifest)
        #expect(try database.verify(.keys).findings == [])
    }

    @Test("A verification takes pages that a copying has torn for sound as long as the WAL has them")
    func tornPages() throws {
        let database = try stores.open { $0.compactsInBackground = false }
        try save(database, 40)
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("crashed"))
        try database.close()
        let file = try stores.databaseFile("crashed")
        let logged = Set(try StoredLog(of: stores, "crashed").frames.map { Int($0.page) })
        let whole = try Data(contentsOf: file)
        #expect(logged.contains(1) && logged.count > 10)
        for number in 2...whole.count / 4096 {
            try whole.write(to: file)
            try file.patch { $0[(number - 1) * 4096 + 9] ^= 1 }
            #expect(try findings("crashed", .pages).isEmpty == logged.contains(number), "page \(number)")
        }
        // And a page that was written in part, behind those that the file had.
        try (whole + Data(repeating: 7, count: 5000)).write(to: file)
        #expect(try findings("crashed").map(\.description) == [])
        // Without the log it is what it looks like.
        try FileManager.default.removeItem(at: stores.generation("crashed").appending(path: "db.sqlite3-wal"))
        #expect(try !findings("crashed", .pages).isEmpty)
    }

    @Test("A verification notices a byte that is changed in the WAL of an open database")
    func liveLog() throws {
        let database = try stores.open { $0.compactsInBackground = false }
        try save(database, 40)
        try save(database, 40, from: 40)
        let log = try stores.generation().appending(path: "db.sqlite3-wal")
        let handle = try FileHandle(forUpdating: log)
        for (offset, isSound) in [(32 + 24 + 100, false), (32 + 24 + 100, true)] {
            try handle.seek(toOffset: UInt64(offset))
            let byte = try #require(try handle.read(upToCount: 1)?.first)
            try handle.seek(toOffset: UInt64(offset))
            try handle.write(contentsOf: [byte ^ 1])
            #expect(try database.verify(.pages).isSound == isSound)
        }
        // Emptied by a compaction, it has less, and is sound all the same.
        try database.compact()
        #expect(try database.verify().findings == [])
    }

    @Test(
        "A verification of a killed store whose WAL can't be read on a read-only disk is a 503 and no damage",
        .enabled(if: getuid() != 0 && TestStores.isSQLCipher, "root writes everywhere, and sealed pages have no index"))
    func unreadableLog() throws {
        let database = try stores.open()
        try save(database, 3)
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("crashed"))
        let generation = try stores.generation("crashed")
        try FileManager.default.removeItem(at: generation.appending(path: "db.sqlite3-shm"))
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: generation.path)
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: generation.path) }
        #expect(thrown { try findings("crashed", .documents) }?.code == .busy)
        #expect(try findings("crashed", .pages) == [])
    }

    @Test("A verification of tables with hostile numbers ends, and says what is wrong")
    func hostileRows() throws {
        let database = try stores.open(key: nil)
        try save(database, 3)
        let draft = try database.document(withID: "attached").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("content".utf8))
        try draft.save()
        try database.close()
        let whole = try Data(contentsOf: stores.databaseFile())
        let changes: [StaticString] = [
            """
            INSERT INTO revisions (sequence, document, flags, generation, suffix, id, body)
            VALUES (9223372036854775807, 1, 0, 1, x'00', 'far', '{}')
            """,
            """
            INSERT INTO revisions (sequence, document, flags, generation, suffix, id, body)
            VALUES (-9223372036854775807, 1, 0, 1, x'00', 'far', '{}')
            """,
            """
            INSERT INTO attachments (number, digest, length, sha256, header) VALUES
            (4611686018427387904, x'01', 4611686018427387904, x'02', x''),
            (9223372036854775807, x'02', 4611686018427387904, x'02', x''), (-5, x'03', -1, x'02', x'')
            """,
            "UPDATE attachments SET sha256 = x'00'",
            "UPDATE attachments SET digest = x'00'",
        ]
        for sql in changes {
            try whole.write(to: stores.databaseFile())
            try execute(sql)
            #expect(try !findings(key: nil).isEmpty, "\(sql)")
        }
        // A compaction and a recovery meet such rows too.
        try execute("UPDATE attachments SET digest = x'00'")
        let open = try stores.open(key: nil)
        #expect((thrown { try open.compact() }?.code ?? .damaged) == .damaged)
    }

    @Test("A verification of a database with a long history names a document whose entry can't be read")
    func longHistory() throws {
        let database = try stores.open { $0.compactsInBackground = false }
        try database.inTransaction {
            for number in 0..<30 {
                try database.save(
                    json: Data(#"{"n":\#(number)}"#.utf8), withID: "a",
                    replacing: database.document(withID: "a").currentRevisionID)
            }
        }
        try save(database, 200)
        try database.close()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        var isNamed = false
        for number in 2...whole.count / 4096 {
            var changed = whole
            changed[(number - 1) * 4096 + 1000] ^= 1
            try changed.write(to: file)
            isNamed =
                try isNamed
                || findings("db", .documents).contains {
                    $0.documentID == "a" && $0.detail.contains("entry")
                }
        }
        #expect(isNamed)
    }

    @Test("A verification of a document with thousands of leaves takes no longer than their number asks for")
    func leaves() throws {
        let database = try stores.open { $0.compactsInBackground = false }
        let first = try database.save(json: Data("{}".utf8), withID: "a")
        try database.inTransaction {
            for number in 0..<3000 {
                let draft = try first.createRevision()
                draft["n"] = .number(JSONNumber(Int64(number)))
                try draft.saveAllowingConflict()
            }
        }
        #expect(try database.verify().findings == [])
    }

    @Test(
        "A verification goes on behind a page that leads to thousands, even once halving stretches has taken too long")
    func gap() throws {
        let count = 8_000
        let database = try stores.open(key: nil)
        let text = String(repeating: "text ", count: 100)
        try database.inTransaction {
            for number in 0..<count { try database.save(json: Data(#"{"t":"\#(text)"}"#.utf8), withID: "d-\(number)") }
        }
        try database.close()
        let file = DatabaseFile(path: try stores.databaseFile().path, subject: "the test's")
        let connection = try file.connect(.readOnly, cacheByteCount: 1 << 20)
        let root = try #require(
            try Statement(connection, "SELECT rootpage FROM sqlite_master WHERE name = 'revisions'").first {
                Int($0.integer(0))
            })
        try connection.close()
        var bytes = try Data(contentsOf: stores.databaseFile())
        func number(at offset: Int, _ count: Int) -> Int {
            bytes[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
        }
        // SQLite's file format, section 1.6: the left child of a cell stands at its beginning.
        let start = (root - 1) * 4096
        let child = number(at: start + number(at: start + 14, 2), 4)
        #expect(bytes[start] == 5 && bytes[(child - 1) * 4096] == 5)
        bytes[(child - 1) * 4096] = 0
        try bytes.write(to: stores.databaseFile())

        let snapshots = SnapshotSource(database: file, reading: .immutable, monitor: WorkMonitor())
        var scan = RowScan(
            rows: "SELECT sequence FROM revisions WHERE sequence BETWEEN ?1 AND ?2 ORDER BY sequence",
            next: "SELECT min(sequence) FROM revisions WHERE sequence >= ?1",
            last: "SELECT max(sequence) FROM revisions")
        var found: [[Int64]] = []
        var gaps: [[ClosedRange<Int64>]] = []
        for patience in [scan.patience, 0] {
            scan.patience = patience
            var keys: [Int64] = []
            let unreadable = try scan.run(WorkMonitor(), in: snapshots) {
                $0.integer(0)
            } take: { (key) throws(CofferError) in
                keys.append(key)
            }
            found.append(keys)
            gaps.append(try #require(unreadable))
        }
        #expect(found[0].count < count - 1_000 && found[0].last == Int64(count))
        // Not more than a stretch at either end of the gap.
        #expect(found[1].count >= found[0].count - 2 * 1024 && found[1].last == Int64(count))
        #expect(gaps[1].count == 1 && gaps[0].allSatisfy { gaps[1][0].contains($0.lowerBound) })
    }
}
