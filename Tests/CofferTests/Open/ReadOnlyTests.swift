import CofferFaults
import Foundation
import Testing

@testable import Coffer

@Suite("A database opened for reading only")
struct ReadOnlyTests {
    let stores = TestStores()

    private func openReading(_ name: String) throws -> Database { try stores.open(name) { $0.readOnly = true } }

    /// Makes a store as a killed process leaves it, everything still in its log.
    private func crash(_ name: String, hasLogIndex: Bool = true) throws {
        let database = try stores.open("source")
        for number in 0..<20 {
            try database.save(json: json(number, byteCount: 3_000), withID: "d\(number)")
        }
        try FileManager.default.copyItem(at: stores.url("source"), to: stores.url(name))
        try database.delete()
        if !hasLogIndex && TestStores.isSQLCipher {
            try FileManager.default.removeItem(atPath: stores.databaseFile(name).path + "-shm")
        }
    }

    @Test(
        "A read-only database reads what a killed process left in the log, and changes no byte but the log's index",
        arguments: [true, false])
    func log(hasLogIndex: Bool) throws {
        try crash("crashed", hasLogIndex: hasLogIndex)
        let before = try stores.snapshot(ignoring: ["db.sqlite3-shm"])
        for _ in 0..<2 {
            let database = try openReading("crashed")
            #expect(try database.documentCount == 20)
            #expect(try database["d19"]?["n"] == 19)
            try onThreads(4) { _ throws in
                for number in 0..<20 { #expect(try database["d\(number)"]?["n"] == .number(JSONNumber(number))) }
            }
            try database.close()
            #expect(try stores.snapshot(ignoring: ["db.sqlite3-shm"]) == before)
        }
        #expect(
            FileManager.default.fileExists(atPath: try stores.databaseFile("crashed").path + "-shm")
                == (hasLogIndex && TestStores.isSQLCipher))
        #expect(try stores.open("crashed").documentCount == 20)
    }

    /// It was removed after the unlocking, when it could be another process's that had opened the store for writing.
    @Test(
        "A log's index that was made for reading is removed before the store is unlocked",
        .enabled(if: TestStores.isSQLCipher, "the index of a sealed log is in memory"))
    func removesLogIndexInTime() throws {
        try crash("crashed", hasLogIndex: false)
        let index = try stores.databaseFile("crashed").path + "-shm"
        let isThere = Shared<[Bool]>([])
        let recording = RecordingFileSystem(beforeUnlock: { _ in
            isThere.value.append(FileManager.default.fileExists(atPath: index))
        })
        let watched = TestStores(sharing: stores.directory.path, fileSystem: recording)
        let database = try watched.open("crashed") { $0.readOnly = true }
        #expect(try database.documentCount == 20)
        #expect(FileManager.default.fileExists(atPath: index))
        try database.close()
        #expect(isThere.value.first == false)
    }

    @Test("A read-only database without a log makes no file, and changes none")
    func noLog() throws {
        try stores.open().save(json: json(1), withID: "a")
        let before = try stores.snapshot()
        var database: Database? = try openReading("db")
        #expect(try database?["a"]?["n"] == 1)
        #expect(try stores.snapshot() == before)
        database = nil
        #expect(try stores.snapshot() == before)
    }

    @Test("A read-only database recovers nothing: what a change that was cut short left behind stays")
    func noRecovery() throws {
        try stores.open().save(json: json(1), withID: "a")
        let leftover = stores.url().appending(path: "MANIFEST.new")
        try Data("half".utf8).write(to: leftover)
        try Data("half".utf8).write(to: stores.generation().appending(path: "incoming/x"))
        let before = try stores.snapshot()
        try openReading("db").close()
        #expect(try stores.snapshot() == before)
        try stores.open().close()
        #expect(!FileManager.default.fileExists(atPath: leftover.path))
    }

    @Test("A read-only database refuses every change with a 403, inside a transaction and in tasks too")
    func changes() async throws {
        try await stores.open().save(json: json(1), withID: "a")
        let database = try openReading("db")
        let document = database.document(withID: "a")
        #expect(thrown { try document.newRevision().save() }?.status == 403)
        #expect(thrown { try document.delete() }?.status == 403)
        #expect(thrown { try document.currentRevision?.deleteDocument() }?.status == 403)
        #expect(thrown { try database.saveDocument(document.toMutable()) }?.status == 403)
        #expect(thrown { try database.inTransaction {} }?.status == 403)
        #expect(thrown { try database.delete() }?.status == 403)
        await #expect(throws: CofferError(.readOnly)) { try await database.save(json: json(2)) }
        await #expect(throws: CofferError(.readOnly)) { try await database.delete() }
        #expect(try database["a"]?["n"] == 1)
    }

    @Test("A read-only database is not created")
    func missing() throws {
        #expect(thrown { try openReading("db") }?.code == .databaseNotFound)
        #expect(!FileManager.default.fileExists(atPath: stores.directory.path))
    }

    /// A read-only disk, with a store that was closed and one that a killed process left.
    @Test(
        "A read-only database on a disk that can't be written reads a closed store; one with a WAL is busy",
        .enabled(if: SmallDisk.isAvailable, "no small disk can be mounted here"), arguments: [true, false])
    func readOnlyDisk(hasLogIndex: Bool) throws {
        try crash("crashed", hasLogIndex: hasLogIndex)
        let disk = try SmallDisk(megabytes: 8)
        try disk.open("closed").save(json: json(1), withID: "a")
        try FileManager.default.copyItem(
            at: stores.url("crashed"), to: disk.directory.appending(path: "crashed.coffer"))
        // As a process leaves it that was killed after its log was emptied: there is nothing to read in it.
        try disk.open("emptied").save(json: json(2), withID: "b")
        let generation = try #require(
            FileManager.default.contentsOfDirectory(atPath: disk.directory.path + "/emptied.coffer")
                .first { $0.hasPrefix("g0") })
        try (Data("coffer: nothing counts in here.\n".utf8) + Data(repeating: 1, count: 100_000)).write(
            to: disk.directory.appending(path: "emptied.coffer/\(generation)/db.sqlite3-wal"))
        try disk.makeReadOnly()

        #expect(try disk.open("closed") { $0.readOnly = true }["a"]?["n"] == 1)
        #expect(try disk.open("emptied") { $0.readOnly = true }["b"]?["n"] == 2)
        #expect(thrown { try disk.open("closed") }?.code == .readOnly)
        #expect(thrown { try disk.open("closed", key: testKey(8)) }?.code == .wrongKey)
        if TestStores.isSQLCipher {
            #expect(thrown { try disk.open("crashed") { $0.readOnly = true } }?.code == .busy)
            #expect(thrown { try disk.open("crashed") }?.code == .busy)
        } else {
            // The index of a sealed log is in memory.
            #expect(try disk.open("crashed") { $0.readOnly = true }.documentCount == 20)
            #expect(thrown { try disk.open("crashed") }?.code == .readOnly)
        }
        #expect(thrown { try disk.open("crashed", key: nil) }?.code == .keyRequired)
        #expect(thrown { try disk.open("new") }?.code == .readOnly)
        #expect(try disk.names == ["closed.coffer", "crashed.coffer", "emptied.coffer"])
    }
}
