@testable import CofferSQLite
import CofferSealing
import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("Those who read at the same time")
struct ReaderPoolTests {
    let stores = TestStores()

    /// How many bytes the page cache of whoever reads now may hold.
    private func cache(_ database: Database) throws -> Int {
        try database.storage.read { (tables) throws(CofferError) in
            let statement = Statement(tables.connection, "PRAGMA cache_size")
            defer { statement.finalize() }
            // In KiB, below zero.
            return try statement.first { Int(-$0.integer(0)) << 10 } ?? 0
        }
    }

    /// Has as many threads read at once.
    private func read(_ database: Database, threads count: Int) throws {
        let arrived = Atomic(0)
        try onThreads(count) { _ in
            try database.storage.read { (tables) throws(CofferError) in
                arrived.add(1, ordering: .relaxed)
                while arrived.load(ordering: .relaxed) < count { usleep(100) }
            }
        }
    }

    @Test("Readers at the same time use the same connections again")
    func connections() throws {
        let database = try stores.open(key: nil)
        try database.save(json: json(0), withID: "a")
        let made = Atomic(0)
        let file = DatabaseFile(path: try stores.databaseFile().path, subject: "test")
        let pool = ReaderPool(
            subject: "readers", clock: CommitClock(), cache: CacheBudget(byteCount: 8 << 20), idleLimit: 8
        ) {
            (share) throws(CofferError) in
            made.add(1, ordering: .relaxed)
            return try file.openSnapshot(cacheByteCount: share)
        }
        try onThreads(4) { _ in
            for _ in 0..<10_000 {
                _ = try pool.enter()
                #expect(try pool.read { (tables) throws(CofferError) in try tables.lastSequence() } == 1)
            }
        }
        // Some may rest for a span of reads, of which these are ten, and be opened again.
        #expect(made.load(ordering: .relaxed) <= 40)
        pool.retire()
        pool.waitForReaders()
    }

    /// Where connections share no cache, and divide all that there is.
    private func openSQLCipher() throws -> Database {
        try stores.open {
            $0.cacheByteCount = 16 << 20
            $0.storageType = .sqlite
        }
    }

    @Test("Readers share the cache, and one that reads alone for a while has all of it again")
    func shares() throws {
        let database = try openSQLCipher()
        try database.save(json: json(0), withID: "a")
        #expect(try cache(database) == 12 << 20)
        try read(database, threads: 3)
        #expect(try cache(database) == 4 << 20)
        for _ in 0..<1000 { _ = try database["a"] }
        #expect(try cache(database) == 4 << 20, "others may come back at any time")
        // Somebody writes now and then, so that the writer keeps its part.
        for number in 0..<10_000 {
            if number % 1000 == 0 { try database.save(json: json(number), withID: "b\(number)") }
            _ = try database["a"]
        }
        #expect(try cache(database) == 12 << 20)
        try read(database, threads: 2)
        #expect(try cache(database) == 6 << 20)
    }

    /// How many bytes the page cache of the writer may hold.
    private func writerCache(_ database: Database) throws -> Int {
        try database.inTransaction { try cache(database) }
    }

    @Test("Readers at the same time have the writer's part of the cache too while nobody writes, and give it back")
    func quiet() throws {
        let database = try openSQLCipher()
        try database.save(json: json(0), withID: "a")
        for _ in 0..<3 {
            for _ in 0..<20_000 { _ = try database["a"] }
            let byteCount = try cache(database)
            #expect(byteCount == (16 << 20) - CacheBudget.leastByteCount)
            #expect(try writerCache(database) == 4 << 20)
            #expect(try cache(database) == 12 << 20)
        }
    }

    @Test("Readers at the same time have it too when they list documents, each of which counts")
    func listing() throws {
        let database = try openSQLCipher()
        try database.inTransaction { for number in 0..<1_000 { try database.save(json: json(number)) } }
        for _ in 0..<4 { #expect(try database.allDocuments().all.count == 1_000) }
        #expect(try cache(database) == 12 << 20)
        for _ in 0..<12 { #expect(try database.allDocuments().all.count == 1_000) }
        #expect(try cache(database) == (16 << 20) - CacheBudget.leastByteCount)
    }

    @Test("Readers at the same time have all of the cache where nobody can write")
    func readOnly() throws {
        try openSQLCipher().close()
        let database = try stores.open {
            $0.readOnly = true
            $0.cacheByteCount = 16 << 20
            $0.storageType = .sqlite
        }
        let byteCount = try cache(database)
        #expect(byteCount == (16 << 20) - CacheBudget.leastByteCount)
    }

    private func readerIdentity(_ database: Database) throws -> ObjectIdentifier {
        try database.storage.read { (tables) throws(CofferError) in ObjectIdentifier(tables.connection.handle) }
    }

    @Test("Readers give a part of the cache back with the pages in it, and are the same connections")
    func warm() throws {
        let database = try openSQLCipher()
        try database.save(json: json(0), withID: "a")
        for _ in 0..<20_000 { _ = try database["a"] }
        let before = try readerIdentity(database)
        try onThreads(2) { number in
            for count in 0..<200 {
                if number == 0 {
                    try database.save(json: json(count), withID: "b\(count)")
                } else {
                    _ = try database["a"]
                }
            }
        }
        #expect(try cache(database) == 12 << 20)
        #expect(try readerIdentity(database) == before)
    }

    @Test("Readers keep no writer waiting that has no time", .timeLimit(.minutes(30)))
    func brief() throws {
        let lock = WriterLock()
        #expect(lock.lockBriefly())
        #expect(lock.isHeldByCaller && !lock.lockBriefly())
        let didLock = Atomic(false)
        let writer = Thread {
            #expect(throws: Never.self) { try lock.lock(until: .now, subject: "test") }
            didLock.store(true, ordering: .releasing)
        }
        writer.start()
        while !lock.isWaitedFor { usleep(100) }
        let isTooEarly = didLock.load(ordering: .acquiring)
        #expect(!isTooEarly)
        lock.unlock()
        while !didLock.load(ordering: .acquiring) { usleep(100) }
        // Who has it for long is waited for as long as somebody says.
        #expect(thrown { try lock.lock(until: .now, subject: "test") }?.status == 503)
    }

    @Test("Readers leave the writer its part of the cache while it is held, and don't wait for it")
    func held() throws {
        let database = try openSQLCipher()
        try database.save(json: json(0), withID: "a")
        try database.inTransaction {
            try onThreads(1) { _ in
                for _ in 0..<20_000 { _ = try database["a"] }
                #expect(try cache(database) == 12 << 20)
            }
            #expect(try cache(database) == 4 << 20)
        }
    }
}
