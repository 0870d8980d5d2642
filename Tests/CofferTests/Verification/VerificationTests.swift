import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

/// A verification finds whatever was changed, says where, and writes nothing.
@Suite("Verifying a database")
struct VerificationTests {
    let stores = TestStores()
    static let documentCount = 300

    /// A store with documents of all sizes, conflicts, deletions, attachments and blobs.
    @discardableResult
    private func fill(key: SymmetricKey? = TestStores.key) throws -> Database {
        let database = try stores.open(key: key) { $0.compactsInBackground = false }
        try database.inTransaction {
            for number in 0..<Self.documentCount {
                let draft = try database.document(withID: "document-\(number)").newRevision()
                draft["text"] = .string(String(repeating: "\(number) ", count: number % 50 == 7 ? 4000 : 20))
                if number % 30 == 3 {
                    draft.setAttachment(
                        named: "content", contentType: nil, content: Data(repeating: UInt8(number % 251), count: 40_000)
                    )
                }
                let saved = try draft.save()
                if number % 10 == 4 {
                    let next = try saved.createRevision()
                    next["more"] = 1
                    try next.save()
                    let other = try saved.createRevision()
                    other["more"] = 2
                    try other.saveAllowingConflict()
                }
                if number % 10 == 5 { try saved.document.delete() }
            }
        }
        try database.saveLocalDocument(["a": 1], withID: "small")
        try database.saveLocalDocument(["a": .string(String(repeating: "long", count: 5000))], withID: "large")
        try database.document(withID: "document-1").setExpirationDate(.distantFuture)
        return database
    }

    private func flip(_ url: URL, at offset: Int) throws {
        try url.patch { $0[offset] ^= 0x04 }
    }

    @Test(
        "A verification of a sound database finds nothing at any level, open or closed, and changes no byte",
        arguments: [true, false])
    func sound(isEncrypted: Bool) throws {
        let key = isEncrypted ? TestStores.key : nil
        let database = try fill(key: key)
        for level in VerificationLevel.allCases {
            let result = try database.verify(level)
            #expect(result.findings == [])
            #expect(result.level == level)
        }
        // Its log is not empty.
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("crashed"))
        let open = try database.verify()
        #expect(open.documentCount == Self.documentCount - Self.documentCount / 10)
        #expect(open.revisionCount == Self.documentCount + 3 * Self.documentCount / 10)
        #expect(open.attachmentCount == 10)
        #expect(open.attachmentByteCount == 400_000)
        try database.close()
        // What reads through a log may bring its index up to date, and no more.
        let before = try stores.snapshot(ignoring: ["db.sqlite3-shm"])
        for name in ["db", "crashed"] {
            for level in VerificationLevel.allCases {
                let result = try stores.manager.verifyDatabase(named: name, encryptionKey: key, level: level)
                #expect(result.findings == [], "\(name)")
                if level >= .documents { #expect(result.documentCount == open.documentCount) }
                if level >= .attachments { #expect(result.attachmentCount == 10) }
                if level >= .pages { #expect(result.pageCount > 20 || !isEncrypted) }
            }
        }
        #expect(try stores.snapshot(ignoring: ["db.sqlite3-shm"]) == before)
        let readOnly = try stores.open(key: key) { $0.readOnly = true }
        #expect(try readOnly.verify().isSound)
        try readOnly.close()
        #expect(try stores.snapshot(ignoring: ["db.sqlite3-shm"]) == before)
    }

    @Test("A verification of a database with any page damaged names that page, and no other")
    func pages() throws {
        try fill().close()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        var random = SeededNumbers(seed: 71)
        for number in 1...whole.count / 4096 {
            // The salt, on which all codes depend, is told apart below; the last 12 bytes are nobody's.
            let offset = Int(random.next() % 4000) + (number == 1 ? 20 : 0)
            var changed = whole
            changed[(number - 1) * 4096 + offset] ^= 1 << UInt8(random.next() % 8)
            try changed.write(to: file)
            let result = try stores.manager.verifyDatabase(
                named: "db", encryptionKey: TestStores.key, level: .pages)
            #expect(result.findings.map(\.page) == [number])
            #expect(result.findings.map(\.kind) == [.page])
        }
        var changed = whole
        changed[3] ^= 1
        try changed.write(to: file)
        let result = try stores.manager.verifyDatabase(named: "db", encryptionKey: TestStores.key, level: .pages)
        #expect(result.findings.map(\.page) == [1])
        #expect(result.findings.first?.detail.contains("salt") == TestStores.isSQLCipher)
        try whole.prefix(whole.count - 100).write(to: file)
        #expect(
            try stores.manager.verifyDatabase(named: "db", encryptionKey: TestStores.key, level: .pages).findings
                .map(\.kind) == [.structure])
    }

    @Test("A verification of a database with any page damaged finds all documents that can't be read, and no others")
    func documents() throws {
        try fill().close()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        var namedCount = 0
        for number in stride(from: 2, through: whole.count / 4096, by: 3) {
            var changed = whole
            changed[(number - 1) * 4096 + 1000] ^= 1
            try changed.write(to: file)
            let result = try stores.manager.verifyDatabase(
                named: "db", encryptionKey: TestStores.key, level: .documents)
            #expect(result.findings.contains { $0.page == number }, "page \(number)")
            let named = Set(result.findings.compactMap(\.documentID))
            namedCount += named.count
            guard let database = try? stores.open(key: TestStores.key, { $0.readOnly = true }) else { continue }
            defer { try? database.close() }
            var readableCount = 0
            for index in 0..<Self.documentCount {
                let document = database.document(withID: "document-\(index)")
                let isReadable =
                    thrown {
                        guard try document.currentRevisionID != nil else { throw CofferError(.documentNotFound) }
                        _ = try document.currentRevision?.json
                    } == nil
                if !isReadable { #expect(named.contains(document.documentID), "page \(number)") }
                if isReadable, (try? document.isDeleted) == false { readableCount += 1 }
            }
            #expect((readableCount...Self.documentCount).contains(result.documentCount), "page \(number)")
        }
        // Some pages are those of one table, some of another; none hides more than it holds.
        #expect(namedCount > 100)
        #expect(namedCount < 10 * Self.documentCount)
    }

    @Test(
        "A verification of an overflowing row that ends in zeros names the document, though every page's MAC is right")
    func overflow() throws {
        try fill().close()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        // SQLCipher's own check leaves out the last page of such a row, so some pages hold nothing else.
        var alone: Set<String> = []
        for number in 2...whole.count / 4096 {
            var changed = whole
            changed[(number - 1) * 4096 + 2000] ^= 1
            try changed.write(to: file)
            let result = try stores.manager.verifyDatabase(
                named: "db", encryptionKey: TestStores.key, level: .documents)
            #expect(result.findings.contains { $0.page == number })
            let named = Set(result.findings.compactMap(\.documentID))
            if named.count == 1 { alone.formUnion(named) }
        }
        #expect(alone.isSuperset(of: ["document-7", "document-57", "document-257"]))
    }

    @Test("A verification of attachments that are changed, cut, swapped or missing names each, with its document")
    func attachments() throws {
        try fill().close()
        let folder = try stores.generation().appending(path: "attachments")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map { name in
            folder.appending(path: name)
        }
        try flip(files[0], at: 20_000)
        try files[1].patch { $0.removeLast() }
        try FileManager.default.removeItem(at: files[2])
        try FileManager.default.removeItem(at: files[3])
        try FileManager.default.copyItem(at: files[4], to: files[3])
        try FileManager.default.removeItem(at: files[5])
        try FileManager.default.createSymbolicLink(at: files[5], withDestinationURL: files[4])
        let before = try stores.snapshot()
        let quick = try stores.manager.verifyDatabase(
            named: "db", encryptionKey: TestStores.key, level: .attachments)
        #expect(quick.findings.count == 4)
        let all = try stores.manager.verifyDatabase(named: "db", encryptionKey: TestStores.key)
        #expect(all.findings.count == 5)
        #expect(all.findings.allSatisfy { $0.kind == .attachment && $0.documentID?.hasPrefix("document-") == true })
        #expect(Set(all.findings.map(\.digest)).count == 5)
        #expect(all.attachmentCount == 10)
        #expect(try stores.snapshot() == before)
    }

    @Test(
        "A verification of a page in the WAL that was changed with its checksums made right names the page",
        .enabled(if: TestStores.isSQLCipher, "the checksums of a sealed log are sealed with it"))
    func log() throws {
        let database = try fill()
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("crashed"))
        try database.close()
        let log = try stores.generation("crashed").appending(path: "db.sqlite3-wal")
        let sound = try stores.manager.verifyDatabase(
            named: "crashed", encryptionKey: TestStores.key, level: .pages)
        #expect(sound.findings == [])
        try log.patch { log in
            log[32 + 24 + 500] ^= 1
            Self.repairChecksums(&log)
        }
        let result = try stores.manager.verifyDatabase(
            named: "crashed", encryptionKey: TestStores.key, level: .pages)
        #expect(result.findings.count == 1)
        #expect(result.findings.first?.kind == .page)
        #expect(result.findings.first?.subject.hasSuffix("db.sqlite3-wal") == true)
        #expect(result.pageCount == sound.pageCount)
    }

    /// Makes each frame's checksum that of its bytes: sqlite.org/fileformat2.html, section 4.1.
    static func repairChecksums(_ log: inout Data) {
        var bytes = Array(log)
        func word(_ at: Int) -> UInt32 { bytes[at..<at + 4].reduce(0) { $0 << 8 | UInt32($1) } }
        let isBigEndian = word(0) & 1 == 1
        var (first, second) = (word(24), word(28))
        func add(_ range: Range<Int>) {
            for at in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
                let (x, y) = (word(at), word(at + 4))
                first &+= (isBigEndian ? x : x.byteSwapped) &+ second
                second &+= (isBigEndian ? y : y.byteSwapped) &+ first
            }
        }
        var at = 32
        let salts = bytes[16..<24]
        while at + 24 + 4096 <= bytes.count, bytes[at + 8..<at + 16].elementsEqual(salts) {
            add(at..<at + 8)
            add(at + 24..<at + 24 + 4096)
            for (offset, value) in [(16, first), (20, second)] {
                for index in 0..<4 { bytes[at + offset + index] = UInt8(value >> UInt32(24 - 8 * index) & 0xFF) }
            }
            at += 24 + 4096
        }
        log = Data(bytes)
    }

    @Test("A verification of tables that contradict each other names the documents")
    func contradictions() throws {
        let database = try fill(key: nil)
        try database.close()
        let changes: [(StaticString, String)] = [
            ("UPDATE documents SET winner = winner + 1 WHERE id = 'document-1'", "document-1"),
            ("DELETE FROM documents WHERE id = 'document-2'", "document-2"),
            ("UPDATE documents SET flags = flags | 1 WHERE id = 'document-1'", "document-1"),
            ("UPDATE documents SET flags = flags | 4 WHERE id = 'document-1'", "document-1"),
            ("UPDATE documents SET flags = flags & ~2 WHERE id = 'document-4'", "document-4"),
            (
                "DELETE FROM leaves WHERE document = (SELECT number FROM documents WHERE id = 'document-14')",
                "document-14"
            ),
            ("DELETE FROM attachments", "document-3"),
            ("UPDATE revisions SET body = '{\"a\":1,\"a\":2}' WHERE id = 'document-1'", "document-1"),
            ("UPDATE revisions SET digest = x'00' WHERE id = 'document-1'", "document-1"),
        ]
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        for (sql, id) in changes {
            try whole.write(to: file)
            try execute(sql, in: file)
            let result = try stores.manager.verifyDatabase(named: "db", level: .documents)
            #expect(result.findings.contains { $0.documentID == id }, "\(sql): \(result.findings)")
        }
        try whole.write(to: file)
        #expect(try stores.manager.verifyDatabase(named: "db").isSound)
    }

    @Test("A verification of entries of a view that are not what was written says that some can't be read")
    func entries() throws {
        let database = try stores.open(key: nil)
        try database.save(json: Data(#"{"n":1}"#.utf8), withID: "a")
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in emit(revision.documentID, 1) }
        #expect(try view.rows().all.count == 1)
        try database.close()
        #expect(try stores.manager.verifyDatabase(named: "db", level: .documents).isSound)
        try execute("UPDATE index_entries SET digest = x'00'", in: try stores.databaseFile())
        let findings = try stores.manager.verifyDatabase(named: "db", level: .documents).findings
        #expect(findings.map(\.kind) == [.structure])
    }

    private func execute(_ sql: StaticString, in file: URL) throws {
        let database = DatabaseFile(path: file.path, subject: "the test's")
        let connection = try database.connect(.readWrite, cacheByteCount: 1 << 20)
        try connection.execute(sql)
        try connection.close()
    }

    @Test("A verification says that MANIFEST is damaged; a wrong key is a 401, and another's store in use a 503")
    func manifests() throws {
        let database = try fill()
        #expect(thrown { try stores.manager.verifyDatabase(named: "db", encryptionKey: testKey(9)) }?.status == 401)
        try database.inTransaction { #expect(thrown { try database.verify() }?.code == .invalidArgument) }
        try database.close()
        #expect(thrown { try database.verify() }?.code == .closed)
        #expect(thrown { try stores.manager.verifyDatabase(named: "db", encryptionKey: testKey(9)) }?.status == 401)
        #expect(thrown { try stores.manager.verifyDatabase(named: "db") }?.code == .keyRequired)
        #expect(thrown { try stores.manager.verifyDatabase(named: "missing") }?.code == .databaseNotFound)
        let manifest = stores.url().appending(path: "MANIFEST")
        try flip(manifest, at: 100)
        let result = try stores.manager.verifyDatabase(named: "db", encryptionKey: TestStores.key)
        #expect(result.findings.map(\.kind) == [.manifest])
        try flip(manifest, at: 100)
        // Of an open store, too: the next who opens it would meet that.
        let open = try stores.open()
        try flip(manifest, at: 1000)
        #expect(try open.verify(.keys).findings.map(\.kind) == [.manifest])
        try flip(manifest, at: 1000)
        #expect(try open.verify().isSound)
    }

    @Test("A verification of a database with a file that is missing or empty says so")
    func missing() throws {
        try fill().close()
        let file = try stores.databaseFile()
        try Data().write(to: file)
        let empty = try stores.manager.verifyDatabase(named: "db", encryptionKey: TestStores.key)
        #expect(empty.findings.first?.kind == .structure)
        try FileManager.default.removeItem(at: file)
        let missing = try stores.manager.verifyDatabase(named: "db", encryptionKey: TestStores.key)
        #expect(missing.findings.map(\.kind) == [.structure])
    }

    @Test("A verification beside others that write and copy the WAL finds nothing, and ends with its task")
    func besideOthers() async throws {
        let database = try fill()
        let stop = Shared(false)
        defer { stop.value = true }
        async let writing: Void = {
            var number = 0
            while !stop.value {
                number += 1
                let round = number
                try await database.inTransaction {
                    for index in 0..<40 {
                        try database.save(
                            json: Data(#"{"text":"\#(String(repeating: "x", count: 3000))"}"#.utf8),
                            withID: "other-\(round)-\(index)")
                    }
                }
            }
        }()
        for _ in 0..<6 {
            let result = try await database.verify(.everything) { progress in
                #expect(progress.completedByteCount >= 0)
            }
            #expect(result.findings == [])
        }
        stop.value = true
        try await writing
        let task = Task { try await database.verify() }
        task.cancel()
        await #expect(throws: CofferError.self) { try await task.value }
    }
}
