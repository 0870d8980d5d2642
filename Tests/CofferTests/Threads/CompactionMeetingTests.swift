import CofferFaults
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

/// What others meet when a compaction is in the middle, and what it meets when they are.
@Suite("A compaction in the middle")
struct CompactionMeetingTests {
    typealias Place = WorkedStore.Place

    /// It gives way to a close, and doesn't do what is left.
    @Test(
        "A close waits for the step of a compaction, which ends then, and the store is sound",
        arguments: Place.compactions, [false, true])
    func closing(place: Place, deletes: Bool) throws {
        let store = WorkedStore(place)
        let database = try store.create()
        try store.begin(database.storage)
        let close = Call { if deletes { try database.delete() } else { try database.close() } }
        #expect(close.waits(for: database.storage.maintenanceLock) { database.storage.isClosing })
        #expect(database.storage.isAboutToClose && !database.storage.isClosing)
        store.halt.release()
        try close.result()
        guard !deletes else {
            #expect(!FileManager.default.fileExists(atPath: store.stores.url().path))
            return
        }
        if place == .compactionBetweenSteps { #expect(try store.fileCount() == 1 + WorkedStore.unusedCount) }
        let again = try store.open()
        try store.check(again)
        try again.compact()
        #expect(try store.waitUntilDone(again))
        try again.close()
    }

    @Test("A close ends a compaction that was asked for before its next step")
    func closingAskedFor() throws {
        let store = WorkedStore(.compactionBetweenSteps)
        let database = try store.create()
        store.arm()
        let compaction = Call { try database.compact() }
        #expect(store.halt.waitUntilReached())
        let close = Call { try database.close() }
        #expect(close.waits(for: database.storage.maintenanceLock) { database.storage.isClosing })
        store.halt.release()
        #expect(compaction.errorCode == .closed)
        try close.result()
        let again = try store.open()
        try store.check(again)
        try again.close()
    }

    /// What looks at the store as a whole, or changes it so.
    enum WholeChange: CaseIterable, Sendable {
        case keyChange, backup

        func make(_ database: Database, _ stores: TestStores) throws {
            switch self {
            case .keyChange: try database.changeEncryptionKey(to: testKey(8))
            case .backup: try database.backup(to: stores.url("backup"), encryptionKey: TestStores.key)
            }
        }
    }

    @Test(
        "A key change or a backup waits for the step of a compaction, which gives way then",
        arguments: Place.compactions, WholeChange.allCases)
    func wholeChanges(place: Place, change: WholeChange) throws {
        let store = WorkedStore(place)
        let database = try store.create()
        try store.begin(database.storage)
        let call = Call { try change.make(database, store.stores) }
        #expect(call.waits(for: database.storage.maintenanceLock))
        store.halt.release()
        try call.result()
        if place == .compactionBetweenSteps { #expect(try store.fileCount() == 1 + WorkedStore.unusedCount) }
        try store.check(database)
        try database.compact()
        #expect(try store.waitUntilDone(database))
        try database.close()
        if change == .backup { try store.check(store.stores.open("backup")) }
        try store.check(store.open(key: change == .keyChange ? testKey(8) : TestStores.key))
    }

    @Test(
        "A compaction waits for a key change or a backup that is in the middle, and works in what it leaves",
        arguments: [Place.removingContents, .removingFilesWithoutRows], WholeChange.allCases)
    func beginsLater(place: Place, change: WholeChange) throws {
        let store = WorkedStore(place)
        let (database, halt) = (try store.create(), Halt())
        defer { halt.release() }
        let sql = change == .keyChange ? "PRAGMA journal_mode = OFF; BEGIN" : "UPDATE revisions SET body = NULL, digest"
        let interruption = DatabaseCalls.interrupt(before: sql, .execution, below: store.stores.directory) {
            halt.hold()
            return nil
        }
        defer { withExtendedLifetime(interruption) {} }
        let call = Call { try change.make(database, store.stores) }
        #expect(halt.waitUntilReached())
        let compaction = Call { try database.storage.compact(CompactionMonitor(givesWay: true)) }
        #expect(compaction.waits(for: database.storage.maintenanceLock))
        halt.release()
        try call.result()
        try compaction.result()
        #expect(try store.waitUntilDone(database))
        try store.check(database)
        try database.close()
    }

    @Test(
        "A renewal of the writer waits for a compaction's step, which goes on with the new one",
        arguments: Place.compactions)
    func renewal(place: Place) throws {
        let store = WorkedStore(place)
        let database = try store.create()
        try store.begin(database.storage)
        let storage = database.storage
        let renewal = Call { try storage.exclusively { () throws(CofferError) in try storage.renewWriter() } }
        if place.holdsWriter {
            #expect(renewal.waits(for: storage.writerLock))
        } else {
            try renewal.result()
        }
        store.halt.release()
        try renewal.result()
        #expect(try store.waitUntilDone(database))
        try store.check(database)
        try database.close()
    }

    @Test(
        "A save waits for a compaction's step, not for the whole compaction, and a read for neither",
        arguments: Place.compactions)
    func saves(place: Place) throws {
        let store = WorkedStore(place)
        let database = try store.create()
        try store.begin(database.storage)
        #expect(try database["kept7"]?["n"] == 2)
        // One of the contents that are being removed.
        let save = Call {
            try database.inTransaction { for number in 0..<3 { try store.save(content: number, in: database) } }
        }
        if place.holdsWriter {
            #expect(save.waits(for: database.storage.writerLock))
        } else {
            try save.result()
        }
        store.halt.release()
        try save.result()
        // It has ended by then, or ends at once.
        try database.storage.maintain { () throws(CofferError) in }
        for number in 0..<3 {
            let revision = try database["content\(number)"]?.currentRevision
            #expect(try revision?.attachment(named: "a")?.content == WorkedStore.content(number))
        }
        try store.check(database)
        try database.close()
    }

    /// Its file was there without a row when the compaction looked, and has one when its turn to write comes.
    @Test("A file without a row stays when its content is saved before the compaction's turn")
    func suspects() throws {
        let store = WorkedStore(.removingFilesWithoutRows)
        let database = try store.create()
        let storage = database.storage
        let compaction = Shared<Call<CompactionResult>?>(nil)
        try database.inTransaction {
            let call = Call { try storage.compact(CompactionMonitor(givesWay: true)) }
            compaction.value = call
            #expect(call.waits(for: storage.writerLock))
            for number in 0..<3 { try store.save(content: number, in: database) }
        }
        try compaction.value?.result()
        #expect(try store.fileCount() == 4)
        for number in 0..<3 {
            let revision = try database["content\(number)"]?.currentRevision
            #expect(try revision?.attachment(named: "a")?.content == WorkedStore.content(number))
        }
        try store.check(database)
        try database.close()
    }

    @Test(
        "A store whose compaction is in the middle can be opened again when its database is gone",
        arguments: Place.compactions)
    func openedAgain(place: Place) throws {
        let store = WorkedStore(place)
        var database: Database? = try store.create()
        weak let storage = database?.storage
        try store.begin(try #require(storage))
        database = nil
        // It still holds the storage.
        let again = try store.open()
        #expect(again.storage === storage)
        #expect(try again["kept7"]?["n"] == 2)
        store.halt.release()
        #expect(try store.waitUntilDone(again))
        try store.check(again)
        try again.close()
    }

    @Test("A store with a compaction due is open before that has ended", arguments: Place.compactions)
    func opening(place: Place) throws {
        let store = WorkedStore(place)
        let created = try store.create()
        try created.storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in try writer.records.compaction.note(reclaimable: 64 << 20) }
        }
        try created.close()
        store.arm()
        let database = try store.open {
            $0.compactsInBackground = true
            $0.compactionPolicy.leastByteCount = 64 << 10
        }
        #expect(store.halt.waitUntilReached())
        #expect(try database["kept7"]?["n"] == 2)
        let save = Call { try database.save(json: json(1), withID: "new") }
        if place.holdsWriter {
            #expect(save.waits(for: database.storage.writerLock))
        } else {
            try save.result()
        }
        store.halt.release()
        try save.result()
        #expect(try store.waitUntilDone(database))
        try store.check(database)
        #expect(try database["new"]?["n"] == 1)
        try database.close()
    }

    @Test("A database is replaced only when a compaction that still holds it has ended", arguments: Place.compactions)
    func replacing(place: Place) throws {
        let store = WorkedStore(place)
        var database: Database? = try store.create()
        try database?.backup(to: store.stores.url("backup"), encryptionKey: TestStores.key)
        try database?.save(json: json(1), withID: "later")
        try store.begin(try #require(database?.storage))
        database = nil
        let replacement = Call {
            try store.stores.manager.replaceDatabase(
                named: "db", withDatabaseAt: store.stores.url("backup"), encryptionKey: TestStores.key)
        }
        #expect(replacement.isHeldUp)
        store.halt.release()
        try replacement.result()
        let replaced = try store.open()
        #expect(try replaced["later"] == nil)
        try store.check(replaced)
        try replaced.close()
    }

    @Test("A store that is open read-only is never compacted")
    func readOnly() throws {
        let store = WorkedStore(.removingContents)
        try store.create().close()
        let before = try store.stores.snapshot()
        let database = try store.open { $0.readOnly = true }
        #expect(thrown { try database.storage.compact(CompactionMonitor(givesWay: true)) }?.code == .readOnly)
        try database.close()
        #expect(try store.stores.snapshot() == before)
    }

    @Test("A store whose process exits in the middle of a compaction is sound", arguments: Place.compactions)
    func exit(place: Place) async throws {
        let stores = TestStores()
        await #expect(processExitsWith: .success) {
            [path = stores.directory.path as String, name = place.rawValue as String] in
            let store = WorkedStore(try #require(Place(rawValue: name)), sharing: path)
            try store.begin(store.create().storage)
            Foundation.exit(0)
        }
        let database = try stores.open()
        try WorkedStore.check(database)
        try await database.compact()
        #expect(
            try FileManager.default.contentsOfDirectory(
                atPath: stores.generation().appending(path: "attachments").path
            ).count == 1)
        try await database.close()
    }
}
