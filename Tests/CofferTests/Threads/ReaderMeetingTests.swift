import CofferFaults
import CofferSealing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

/// A reader that is held in its snapshot while something happens to the store.
@Suite("Reading in the middle of something else")
struct ReaderMeetingTests {
    let stores = TestStores()

    /// Reads the newest sequence twice in one snapshot, and is held in between.
    private static func read(in database: Database, holding stop: Hold) throws -> [Int64] {
        try database.storage.read { (tables) throws(CofferError) in
            let before = try tables.lastSequence()
            stop.pause()
            return [before.rawValue, try lastSequence(uncached: tables)]
        }
    }

    /// By a statement of its own.
    private static func lastSequence(uncached tables: borrowing Snapshot) throws(CofferError) -> Int64 {
        let statement = Statement(tables.connection, "SELECT max(sequence) FROM revisions")
        defer { statement.finalize() }
        return try statement.first { $0.integer(0) } ?? 0
    }

    @Test(
        "A reader keeps its snapshot to its end, whatever else happens; a close waits for it, also from an old generation",
        arguments: Moment.allCases)
    func reader(moment: Moment) throws {
        let database = try stores.open()
        try database.save(json: json(1), withID: "a")
        let stop = Hold()
        let reading = Side { try Self.read(in: database, holding: stop) }
        try stop.wait()
        let other = Side { try moment.act(on: database, in: stores) }
        let isOpen = Moment.others.contains(moment)
        var closing = other
        if isOpen {
            try other.outcome()
            try database.inTransaction {
                let draft = try database.document(withID: "a").newRevision()
                draft["n"] = 2
                try draft.save()
            }
            #expect(try database["a"]?["n"] == 2)
            closing = Side { try database.close() }
        }
        #expect(eventually { database.storage.isClosing })
        #expect(closing.isKept)
        #expect(thrown { try database["a"] }?.code == .closed)
        // Whoever opens it meanwhile waits, too. Whoever replaces it would find that one's.
        let opening = Side { [stores] in
            moment == .replacement ? nil : try stores.manager.existingDatabase(named: "db", encryptionKey: moment.key)
        }
        #expect(moment == .replacement || opening.isKept)
        stop.release()
        #expect(try reading.outcome() == [1, 1])
        try closing.outcome()
        let opened = try opening.outcome()
        #expect(opened !== database && (opened == nil) == (moment == .deletion || moment == .replacement))
        try opened?.close()
        try moment.expectSound(stores, holds: ["a": nil])
    }

    @Test(
        "A close of a database that is open for reading only waits for its reader, and whoever opens it for writing for both"
    )
    func readOnly() throws {
        let writable = try stores.open()
        try writable.save(json: json(1), withID: "a")
        try writable.close()
        let database = try stores.open { ($0.create, $0.readOnly) = (false, true) }
        let stop = Hold()
        let reading = Side { try Self.read(in: database, holding: stop) }
        try stop.wait()
        #expect(thrown { try stores.open() }?.code == .busy)
        let closing = Side { try database.close() }
        #expect(eventually { database.storage.isClosing })
        #expect(closing.isKept)
        let opening = Side { try stores.open() }
        #expect(opening.isKept)
        stop.release()
        #expect(try reading.outcome() == [1, 1])
        try closing.outcome()
        try Moment.close.expectSound(stores, closing: opening.outcome(), holds: ["a": nil])
    }

    /// Puts another generation in the place of this one, of the same files: what a key change does in the end.
    private static func exchange(_ database: Database) throws {
        let storage = database.storage
        try storage.exclusively { () throws(CofferError) in
            let counts = try storage.lent { (writer) throws(CofferError) in writer.state.counts }
            let manifest = storage.manifest
            let file = storage.databaseFile
            storage.exchange(
                with: try storage.openSuccessor(manifest, file, continuing: counts), manifest, file)
        }
    }

    @Test("Readers who begin as generations are exchanged find one that is open, and the newest state")
    func exchanges() throws {
        let database = try stores.open()
        try database.save(json: json(0), withID: "a")
        let acknowledged = Atomic(1)
        let isDone = Atomic(false)
        try withBusyProcessors {
            try onThreads(5) { thread in
                guard thread == 0 else {
                    while !isDone.load(ordering: .acquiring) {
                        for _ in 0..<100 {
                            let before = acknowledged.load(ordering: .acquiring)
                            let found = try database.lastSequenceNumber
                            guard found >= before else { throw CofferError(.damaged, "\(found) after \(before)") }
                        }
                    }
                    return
                }
                defer { isDone.store(true, ordering: .releasing) }
                for number in 0..<300 {
                    try Self.exchange(database)
                    if number % 10 == 0 {
                        try database.save(json: json(number), withID: "b\(number)")
                        acknowledged.add(1, ordering: .releasing)
                    }
                }
            }
        }
        #expect(try database.lastSequenceNumber == 31)
        #expect(try database.verify().findings == [])
        try database.close()
    }

    // MARK: The page cache

    private static func cache(_ tables: borrowing Snapshot) throws(CofferError) -> Int {
        let statement = Statement(tables.connection, "PRAGMA cache_size")
        defer { statement.finalize() }
        // In KiB, below zero.
        return try statement.first { Int(-$0.integer(0)) << 10 } ?? 0
    }

    private static func readerCache(_ database: Database) throws -> Int {
        try database.storage.readCommitted { (tables) throws(CofferError) in try cache(tables) }
    }

    private static func writerCache(_ database: Database) throws -> Int {
        try database.storage.alone { (writer) throws(CofferError) in try cache(writer.tables) }
    }

    /// Reads for so long that readers who are alone have all of the cache.
    private static func readAlone(_ database: Database) throws {
        for _ in 0..<20_000 { _ = try database.storage.readCommitted { (_) throws(CofferError) in } }
    }

    @Test("Readers take nothing of the cache from a writer at work, and don't wait for it")
    func budgetBesideAWriter() throws {
        let database = try stores.open {
            $0.cacheByteCount = 16 << 20
            // Where connections share no cache, and divide all that there is.
            $0.storageType = .sqlite
        }
        let stop = Hold()
        let writing = Side {
            try database.inTransaction {
                stop.pause()
                return try database.storage.read { (tables) throws(CofferError) in try Self.cache(tables) }
            }
        }
        try stop.wait()
        try Self.readAlone(database)
        #expect(!database.storage.settings.cache.areReadersAlone)
        #expect(try Self.readerCache(database) == 12 << 20)
        stop.release()
        #expect(try writing.outcome() == 4 << 20)
        try Self.readAlone(database)
        #expect(database.storage.settings.cache.areReadersAlone)
        try database.close()
    }

    @Test(
        "A writer takes the cache back from readers at work, whatever happens to the store", arguments: Moment.others)
    func budgetTakenBack(moment: Moment) throws {
        let database = try stores.open { $0.cacheByteCount = 16 << 20 }
        try database.save(json: json(1), withID: "a")
        try Self.readAlone(database)
        #expect(database.storage.settings.cache.areReadersAlone)
        let stop = Hold()
        let reading = Side { try Self.read(in: database, holding: stop) }
        try stop.wait()
        try moment.act(on: database, in: stores)
        // Where connections share a cache, the writer's own is smaller.
        #expect(try Self.writerCache(database) == (database.storageType == .sealed ? 2 << 20 : 4 << 20))
        stop.release()
        #expect(try reading.outcome() == [1, 1])
        #expect(try Self.readerCache(database) <= 12 << 20)
        try moment.expectSound(stores, closing: database, holds: ["a": nil])
    }

    // MARK: The checkpoint

    private static func logFrameCount(_ database: Database) throws -> Int {
        try database.storage.alone { (writer) throws(CofferError) in writer.tables.connection.logFrameCount }
    }

    @Test(
        "A checkpoint leaves a reader its snapshot and comes back to the log later, also through another writer",
        arguments: Moment.others)
    func checkpoint(moment: Moment) throws {
        let database = try stores.open { $0.checkpointFrameCount = 8 }
        try database.save(json: json(1), withID: "a")
        let stop = Hold()
        let reading = Side { try Self.read(in: database, holding: stop) }
        try stop.wait()
        for number in 0..<10 { try database.save(json: json(number, byteCount: 9_000), withID: "x\(number)") }
        // Nothing that the reader may need was written over.
        #expect(try Self.logFrameCount(database) > 16)
        try moment.act(on: database, in: stores)
        stop.release()
        #expect(try reading.outcome() == [1, 1])
        for number in 0..<30 { try database.save(json: json(number, byteCount: 9_000), withID: "y\(number)") }
        #expect(try Self.logFrameCount(database) < 40)
        var contents: [String: Data?] = ["a": .none]
        for number in 0..<10 { contents["x\(number)"] = .some(nil) }
        for number in 0..<30 { contents["y\(number)"] = .some(nil) }
        try moment.expectSound(stores, closing: database, holds: contents)
    }
}
