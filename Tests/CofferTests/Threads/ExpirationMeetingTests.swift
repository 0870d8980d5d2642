import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords

/// What others meet when the timer is about to purge documents or in the middle of it, and what it meets when they are.
@Suite("An expiration in the middle")
struct ExpirationMeetingTests {
    typealias Place = WorkedStore.Place

    private func expectGone(_ database: Database, _ location: SourceLocation = #_sourceLocation) throws {
        for id in WorkedStore.expiringIDs { #expect(try database[id] == nil, sourceLocation: location) }
    }

    @Test(
        "A close waits for the purge under way, and what is not purged by then is at the next opening",
        arguments: Place.expirations, [false, true])
    func closing(place: Place, deletes: Bool) throws {
        let store = WorkedStore(place)
        let database = try store.create()
        try store.begin(database.storage)
        let close = Call { if deletes { try database.delete() } else { try database.close() } }
        if place.holdsWriter {
            #expect(close.waits(for: database.storage.writerLock))
        } else {
            #expect(eventually { close.isOver || database.storage.isClosing })
            #expect(close.isHeldUp)
        }
        store.halt.release()
        try close.result()
        guard !deletes else {
            #expect(!FileManager.default.fileExists(atPath: store.stores.url().path))
            return
        }
        let again = try store.open()
        try expectGone(again)
        try store.check(again)
        try again.close()
    }

    @Test("A timer that is at work doesn't keep a store open whose database is gone", arguments: Place.expirations)
    func notHeld(place: Place) throws {
        let store = WorkedStore(place)
        var database: Database? = try store.create()
        weak let storage = database?.storage
        try store.begin(try #require(storage))
        database = nil
        store.halt.release()
        // The storage ends on the timer's own thread.
        #expect(eventually { storage == nil })
        let again = try store.open()
        try expectGone(again)
        try store.check(again)
        try again.close()
    }

    @Test(
        "A key change or a renewal of the writer waits for a purge's transaction alone, and the timer goes on after it",
        arguments: Place.expirations, [false, true])
    func exchanges(place: Place, changesKey: Bool) throws {
        let store = WorkedStore(place)
        let database = try store.create()
        let storage = database.storage
        try store.begin(storage)
        let call = Call {
            if changesKey {
                try database.changeEncryptionKey(to: testKey(8))
            } else {
                try storage.exclusively { () throws(CofferError) in try storage.renewWriter() }
            }
        }
        if place.holdsWriter {
            #expect(call.waits(for: storage.writerLock))
        } else {
            try call.result()
        }
        store.halt.release()
        try call.result()
        #expect(try store.waitUntilDone(database))
        try store.check(database)
        // Once more, in what it is now.
        try database.document(withID: WorkedStore.keptIDs[39]).setExpirationDate(.distantPast)
        #expect(try eventually { try database[WorkedStore.keptIDs[39]] == nil })
        #expect(try database.verify().findings == [])
        try database.close()
    }

    /// Those that hold the writer's lock when a document expires.
    enum Holder: CaseIterable, Sendable { case keyChange, renewal, transaction }

    @Test("A purge waits for whoever has the writer, and purges in the new generation", arguments: Holder.allCases)
    func waits(holder: Holder) throws {
        let store = WorkedStore(.expirationPurging)
        let (database, halt) = (try store.create(), Halt())
        let storage = database.storage
        try store.expire(storage)
        defer { halt.release() }
        let interruption = DatabaseCalls.interrupt(
            before: "PRAGMA journal_mode = OFF; BEGIN", .execution, below: store.stores.directory
        ) {
            halt.hold()
            return nil
        }
        defer { withExtendedLifetime(interruption) {} }
        let call = Call {
            switch holder {
            case .keyChange: try database.changeEncryptionKey(to: testKey(8))
            case .renewal:
                try storage.exclusively { () throws(CofferError) in
                    try storage.renewWriter()
                    halt.hold()
                }
            case .transaction:
                try database.inTransaction {
                    try database.save(json: json(1), withID: "new")
                    halt.hold()
                }
            }
        }
        #expect(halt.waitUntilReached())
        storage.expirationTimer.reconsider(storage)
        #expect(try eventually { try storage.writerLock.isWaitedFor || database[WorkedStore.expiringIDs[0]] == nil })
        #expect(try database[WorkedStore.expiringIDs[0]]?["n"] == 2)
        halt.release()
        try call.result()
        #expect(try store.waitUntilDone(database))
        try store.check(database)
        try database.close()
        let again = try store.open(key: holder == .keyChange ? testKey(8) : TestStores.key)
        try expectGone(again)
        try again.close()
    }

    @Test("A backup doesn't wait for a purge, and has what had not been committed", arguments: Place.expirations)
    func backup(place: Place) throws {
        let store = WorkedStore(place)
        let database = try store.create()
        try store.begin(database.storage)
        // The timer has its turn before.
        #expect(try database.backup(to: store.stores.url("backup"), encryptionKey: nil).documentCount == 45)
        store.halt.release()
        #expect(try store.waitUntilDone(database))
        try store.check(database)
        try database.close()
        // In the copy they have expired too.
        let copy = try store.stores.open("backup", key: nil)
        try expectGone(copy)
        try store.check(copy)
        try copy.close()
    }

    @Test("A purge doesn't wait for a backup, which has what its snapshot had, contents too")
    func duringBackup() throws {
        let store = WorkedStore(.expirationPurging)
        let (database, halt) = (try store.create(), Halt())
        defer { halt.release() }
        let draft = try database.document(withID: WorkedStore.expiringIDs[0]).newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("expiring".utf8))
        try draft.save()
        let interruption = DatabaseCalls.interrupt(
            before: "UPDATE revisions SET body = NULL, digest", .execution, below: store.stores.directory
        ) {
            halt.hold()
            return nil
        }
        defer { withExtendedLifetime(interruption) {} }
        let backup = Call { try database.backup(to: store.stores.url("backup"), encryptionKey: TestStores.key) }
        #expect(halt.waitUntilReached())
        try store.expire(database.storage)
        database.storage.expirationTimer.reconsider(database.storage)
        #expect(try store.waitUntilDone(database))
        #expect(!backup.isOver)
        halt.release()
        #expect(try backup.result().documentCount == 45)
        try store.check(database)
        try database.close()
        let copy = try store.stores.open("backup") { $0.readOnly = true }
        let revision = try copy[WorkedStore.expiringIDs[0]]?.currentRevision
        #expect(try revision?.attachment(named: "a")?.content == Data("expiring".utf8))
        try store.check(copy)
        try copy.close()
    }

    /// Who opens has documents purged that expired before, and something else may have the writer for long by then.
    @Test("A store with expired documents opens though a compaction has the writer, and they are purged later")
    func opening() throws {
        let store = WorkedStore(.removingContents)
        let created = try store.create()
        try store.expire(created.storage)
        try created.storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in try writer.records.compaction.note(reclaimable: 64 << 20) }
        }
        try created.close()
        store.arm()
        let halt = store.halt
        // Up to where the compaction has the writer.
        let looks = Tally()
        let interruption = DatabaseCalls.interrupt(
            before: "SELECT i.time", below: store.stores.directory
        ) {
            looks.count("looks")
            if looks["looks"] == 2 { _ = halt.waitUntilReached() }
            return nil
        }
        defer { withExtendedLifetime(interruption) {} }
        let database = try store.open {
            $0.compactsInBackground = true
            $0.compactionPolicy.leastByteCount = 64 << 10
            $0.busyTimeout = .milliseconds(50)
        }
        #expect(try database[WorkedStore.expiringIDs[0]]?["n"] == 2)
        halt.release()
        #expect(try eventually { try WorkedStore.expiringIDs.allSatisfy { try database[$0] == nil } })
        #expect(try eventually { try store.fileCount() == 1 })
        try store.check(database)
        try database.close()
    }

    @Test("A database is replaced only when a purge that still holds it has ended", arguments: Place.expirations)
    func replacing(place: Place) throws {
        let store = WorkedStore(place)
        var database: Database? = try store.create()
        try database?.backup(to: store.stores.url("backup"), encryptionKey: TestStores.key)
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
        // The backup was made before they expired.
        #expect(try replaced.documentCount == 45)
        try store.check(replaced)
        try replaced.close()
    }

    @Test("Documents of a store that is open read-only are never purged")
    func readOnly() throws {
        let store = WorkedStore(.expirationPurging)
        let created = try store.create()
        try store.expire(created.storage)
        try created.close()
        let before = try store.stores.snapshot()
        let database = try store.open { $0.readOnly = true }
        #expect(thrown { try database.storage.purgeExpired(by: .max, limit: 10) }?.code == .readOnly)
        #expect(try database.documentCount == 45)
        try database.close()
        #expect(try store.stores.snapshot() == before)
    }

    @Test("Any number of threads can have the timer look again at once, while it purges")
    func manyThreads() throws {
        let store = WorkedStore(.expirationPurging)
        let database = try store.create()
        try store.begin(database.storage)
        try onThreads(4) { _ in
            for _ in 0..<500 { database.storage.expirationTimer.reconsider(database.storage) }
        }
        // None of them has come in between.
        #expect(try database[WorkedStore.expiringIDs[0]]?["n"] == 2)
        store.halt.release()
        try withBusyProcessors {
            try onThreads(4) { _ in
                for _ in 0..<500 { database.storage.expirationTimer.reconsider(database.storage) }
            }
        }
        #expect(try store.waitUntilDone(database))
        try store.check(database)
        try database.close()
    }

    @Test("A store whose process exits in the middle of a purge is sound", arguments: Place.expirations)
    func exit(place: Place) async throws {
        let stores = TestStores()
        await #expect(processExitsWith: .success) {
            [path = stores.directory.path as String, name = place.rawValue as String] in
            let store = WorkedStore(try #require(Place(rawValue: name)), sharing: path)
            try store.begin(store.create().storage)
            Foundation.exit(0)
        }
        let database = try stores.open()
        try expectGone(database)
        try WorkedStore.check(database)
        try await database.close()
    }
}
