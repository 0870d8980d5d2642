import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

/// What others meet while damaged indexes are being healed, and what healing does where it fails on the way.
@Suite("The healing of an index in the middle")
struct HealingMeetingTests {
    private let stores = TestStores()

    private static let documentCount = 20

    /// Where whoever heals is stopped.
    enum Place: CaseIterable, Sendable {
        /// Looking for the damage, beside all others.
        case looking
        /// About to take the damaged tables away, with the writer's lock.
        case abandoning

        var sql: String {
            switch self {
            case .looking: "FROM index_entries NOT INDEXED"
            case .abandoning: "PRAGMA writable_schema = ON"
            }
        }
    }

    /// A store whose view has entries that are not what was written.
    private func openDamaged(_ change: (inout DatabaseOptions) -> Void = { _ in }) throws -> (Database, DatabaseView) {
        let database = try stores.open {
            $0.durability = .relaxed
            change(&$0)
        }
        try database.inTransaction {
            for number in 0..<Self.documentCount { try database.save(json: json(number), withID: "d\(number)") }
        }
        let view = try view(of: database)
        #expect(try view.rows().all.count == Self.documentCount)
        try damage(database)
        return (database, view)
    }

    private func view(of database: Database) throws -> DatabaseView {
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in emit(revision.documentID, 1) }
        return view
    }

    private func damage(_ database: Database) throws {
        try database.storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in
                try writer.tables.connection.execute("UPDATE index_entries SET digest = x'00'")
            }
        }
        #expect(database.storage.damageOfIndexes() == .entries)
    }

    /// Holds the first thread that comes to the place.
    private func interruption(at place: Place, _ halt: Halt) -> DatabaseCalls.Interruption {
        DatabaseCalls.interrupt(before: place.sql, below: stores.directory) {
            halt.hold()
            return nil
        }
    }

    /// Expects that the index is whole, and all is sound.
    private func check(_ database: Database) throws {
        #expect(try view(of: database).rows().all.count == Self.documentCount)
        #expect(database.storage.damageOfIndexes() == .none)
        #expect(try database.verify().findings == [])
    }

    @Test("Two threads that meet the same damage heal it once", arguments: Place.allCases)
    func twoThreads(place: Place) throws {
        let (database, view) = try openDamaged()
        let halt = Halt()
        defer { halt.release() }
        let interruption = interruption(at: place, halt)
        defer { withExtendedLifetime(interruption) {} }
        let first = Call { try view.rows().all.count }
        #expect(halt.waitUntilReached())
        let second = Call { try view.rows().all.count }
        switch place {
        case .looking: #expect(try second.result() == Self.documentCount)
        case .abandoning: #expect(second.waits(for: database.storage.writerLock))
        }
        halt.release()
        #expect(try first.result() == Self.documentCount)
        #expect(try second.result() == Self.documentCount)
        #expect(database.storage.indexes.healingCount == 1)
        try check(database)
        try database.close()
    }

    @Test("A thread that finds the damage healed that it met reads again")
    func healedMeanwhile() throws {
        let (database, view) = try openDamaged()
        let attempts = Tally()
        let found = try database.storage.healingIndexes { () throws(CofferError) in
            attempts.count("attempts")
            guard attempts["attempts"] == 1 else { return true }
            // On another thread: this one reads.
            let healing = Call { try view.rows().all.count }
            #expect((try? healing.result()) == Self.documentCount)
            throw CofferError(.damaged)
        }
        #expect(found && attempts["attempts"] == 2)
        #expect(database.storage.indexes.healingCount == 1)
        try check(database)
        try database.close()
    }

    @Test("A close waits for the connections of healing", arguments: Place.allCases, [false, true])
    func closing(place: Place, deletes: Bool) throws {
        let (database, view) = try openDamaged()
        let halt = Halt()
        defer { halt.release() }
        let interruption = interruption(at: place, halt)
        defer { withExtendedLifetime(interruption) {} }
        let healing = Call { try view.rows().all.count }
        #expect(halt.waitUntilReached())
        let close = Call { if deletes { try database.delete() } else { try database.close() } }
        switch place {
        case .looking: #expect(eventually { close.isOver || database.storage.isClosing })
        case .abandoning: #expect(close.waits(for: database.storage.writerLock))
        }
        #expect(close.isHeldUp)
        halt.release()
        try close.result()
        #expect(healing.errorCode == .closed || (try? healing.result()) == Self.documentCount)
        guard !deletes else { return }
        let again = try stores.open()
        try check(again)
        try again.close()
    }

    @Test("A database is replaced after the close that waits for healing, and not before", arguments: Place.allCases)
    func replacing(place: Place) throws {
        let other = try stores.open("other")
        try other.save(json: json(1), withID: "other")
        try other.close()
        let (database, view) = try openDamaged()
        let halt = Halt()
        defer { halt.release() }
        let interruption = interruption(at: place, halt)
        defer { withExtendedLifetime(interruption) {} }
        let healing = Call { try view.rows().all.count }
        #expect(halt.waitUntilReached())
        let replace: @Sendable () throws -> Void = { [stores] in
            try stores.manager.replaceDatabase(
                named: "db", withDatabaseAt: stores.url("other"), encryptionKey: TestStores.key)
        }
        #expect(thrown(replace)?.status == 412)
        let replacing = Call {
            try database.close()
            try replace()
        }
        #expect(replacing.isHeldUp)
        halt.release()
        try replacing.result()
        #expect(healing.errorCode == .closed || (try? healing.result()) == Self.documentCount)
        let replaced = try stores.open()
        #expect(try replaced.documentIDs() == ["other"])
        #expect(try replaced.verify().findings == [])
        try replaced.close()
    }

    @Test(
        "Another opening of a store that is being healed gets the same database, and reads", arguments: Place.allCases)
    func opening(place: Place) throws {
        let (database, view) = try openDamaged()
        let halt = Halt()
        defer { halt.release() }
        let interruption = interruption(at: place, halt)
        defer { withExtendedLifetime(interruption) {} }
        let healing = Call { try view.rows().all.count }
        #expect(halt.waitUntilReached())
        let opening = Call { try stores.open() }
        #expect(try opening.result() === database)
        #expect(try opening.result().documentCount == Self.documentCount)
        #expect(!healing.isOver)
        halt.release()
        #expect(try healing.result() == Self.documentCount)
        try check(database)
        try database.close()
    }

    /// Those that take the writer's lock, or read everything.
    enum Other: CaseIterable, Sendable { case keyChange, renewal, save, backup, compaction, purge }

    @Test(
        "Others wait for healing that has the writer, not for one that looks", arguments: Place.allCases, Other.allCases
    )
    func others(place: Place, other: Other) throws {
        let (database, view) = try openDamaged()
        let (halt, storage) = (Halt(), database.storage)
        defer { halt.release() }
        try database.save(json: json(1), withID: "temporary")
        let interruption = interruption(at: place, halt)
        defer { withExtendedLifetime(interruption) {} }
        let healing = Call { try view.rows().all.count }
        #expect(halt.waitUntilReached())
        let call = Call {
            switch other {
            case .keyChange: try database.changeEncryptionKey(to: testKey(8))
            case .renewal: try storage.exclusively { () throws(CofferError) in try storage.renewWriter() }
            case .save, .purge: try database.document(withID: "temporary").purge()
            case .backup: try database.backup(to: stores.url("backup"), encryptionKey: TestStores.key)
            case .compaction: try database.compact()
            }
        }
        if place == .abandoning {
            #expect(call.waits(for: storage.writerLock))
        } else {
            try call.result()
        }
        halt.release()
        try call.result()
        try healing.result()
        if other != .purge && other != .save { try database.document(withID: "temporary").purge() }
        try check(database)
        #expect(storage.indexes.healingCount == 1)
        try database.close()
    }

    /// The tables are gone from the file by then, and the writer still knows them.
    @Test("A renewal of the writer that fails is made up for by the next who writes", arguments: [1, 2])
    func failedRenewal(failureCount: Int) throws {
        let (database, view) = try openDamaged { $0.busyTimeout = .seconds(10) }
        // Healing says so to its own connection, and then to the new writer.
        let calls = Tally()
        let interruption = DatabaseCalls.interrupt(
            before: "PRAGMA synchronous = FULL", .execution, below: stores.directory
        ) {
            calls.count("calls")
            return (2..<2 + failureCount).contains(calls["calls"]) ? 14 : nil
        }
        defer { withExtendedLifetime(interruption) {} }
        #expect(thrown { try view.rows().all }?.code == .ioFailed)
        #expect(database.storage.writer.hasMetDamage)
        if failureCount == 2 { #expect(thrown { try database.save(json: json(1), withID: "d0") }?.code == .ioFailed) }
        try database.document(withID: "d0").setExpirationDate(.distantFuture)
        #expect(!database.storage.writer.hasMetDamage)
        #expect(calls["calls"] == 2 + failureCount)
        try check(database)
        try database.close()
        let again = try stores.open()
        try check(again)
        try again.close()
    }

    /// What the commit of healing says.
    enum Failure: CaseIterable, Sendable {
        case full, io

        var code: Int32 { self == .full ? 13 : 10 }
    }

    @Test("Healing whose commit fails changes nothing, and is done later", arguments: Failure.allCases)
    func failedCommit(failure: Failure) throws {
        let (database, view) = try openDamaged()
        let calls = Tally()
        let interruption = DatabaseCalls.interrupt(before: "COMMIT", .execution, below: stores.directory) {
            calls.count("calls")
            return calls["calls"] == 1 ? failure.code : nil
        }
        defer { withExtendedLifetime(interruption) {} }
        let error = thrown { try view.rows().all }
        #expect(calls["calls"] == 1)
        switch failure {
        case .full:
            #expect(error?.code == .noSpace)
            #expect(database.storage.damageOfIndexes() == .entries)
            try check(database)
        case .io:
            #expect(error?.code == .ioFailed)
            // Whether it is on the disk is open.
            #expect(thrown { try database.save(json: json(1)) }?.code == .reopenRequired)
            #expect(thrown { try database.documentIDs() }?.code == .reopenRequired)
        }
        try database.close()
        let again = try stores.open()
        try check(again)
        try again.close()
    }

    @Test("Damaged indexes of a store that is open read-only stay as they are")
    func readOnly() throws {
        try openDamaged().0.close()
        let before = try stores.snapshot()
        let database = try stores.open { $0.readOnly = true }
        #expect(thrown { try view(of: database).rows().all }?.code == .damaged)
        try database.close()
        #expect(try stores.snapshot() == before)
    }

    @Test("A store whose process exits in the middle of healing is sound", arguments: Place.allCases)
    func exit(place: Place) async throws {
        let (damaged, _) = try openDamaged()
        try await damaged.close()
        await #expect(processExitsWith: .success) {
            [path = stores.directory.path as String, looks = (place == .looking) as Bool] in
            let (stores, halt) = (TestStores(sharing: path), Halt())
            let place = looks ? Place.looking : .abandoning
            let interruption = DatabaseCalls.interrupt(before: place.sql, below: stores.directory) {
                halt.hold()
                return nil
            }
            let view = try stores.open().view(named: "v")
            try view.setMap(version: "1") { revision, emit in emit(revision.documentID, 1) }
            let healing = Call { try view.rows().all.count }
            try #require(halt.waitUntilReached())
            #expect(!healing.isOver)
            withExtendedLifetime(interruption) { Foundation.exit(0) }
        }
        let again = try stores.open()
        try check(again)
        try await again.close()
    }
}
