import CofferFaults
import CofferSealing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

@Suite("Converting to another storage engine")
struct ConversionTests {
    let stores = TestStores()

    /// Both directions.
    static let directions: [(from: StorageType, to: StorageType)] = [(.sqlite, .sealed), (.sealed, .sqlite)]

    private func make(_ type: StorageType, key: SymmetricKey = TestStores.key) throws -> Database {
        let database = try stores.open(key: key) { $0.storageType = type }
        try KeyChangeContent.fill(database)
        return database
    }

    /// The form without `async`, for tests that have both.
    private func convert(_ database: Database, to type: StorageType) throws -> ConversionResult? {
        try database.convert(to: type)
    }

    private func engine() throws -> StorageType { try stores.manager.storeInfo(named: "db").storageType }

    @Test("A conversion brings everything to the other engine, and the open database goes on", arguments: directions)
    func conversion(from: StorageType, to: StorageType) throws {
        let database = try make(from)
        let before = try KeyChangeContent.describe(database)
        let (sequence, uuid) = (try database.lastSequenceNumber, try database.uuid)
        let oldGeneration = try stores.generation()
        #expect(database.storageType == from)

        let result = try #require(try database.convert(to: to))
        #expect(result.oldStorageType == from && result.newStorageType == to)
        #expect(result.oldGeneration == 1 && result.newGeneration == 2)
        #expect(result.oldGenerationIsGone && result.oldGenerations.isEmpty)
        #expect(result.documentCount == KeyChangeContent.bodyLengths.count + 3)
        #expect(result.attachmentCount == KeyChangeContent.attachmentLengths.count + 2)
        #expect(result.databaseByteCount > 80_000)
        #expect(database.storageType == to)
        #expect(try engine() == to)
        #expect(try KeyChangeContent.describe(database) == before)
        #expect(try database.lastSequenceNumber == sequence)
        #expect(!FileManager.default.fileExists(atPath: oldGeneration.path))
        #expect(try stores.generations().count == 1)
        try database.save(json: json(1), withID: "new")
        let draft = try database.document(withID: "new").newRevision()
        draft.setAttachment(named: "x", contentType: nil, content: Data("new".utf8))
        try draft.save()
        try database.compact()
        #expect(try database.verify().findings == [])
        try database.close()

        let again = try stores.existing(key: TestStores.key)
        #expect(again.storageType == to)
        #expect(try again.uuid == uuid)
        #expect(try again["new"]?.currentRevision?.attachment(named: "x")?.content == Data("new".utf8))
        try again["new"]?.delete()
        #expect(try KeyChangeContent.describe(again) == before)
    }

    @Test("A conversion there and back leaves every row as it was")
    func thereAndBack() throws {
        let database = try make(.sqlite)
        let before = try StoreContents(of: database)
        for type in [StorageType.sealed, .sqlite, .sealed, .sqlite] { try database.convert(to: type) }
        #expect(try StoreContents(of: database) == before)
        #expect(try stores.manager.storeInfo(named: "db").generation == 5)
    }

    @Test("A conversion to the engine that a database has does nothing")
    func nothingToDo() async throws {
        for type in [StorageType.sqlite, .sealed] {
            try await make(type).close()
            let before = try stores.snapshot()
            for isReadOnly in [false, true] {
                let database = try stores.open {
                    $0.storageType = type
                    $0.readOnly = isReadOnly
                }
                #expect(try convert(database, to: type) == nil)
                #expect(try await database.convert(to: type) == nil)
                try await database.close()
            }
            #expect(try stores.snapshot() == before)
            try await stores.manager.deleteDatabase(named: "db")
        }
    }

    @Test("A conversion keeps every key, its id, label, time and whether it is original", arguments: directions)
    func keys(from: StorageType, to: StorageType) throws {
        var database = try make(from)
        let password = SymmetricKey(password: "password123456")
        try database.addKey(password, label: "person")
        let third = try database.addKey(testKey(9))
        try database.addKey(testKey(10), label: "machine")
        // Leaves a gap between slots.
        try database.removeKey(third.id)
        let before = try database.keys
        #expect(before.map(\.isOriginal) == [true, false, false])
        try database.convert(to: to)
        #expect(try database.keys == before)
        try database.close()
        for (index, key) in [TestStores.key, password, testKey(10)].enumerated() {
            database = try stores.existing(key: key)
            #expect(database.storageType == to)
            #expect(try database.keys.map(\.id) == before.map(\.id))
            #expect(try database.keys.map(\.label) == [nil, "person", "machine"])
            #expect(try database.keys.map(\.isOriginal) == [true, false, false])
            #expect(try database.keys.map(\.created) == before.map(\.created))
            #expect(try database.keys.map(\.isCurrent) == (0..<3).map { $0 == index })
            try database.close()
        }
        #expect(thrown { try stores.existing(key: testKey(9)) }?.code == .wrongKey)
    }

    @Test("A backup of the keys from before a conversion belongs to another generation, and is refused")
    func keyBackup() throws {
        let database = try make(.sqlite)
        let backup = try stores.manager.keyBackup(ofDatabaseNamed: "db")
        try database.convert(to: .sealed)
        try database.close()
        let error = thrown {
            try stores.manager.restoreKeys(ofDatabaseNamed: "db", from: backup, encryptionKey: TestStores.key)
        }
        #expect(error?.code == .conflict)
        let now = try stores.manager.keyBackup(ofDatabaseNamed: "db")
        try FileManager.default.removeItem(at: stores.url().appending(path: "MANIFEST"))
        try stores.manager.restoreKeys(ofDatabaseNamed: "db", from: now, encryptionKey: TestStores.key)
        #expect(try stores.existing(key: TestStores.key)["later"]?["n"] == 5)
    }

    @Test("An opening that asks for another engine converts the database first", arguments: directions)
    func opening(from: StorageType, to: StorageType) async throws {
        var database = try make(from)
        let before = try KeyChangeContent.describe(database)
        try await database.close()
        // Asked for nothing, it stays as it is, whatever the manager makes of new ones.
        stores.manager.storageType = to
        database = try stores.existing(key: TestStores.key)
        #expect(database.storageType == from)
        // One that is open is returned as it is.
        #expect(try stores.open { $0.storageType = to } === database)
        #expect(database.storageType == from)
        try await database.close()

        var options = DatabaseOptions()
        options.encryptionKey = TestStores.key
        options.storageType = to
        database = try await stores.manager.openDatabase(named: "db", options: options)
        #expect(database.storageType == to)
        #expect(try KeyChangeContent.describe(database) == before)
        #expect(try stores.generations().count == 1)
    }

    @Test(
        "An opening for reading only that asks for another engine is a 403, and changes no byte", arguments: directions)
    func readOnly(from: StorageType, to: StorageType) throws {
        try make(from).close()
        let before = try stores.snapshot()
        let error = thrown {
            try stores.open {
                $0.readOnly = true
                $0.storageType = to
            }
        }
        #expect(error?.code == .readOnly)
        #expect(error?.detail?.contains("another storage engine") == true, "and says why")
        let database = try stores.open { $0.readOnly = true }
        #expect(thrown { try database.convert(to: to) }?.code == .readOnly)
        #expect(database.storageType == from)
        try database.close()
        #expect(try stores.snapshot() == before)
    }

    @Test("A database without a key has no sealed pages: a 406, unless only the manager's default says so")
    func withoutKey() async throws {
        let error = thrown { try stores.open(key: nil) { $0.storageType = .sealed } }
        #expect(error?.code == .storageTypeUnavailable)
        #expect(!FileManager.default.fileExists(atPath: stores.directory.path))
        stores.manager.storageType = .sealed
        let database = try stores.open(key: nil)
        #expect(database.storageType == .sqlite)
        #expect(thrown { try convert(database, to: .sealed) }?.code == .storageTypeUnavailable)
        let failure = await #expect(throws: CofferError.self) { try await database.convert(to: .sealed) }
        #expect(failure?.code == .storageTypeUnavailable)
        #expect(try convert(database, to: .sqlite) == nil)
        try await database.close()
        let before = try stores.snapshot()
        let again = thrown { try stores.open(key: nil) { $0.storageType = .sealed } }
        #expect(again?.code == .storageTypeUnavailable)
        #expect(try stores.snapshot() == before)
        #expect(try stores.open("keyed").storageType == .sealed)
    }

    @Test("An engine that there isn't is a 406, for databases that exist too")
    func unknownEngine() throws {
        let database = try make(.sealed)
        #expect(thrown { try database.convert(to: "RocksDB") }?.code == .storageTypeUnavailable)
        try database.close()
        #expect(thrown { try stores.open { $0.storageType = "RocksDB" } }?.code == .storageTypeUnavailable)
        #expect(try stores.open { $0.storageType = "Sealed" }.storageType == .sealed)
    }

    @Test("A wrong key converts nothing: a 401, and no byte is changed", arguments: directions)
    func wrongKey(from: StorageType, to: StorageType) throws {
        try make(from).close()
        let before = try stores.snapshot()
        for (key, code) in [(testKey(99), CofferError.Code.wrongKey), (nil, .keyRequired)] {
            let error = thrown { try stores.open(key: key) { $0.storageType = to } }
            #expect(error?.code == (key == nil && to == .sealed ? .keyRequired : code))
        }
        #expect(try stores.snapshot() == before)
    }

    @Test("A conversion is refused within a transaction and a listener")
    func refused() throws {
        let database = try make(.sqlite)
        let error = thrown { try database.inTransaction { try database.convert(to: .sealed) } }
        #expect(error?.code == .invalidArgument)
        let codes = Lock<[CofferError.Code?]>([])
        let listener = database.addChangeListener { _ in
            let code = thrown { try database.convert(to: .sealed) }?.code
            codes.withLock { $0.append(code) }
        }
        try database.save(json: json(1), withID: "x")
        try waitUntil("the listener was called") { codes.withLock { !$0.isEmpty } }
        #expect(codes.withLock(\.self).allSatisfy { $0 == .invalidArgument })
        listener.remove()
        #expect(database.storageType == .sqlite)
    }

    @Test("A conversion ends with its task, and leaves everything as it was", arguments: directions)
    func cancelled(from: StorageType, to: StorageType) async throws {
        let database = try make(from)
        let (writing, done) = (Gate(), Gate())
        // While this writes, no conversion comes to its commit.
        let transaction = Thread {
            try? database.inTransaction {
                writing.open()
                done.wait()
            }
        }
        transaction.start()
        writing.wait()
        let task = Task { try await database.convert(to: to) }
        // It may have begun by then, or not.
        try await Task.sleep(for: .milliseconds(50))
        task.cancel()
        done.open()
        let error = await #expect(throws: CofferError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(try stores.generations().count == 1)
        #expect(database.storageType == from)
        #expect(try database["later"]?["n"] == 5)
        #expect(try convert(database, to: to) != nil)
    }

    @MainActor
    private final class Log {
        var reports: [CopyProgress] = []
    }

    @Test("A conversion reports how far it is")
    @MainActor
    func progress() async throws {
        let database = try stores.open { $0.storageType = .sqlite }
        let draft = try database.document(withID: "large").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data(count: 60 << 20))
        try await draft.save()
        let log = Log()
        let result = try await database.convert(to: .sealed) { @MainActor in log.reports.append($0) }
        #expect(result?.attachmentByteCount == 60 << 20)
        let last = try #require(log.reports.last)
        #expect(last.phase == .database && last.completedItemCount == 1)
    }

    @Test(
        "A conversion needs room for a second copy, and says so before it writes", .enabled(if: SmallDisk.isAvailable))
    func space() throws {
        let disk = try SmallDisk(megabytes: 8)
        var database = try disk.open { $0.storageType = .sqlite }
        try KeyChangeContent.fill(database)
        try disk.fill(leaving: 300_000)
        #expect(thrown { try database.convert(to: .sealed) }?.code == .noSpace)
        try database.close()
        // Nobody has the store after an opening that failed so.
        #expect(thrown { try disk.open { $0.storageType = .sealed } }?.code == .noSpace)
        let store = disk.directory.appending(path: "db.coffer").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: store).count == 2)
        try disk.empty()
        database = try disk.open { $0.storageType = .sealed }
        #expect(try database["later"]?["n"] == 5)
    }

    @Test("A store of either engine has nothing readable on the disk, while it is open, converted and closed")
    func canary() throws {
        // The search works: of a store without a key everything is found.
        let plain = try stores.open("plain", key: nil)
        try KeyChangeContent.fill(plain)
        try plain.close()
        #expect(try stores.files(containing: KeyChangeContent.canary).count > 3)
        #expect(try stores.files(containing: "SQLite format 3").count == 1)
        try stores.manager.deleteDatabase(named: "plain")

        let database = try make(.sealed)
        func findings() throws -> [String] {
            try [KeyChangeContent.canary, "SQLite format 3", "CREATE TABLE", "attachment_uses"].flatMap {
                try stores.files(containing: $0)
            }
        }
        #expect(try findings() == [])
        for type in [StorageType.sqlite, .sealed] {
            try database.convert(to: type)
            #expect(try findings() == [])
            try database.save(json: Data(#"{"a":"\#(KeyChangeContent.canary)"}"#.utf8), withID: type.rawValue)
            #expect(try findings() == [])
        }
        try database.close()
        #expect(try findings() == [])
    }

    @Test("A conversion beside readers and writers loses nothing", arguments: directions)
    func besideOthers(from: StorageType, to: StorageType) throws {
        let database = try make(from)
        let saved = Lock<Set<String>>([])
        let isDone = Lock(false)
        try onThreads(3) { thread in
            switch thread {
            case 0:
                defer { isDone.withLock { $0 = true } }
                for type in [to, from, to] { try database.convert(to: type) }
            default:
                var number = 0
                while !isDone.withLock(\.self) {
                    let id = "\(thread)-\(number)"
                    try database.save(json: json(number), withID: id)
                    saved.withLock { _ = $0.insert(id) }
                    #expect(try database["later"]?["n"] == 5)
                    #expect(
                        try database["files"]?.currentRevision?.attachment(named: "a/16385")?.content
                            == KeyChangeContent.bytes(16_385))
                    number += 1
                }
            }
        }
        try database.close()
        let again = try stores.existing(key: TestStores.key)
        #expect(again.storageType == to)
        for id in saved.withLock(\.self) { #expect(try again[id] != nil) }
    }

    @Test("A backup, an installed copy and a salvage have the engine of their source; a key change keeps it")
    func copies() throws {
        stores.manager.storageType = .sqlite
        let database = try make(.sealed)
        try database.changeEncryptionKey(to: testKey(2))
        #expect(database.storageType == .sealed)
        try database.backup(to: stores.url("copy"), encryptionKey: testKey(3))
        #expect(try stores.manager.storeInfo(named: "copy").storageType == .sealed)
        try database.close()
        try stores.manager.replaceDatabase(
            named: "installed", withDatabaseAt: stores.url("copy"), encryptionKey: testKey(3))
        #expect(try stores.manager.storeInfo(named: "installed").storageType == .sealed)
        try stores.manager.salvageDatabase(named: "db", encryptionKey: testKey(2), to: stores.url("salvaged"))
        #expect(try stores.manager.storeInfo(named: "salvaged").storageType == .sealed)
        for (name, key) in [("copy", testKey(3)), ("installed", testKey(3)), ("salvaged", testKey(2))] {
            let copy = try stores.existing(name, key: key)
            #expect(try copy["later"]?["n"] == 5, "\(name)")
            #expect(try copy.verify().findings == [], "\(name)")
        }
        // Without a key it is plain SQLite, and from there the portable form.
        let again = try stores.existing(key: testKey(2))
        try again.changeEncryptionKey(to: nil)
        #expect(again.storageType == .sqlite)
        try again.backup(to: stores.url("other"), encryptionKey: testKey(4))
        #expect(try stores.manager.storeInfo(named: "other").storageType == .sqlite)
        try again.changeEncryptionKey(to: testKey(2))
        #expect(again.storageType == .sqlite)
    }
}
