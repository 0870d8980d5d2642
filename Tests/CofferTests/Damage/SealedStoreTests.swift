import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite
@testable import CofferVault

@Suite("A store of sealed pages")
struct SealedStoreTests {
    let stores = TestStores()

    private static let headerByteCount = SealedPageCodec.logHeaderByteCount
    private static let frameByteCount = SealedPageCodec.frameByteCount

    private func open(_ name: String = "db", _ change: (inout DatabaseOptions) -> Void = { _ in }) throws -> Database {
        try stores.open(name) {
            $0.storageType = .sealed
            change(&$0)
        }
    }

    /// A store as a killed process leaves it, with documents d0 to d9 in its log, each committed alone, and its log.
    private func makeCrashed(durability: Durability = .full) throws -> URL {
        let database = try open {
            $0.compactsInBackground = false
            $0.durability = durability
        }
        // Everything so far is in the file.
        try database.save(json: json(-1), withID: "first")
        try database.close()
        let again = try open {
            $0.compactsInBackground = false
            $0.durability = durability
        }
        for number in 0..<10 { try again.save(json: json(number), withID: "d\(number)") }
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("crashed"))
        try again.close()
        return try stores.generation("crashed").appending(path: "db.sqlite3-wal")
    }

    private func verify() throws -> Verification {
        try stores.manager.verifyDatabase(named: "crashed", encryptionKey: TestStores.key)
    }

    private func frameCount(_ log: URL) throws -> Int {
        (try Data(contentsOf: log).count - Self.headerByteCount) / Self.frameByteCount
    }

    private func damageFrame(_ number: Int, of log: URL) throws {
        try log.patch { $0[Self.headerByteCount + (number - 1) * Self.frameByteCount + 2000] ^= 1 }
    }

    @Test("A store of sealed pages has no file of an index of its log, and nothing of it is readable")
    func files() throws {
        let database = try open()
        try database.save(json: Data(#"{"text":"CANARY-51ab"}"#.utf8), withID: "CANARY-51ab")
        let names = try FileManager.default.contentsOfDirectory(atPath: stores.generation().path)
        #expect(Set(names) == ["attachments", "incoming", "db.sqlite3", "db.sqlite3-wal"])
        let texts = ["CANARY-51ab", "SQLite format 3", "revisions", "7777"]
        for text in texts { #expect(try stores.files(containing: text) == []) }
        try database.close()
        for text in texts { #expect(try stores.files(containing: text) == []) }
        let after = try FileManager.default.contentsOfDirectory(atPath: stores.generation().path)
        #expect(Set(after) == ["attachments", "incoming", "db.sqlite3"])
    }

    @Test("A killed process leaves a sealed log that has everything, for writers and for readers alone")
    func killed() throws {
        let log = try makeCrashed()
        let sound = try verify()
        #expect(sound.findings == [])
        #expect(sound.documentCount == 11)
        let before = try stores.snapshot()
        let reader = try stores.open("crashed") { $0.readOnly = true }
        #expect(try reader.documentCount == 11)
        try reader.close()
        #expect(try stores.snapshot() == before)
        let database = try stores.existing("crashed", key: TestStores.key)
        #expect(try database["d9"]?["n"] == 9)
        try database.close()
        #expect(!FileManager.default.fileExists(atPath: log.path))
    }

    /// SQLCipher's log would end before it, and the commits behind it would be lost without a word.
    @Test("A damaged frame of a sealed log that was on the disk for good is damage: nothing is opened, nothing changed")
    func damagedFrame() throws {
        let log = try makeCrashed()
        let whole = try Data(contentsOf: log)
        let count = try frameCount(log)
        #expect(count >= 20)
        for number in [1, 2, count / 2] {
            try damageFrame(number, of: log)
            let before = try stores.snapshot()
            let findings = try verify().findings
            #expect(findings.first?.subject.hasSuffix("db.sqlite3-wal") == true, "\(findings)")
            #expect(findings.first?.detail.contains("frame \(number) is damaged") == true, "\(findings)")
            for readOnly in [true, false] {
                let error = thrown { try stores.open("crashed") { $0.readOnly = readOnly } }
                #expect(error?.code == .damaged, "frame \(number)")
            }
            #expect(try stores.snapshot() == before)
            try whole.write(to: log)
        }
        #expect(try stores.existing("crashed", key: TestStores.key).documentCount == 11)
    }

    @Test("A sealed log ends before a last commit that is torn, as after a power cut")
    func tornEnd() throws {
        let log = try makeCrashed()
        let count = try frameCount(log)
        try damageFrame(count, of: log)
        #expect(try verify().findings == [])
        let database = try stores.existing("crashed", key: TestStores.key)
        #expect(try database.documentCount == 10)
        #expect(try database["d9"] == nil)
        #expect(try database["d8"]?["n"] == 8)
        try database.save(json: json(9), withID: "d9")
        #expect(try database.verify().findings == [])
    }

    @Test("A sealed log whose header is torn is read by its first frame; without that one it is damaged")
    func header() throws {
        let log = try makeCrashed()
        try log.patch { $0[5] ^= 1 }
        let copy = try Data(contentsOf: log)
        #expect(try verify().findings == [])
        let reader = try stores.open("crashed") { $0.readOnly = true }
        #expect(try reader.documentCount == 11)
        try reader.close()
        try damageFrame(1, of: log)
        #expect(try verify().findings.map(\.subject).contains { $0.hasSuffix("db.sqlite3-wal") })
        #expect(thrown { try stores.existing("crashed", key: TestStores.key) }?.code == .damaged)
        try copy.write(to: log)
        #expect(try stores.existing("crashed", key: TestStores.key).documentCount == 11)
    }

    @Test("A frame of a sealed log, a page and a log are accepted in no other place, store or generation")
    func replaced() throws {
        let log = try makeCrashed()
        let whole = try Data(contentsOf: log)
        let (start, length) = (Self.headerByteCount, Self.frameByteCount)
        // Frame 1 in the place of frame 2.
        try log.patch { $0.replaceSubrange(start + length..<start + 2 * length, with: $0[start..<start + length]) }
        #expect(thrown { try stores.existing("crashed", key: TestStores.key) }?.code == .damaged)
        try whole.write(to: log)

        // The log of the store under another key, and after a conversion there and back.
        let database = try stores.existing("crashed", key: TestStores.key)
        try database.convert(to: .sqlite)
        try database.convert(to: .sealed)
        try database.close()
        try whole.write(to: stores.generation("crashed").appending(path: "db.sqlite3-wal"))
        let error = thrown { try stores.existing("crashed", key: TestStores.key).documentCount == 11 ? 0 : 1 }
        #expect(error == nil || error?.code == .damaged)
        if error == nil { #expect(try stores.existing("crashed", key: TestStores.key).documentCount == 11) }
    }

    @Test("A salvage of a sealed store with damage anywhere brings all that other pages and frames have")
    func salvage() throws {
        let log = try makeCrashed()
        let count = try frameCount(log)
        try damageFrame(count / 2, of: log)
        let result = try stores.manager.salvageDatabase(
            named: "crashed", encryptionKey: TestStores.key, to: stores.url("salvaged"))
        #expect(!result.isComplete)
        let salvaged = try stores.existing("salvaged", key: TestStores.key)
        #expect(salvaged.storageType == .sealed)
        // A later frame has the page of each document that came after.
        #expect(try salvaged["d9"]?["n"] == 9)
        #expect(try salvaged.verify().findings == [])
    }

    @Test("A page of zeros in place of any of a sealed store's is found, and so is one that was cut off")
    func pages() throws {
        let database = try open()
        for number in 0..<200 { try database.save(json: json(number), withID: "d\(number)") }
        try database.close()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        let count = whole.count / 4096
        #expect(count > 10)
        for number in 1...count {
            for isZero in [true, false] {
                try file.patch { data in
                    let page = (number - 1) * 4096..<number * 4096
                    if isZero {
                        data.replaceSubrange(page, with: Data(count: 4096))
                    } else {
                        data[page.upperBound - 1] ^= 1
                    }
                }
                let result = try stores.manager.verifyDatabase(
                    named: "db", encryptionKey: TestStores.key, level: .pages)
                #expect(result.findings.map(\.page) == [number])
                try whole.write(to: file)
            }
        }
        try whole.prefix(whole.count - 100).write(to: file)
        #expect(
            try !stores.manager.verifyDatabase(named: "db", encryptionKey: TestStores.key, level: .pages).isSound)
    }
}

@Suite("The cache of a sealed store")
struct SealedCacheTests {
    let stores = TestStores()

    private func open(byteCount: Int = 16 << 20) throws -> Database {
        try stores.open {
            $0.storageType = .sealed
            $0.cacheByteCount = byteCount
        }
    }

    private func setting(_ database: Database) throws -> Int {
        try database.storage.read { (tables) throws(CofferError) in
            let statement = Statement(tables.connection, "PRAGMA cache_size")
            defer { statement.finalize() }
            // In KiB, below zero.
            return try statement.first { Int(-$0.integer(0)) << 10 } ?? 0
        }
    }

    @Test("The connections of a sealed store keep a small part of the cache, and share the rest of it")
    func shares() throws {
        let budget = CacheBudget(byteCount: 16 << 20)
        #expect(budget.writerByteCount(besideShared: true) == 2 << 20)
        #expect(budget.readersByteCount(besideShared: true) == 512 << 10)
        #expect(budget.sharedByteCount == (13 << 20) + (512 << 10))
        budget.areReadersAlone = true
        #expect(budget.sharedByteCount == (15 << 20) + (512 << 10) - CacheBudget.leastByteCount)

        let database = try open()
        try database.inTransaction { for number in 0..<20_000 { try database.save(json: json(number)) } }
        #expect(try setting(database) == 512 << 10)
        #expect(try database.inTransaction { try setting(database) } == 2 << 20)
        var greatest = 0
        for _ in 0..<3 {
            _ = try database.allDocuments().all
            greatest = max(greatest, database.storage.databaseFile.sharedCacheUse)
        }
        #expect(greatest > 1 << 20)
        #expect(greatest <= 15 << 20)
    }

    @Test("A sealed store's cache stays within what it may have, also where that is little")
    func small() throws {
        let database = try open(byteCount: 1 << 20)
        try database.inTransaction { for number in 0..<20_000 { try database.save(json: json(number)) } }
        for _ in 0..<3 {
            #expect(try database.allDocuments().all.count == 20_000)
            #expect(database.storage.databaseFile.sharedCacheUse <= 1 << 20)
        }
    }

    @Test("A generation that a conversion or key change left keeps no opened pages")
    func retired() throws {
        let database = try open()
        for number in 0..<2_000 { try database.save(json: json(number)) }
        _ = try database.allDocuments().all
        let old = database.storage.databaseFile
        #expect(old.sharedCacheUse > 0)
        try database.changeEncryptionKey(to: testKey(8))
        #expect(old.sharedCacheUse == 0)
        _ = try database.allDocuments().all
        #expect(database.storage.databaseFile.sharedCacheUse > 0)
    }
}
