import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

/// What others meet when an index is being brought up to date, and what that meets when they have come first.
@Suite("An index update in the middle")
struct IndexUpdateMeetingTests {
    private let stores = TestStores()
    private let halt = Halt()

    /// More than one transaction brings up to date while others wait.
    private static let documentCount = 1_200

    /// A store whose view's function stops at its first document.
    private func open(_ change: (inout DatabaseOptions) -> Void = { _ in }) throws -> (Database, DatabaseView) {
        let database = try stores.open {
            $0.durability = .relaxed
            change(&$0)
        }
        if try !database.isReadOnly && database.documentCount == 0 {
            try database.inTransaction {
                for number in 0..<Self.documentCount { try database.save(json: json(number), withID: "d\(number)") }
            }
        }
        return (database, try view(of: database))
    }

    private func view(of database: Database) throws -> DatabaseView {
        let (view, halt) = (database.view(named: "v"), halt)
        try view.setMap(version: "1") { revision, emit in
            halt.hold()
            emit(revision.documentID)
        }
        return view
    }

    /// Expects that the index has every document, and all is sound.
    private func check(_ database: Database, _ count: Int = documentCount) throws {
        #expect(try view(of: database).rows().all.count == count)
        #expect(try database.documentCount == count)
        #expect(try database.verify().findings == [])
        #expect(database.storage.damageOfIndexes() == .none)
    }

    private func beginUpdate(_ view: DatabaseView) throws -> Call<Int> {
        let update = Call { try view.rows().all.count }
        try #require(halt.waitUntilReached())
        return update
    }

    @Test(
        "A close waits for an update's transaction, and the next opening goes on with what it has made",
        arguments: [false, true])
    func closing(deletes: Bool) throws {
        defer { halt.release() }
        let (database, view) = try open()
        let update = try beginUpdate(view)
        let close = Call { if deletes { try database.delete() } else { try database.close() } }
        #expect(close.waits(for: database.storage.writerLock))
        halt.release()
        try close.result()
        #expect(update.errorCode == .closed || (try? update.result()) == Self.documentCount)
        guard !deletes else { return }
        let (again, _) = try open()
        try check(again)
        try again.close()
    }

    /// Those that take the writer's lock for what can't be within a transaction.
    enum Exchange: CaseIterable, Sendable { case keyChange, renewal, save }

    @Test(
        "A key change, a renewal of the writer or a save waits for an update's transaction, not for all of it",
        arguments: Exchange.allCases)
    func exchanges(exchange: Exchange) throws {
        defer { halt.release() }
        let (database, view) = try open()
        let update = try beginUpdate(view)
        let storage = database.storage
        let call = Call {
            switch exchange {
            case .keyChange: try database.changeEncryptionKey(to: testKey(8))
            case .renewal: try storage.exclusively { () throws(CofferError) in try storage.renewWriter() }
            case .save: try database.save(json: json(1), withID: "new")
            }
        }
        #expect(call.waits(for: storage.writerLock))
        halt.release()
        try call.result()
        let count = Self.documentCount + (exchange == .save ? 1 : 0)
        #expect(try [Self.documentCount, count].contains(update.result()))
        try check(database, count)
        try database.close()
    }

    @Test("A backup doesn't wait for an update, and has the index as it was before")
    func backup() throws {
        defer { halt.release() }
        let (database, view) = try open()
        let update = try beginUpdate(view)
        try database.backup(to: stores.url("backup"), encryptionKey: TestStores.key)
        #expect(!update.isOver)
        halt.release()
        #expect(try update.result() == Self.documentCount)
        try check(database)
        try database.close()
        let copy = try stores.open("backup")
        try check(copy)
        try copy.close()
    }

    @Test("An update waits for a key change that is in the middle, and goes on in the new generation")
    func later() throws {
        halt.release()
        let (database, view) = try open()
        let exporting = Halt()
        defer { exporting.release() }
        let interruption = DatabaseCalls.interrupt(
            before: "PRAGMA journal_mode = OFF; BEGIN", .execution, below: stores.directory
        ) {
            exporting.hold()
            return nil
        }
        defer { withExtendedLifetime(interruption) {} }
        let change = Call { try database.changeEncryptionKey(to: testKey(8)) }
        #expect(exporting.waitUntilReached())
        let update = Call { try view.rows().all.count }
        #expect(update.waits(for: database.storage.writerLock))
        exporting.release()
        try change.result()
        #expect(try update.result() == Self.documentCount)
        try check(database)
        try database.close()
    }

    @Test("A database is replaced after the close that waits for an update, and not before")
    func replacing() throws {
        defer { halt.release() }
        let other = try stores.open("other")
        try other.save(json: json(1), withID: "other")
        try other.close()
        let (database, view) = try open()
        let update = try beginUpdate(view)
        let replace: @Sendable () throws -> Void = { [stores] in
            try stores.manager.replaceDatabase(
                named: "db", withDatabaseAt: stores.url("other"), encryptionKey: TestStores.key)
        }
        #expect(thrown(replace)?.status == 412)
        let replacing = Call {
            try database.close()
            try replace()
        }
        #expect(replacing.waits(for: database.storage.writerLock))
        halt.release()
        try replacing.result()
        #expect(update.errorCode == .closed || (try? update.result()) == Self.documentCount)
        let replaced = try stores.open()
        #expect(try replaced.documentIDs() == ["other"])
        #expect(try replaced.verify().findings == [])
        try replaced.close()
    }

    @Test("A store whose process exits in the middle of an index update is sound, and the next opening goes on")
    func exit() async throws {
        halt.release()
        let (created, _) = try open()
        try await created.close()
        await #expect(processExitsWith: .success) { [path = stores.directory.path as String] in
            let halt = Halt()
            let database = try TestStores(sharing: path).open()
            let view = database.view(named: "v")
            try view.setMap(version: "1") { revision, emit in
                halt.hold()
                emit(revision.documentID)
            }
            let update = Call { try view.rows().all.count }
            try #require(halt.waitUntilReached())
            #expect(!update.isOver)
            Foundation.exit(0)
        }
        let (database, _) = try open()
        try check(database)
        try await database.close()
    }

    @Test("An index that isn't up to date can't be brought so in a store that is open read-only")
    func readOnly() throws {
        halt.release()
        try open().0.close()
        let (database, view) = try open { $0.readOnly = true }
        #expect(thrown { try view.rows().all }?.code == .readOnly)
        try database.close()
    }

    /// Has the store say that its indexes are of another version.
    private func makeTablesOld() throws {
        halt.release()
        let (database, view) = try open()
        #expect(try view.rows().all.count == Self.documentCount)
        try database.storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in
                try writer.tables.connection.execute("UPDATE info SET value = 0 WHERE key = 'index_version'")
            }
        }
        try database.close()
    }

    @Test("A second opening waits for one that makes the tables of indexes again, and gets the same database")
    func opening() throws {
        try makeTablesOld()
        let remaking = Halt()
        defer { remaking.release() }
        let interruption = DatabaseCalls.interrupt(
            before: "CREATE TABLE IF NOT EXISTS indexes", .execution, below: stores.directory
        ) {
            remaking.hold()
            return nil
        }
        defer { withExtendedLifetime(interruption) {} }
        let first = Call { try stores.open() }
        #expect(remaking.waitUntilReached())
        let second = Call { try stores.open() }
        #expect(second.isHeldUp && first.isHeldUp)
        remaking.release()
        let database = try first.result()
        #expect(try second.result() === database)
        try check(database)
        try database.close()
    }

    @Test("Tables of indexes are made again whole or not at all")
    func remade() throws {
        try makeTablesOld()
        let isFull = Shared(true)
        let interruption = DatabaseCalls.interrupt(
            before: "CREATE TABLE IF NOT EXISTS indexes", .execution, below: stores.directory
        ) { isFull.value ? 13 : nil }
        defer { withExtendedLifetime(interruption) {} }
        // It opens all the same, and says what is wrong to those who need an index.
        let (database, view) = try open()
        // Seen by a connection that has no snapshot from before.
        let connection = try database.storage.databaseFile.connect(.readOnly, cacheByteCount: 1 << 20)
        let tables = Statement(connection, "SELECT count(*) FROM sqlite_master WHERE name = 'index_entries'")
        #expect(try tables.first { $0.integer(0) } == 1)
        tables.finalize()
        try connection.close()
        #expect(thrown { try view.rows().all }?.code == .noSpace)
        try database.save(json: json(1), withID: "new")
        isFull.value = false
        try check(database, Self.documentCount + 1)
        try database.close()
    }

    @Test("A query plans again when its index is deleted before the first document is read", arguments: [false, true])
    func deletedIndex(isSorted: Bool) throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.inTransaction {
            for number in 0..<20 { try database.save(json: json(number % 2), withID: "d\(number)") }
        }
        try database.createIndex(named: "i", on: "n")
        try database.updateIndexes()
        var query = DocumentQuery(where: Property("n") == 1)
        if isSorted { query.order = [.ascending("t"), .ascending("n")] }
        query.skip = 2
        #expect(try database.explain(query).index?.name == "i")
        defer { halt.release() }
        let (halt, lookCount, asked) = (halt, Tally(), query)
        let interruption = DatabaseCalls.interrupt(
            before: "WHERE i.kind = ?1 ORDER BY i.name", .step, below: stores.directory
        ) {
            // Two steps to bring it up to date, two to plan: the last says that there are no more.
            lookCount.count("looks")
            if lookCount["looks"] == 4 { halt.hold() }
            return nil
        }
        defer { withExtendedLifetime(interruption) {} }
        let documents = Call { try database.documents(asked).all.map(\.documentID) }
        #expect(halt.waitUntilReached())
        #expect(try database.deleteIndex(named: "i"))
        halt.release()
        #expect(try documents.result().count == 8)
        #expect(try database.documents(query).all.count == 8)
        try database.close()
    }
}
