import CofferSealing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

@Suite("Many threads")
struct ThreadTests {
    let stores = TestStores()

    @Test("Threads that save documents of their own lose none, and read back what they saved")
    func ownDocuments() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try onThreads(6) { thread in
            for number in 0..<50 {
                let id = "\(thread)-\(number)"
                try database.save(json: json(number), withID: id)
                #expect(try database[id]?["n"] == .number(JSONNumber(number)))
            }
        }
        #expect(try database.documentCount == 300)
        #expect(try database.lastSequenceNumber == 300)
    }

    @Test("Threads that update one document each see the one before: no update is lost")
    func counter() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.save(json: json(0), withID: "counter")
        let conflicts = Tally()
        try onThreads(4) { thread in
            for _ in 0..<25 {
                if thread % 2 == 0 {
                    try database.inTransaction {
                        let draft = try database.document(withID: "counter").newRevision()
                        let count: Int? = draft["n"]
                        draft["n"] = .number(JSONNumber(try #require(count) + 1))
                        try draft.save()
                    }
                    continue
                }
                // Without a transaction somebody may be faster, which is a conflict and nothing else.
                while true {
                    let draft = try database.document(withID: "counter").newRevision()
                    let count: Int? = draft["n"]
                    draft["n"] = .number(JSONNumber(try #require(count) + 1))
                    guard let error = thrown({ try draft.save() }) else { break }
                    #expect(error.code == .conflict)
                    conflicts.count("conflict")
                }
            }
        }
        #expect(try database["counter"]?["n"] == 100)
        #expect(try database["counter"]?.currentRevision?.revisionID.generation == 101)
    }

    @Test("Threads that read see every transaction whole, and never an older one after a newer one")
    func snapshots() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let isDone = Atomic(false)
        // The newest that any thread has seen: whoever reads later must see that or a newer one.
        let newest = Atomic(0)
        @Sendable func write(_ number: Int) throws {
            try database.inTransaction {
                for id in ["a", "b", "c"] {
                    let document = MutableDocument(id: id, ["n": .number(JSONNumber(number))])
                    try database.saveDocument(document, concurrencyControl: .lastWriteWins)
                }
            }
        }
        try write(0)
        try onThreads(4) { thread in
            if thread == 0 {
                defer { isDone.store(true, ordering: .releasing) }
                for number in 1...400 { try write(number) }
                return
            }
            while !isDone.load(ordering: .acquiring) {
                let before = newest.load(ordering: .acquiring)
                let ids = thread == 1 ? ["a", "b", "c"] : ["c", "b", "a"]
                let numbers = try ids.map { id -> Int in
                    let number: Int? = try database.document(withID: id).currentRevision?["n"]
                    return try #require(number)
                }
                // One call after another: each at least as new as the one before.
                #expect(numbers == numbers.sorted())
                #expect(numbers[0] >= before, "saw \(numbers[0]) after \(before)")
                newest.max(numbers[2], ordering: .acquiringAndReleasing)
            }
        }
        #expect(try database["a"]?["n"] == 400)
    }

    @Test("Threads that ask for one database at once get the same instance, created once")
    func opening() throws {
        for _ in 0..<10 {
            let databases = Lock<[Database]>([])
            try onThreads(6) { _ in
                let database = try self.stores.open()
                databases.withLock { $0.append(database) }
            }
            let all = databases.withLock { $0 }
            #expect(Set(all.map { ObjectIdentifier($0) }).count == 1)
            try all[0].delete()
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: stores.directory.path) == [])
    }

    /// A second close once returned before the first was through, and opening then brought the instance being closed.
    @Test("Threads that close a database and open it again never get one that is closed or closing")
    func closeAndOpen() throws {
        let current = Lock(try stores.open())
        let fresh = Tally()
        try onThreads(4) { _ in
            for _ in 0..<60 {
                let database = current.withLock { $0 }
                try database.close()
                #expect(thrown { try database.documentCount }?.code == .closed)
                let again = try self.stores.open()
                #expect(again !== database)
                fresh.count("opened")
                current.withLock { $0 = again }
            }
        }
        #expect(fresh["opened"] == 240)
    }

    @Test("Threads that open, use, drop, close and delete one database meet no error but closed")
    func everything() throws {
        let tally = Tally()
        try onThreads(6) { thread in
            var random = SeededNumbers(seed: UInt64(thread))
            for _ in 0..<60 {
                do throws(CofferError) {
                    let database = try self.stores.manager.database(named: "db", encryptionKey: TestStores.key)
                    switch random.next() % 6 {
                    case 0: try database.close()
                    case 1: try database.delete()
                    case 2: try database.save(json: json(1))
                    case 3: _ = try database.documentIDs()
                    default: break
                    }
                    tally.count("ok")
                } catch {
                    #expect(error.code == .closed)
                    tally.count("closed")
                }
            }
        }
        #expect(tally["ok"] > tally["closed"])
        let database = try stores.open()
        #expect(try database.documentCount >= 0)
        try database.delete()
        #expect(try FileManager.default.contentsOfDirectory(atPath: stores.directory.path) == [])
    }

    @Test("Threads of which one closes: reads under way end well, later ones say closed, and nothing hangs")
    func closing() throws {
        for _ in 0..<10 {
            let database = try stores.open()
            try database.save(json: json(1, byteCount: 20_000), withID: "a")
            try onThreads(5) { thread in
                if thread == 0 { return try database.close() }
                while true {
                    let error = thrown { () throws in #expect(try database["a"]?["n"] == 1) }
                    guard let error else { continue }
                    #expect(error.code == .closed)
                    return
                }
            }
            try stores.open().delete()
        }
    }

    @Test("Threads of which one holds a transaction too long get a 503 after the time they were given, and only then")
    func busy() throws {
        let database = try stores.open { $0.busyTimeout = .milliseconds(200) }
        let (isHeld, mayEnd) = (Gate(), Gate())
        try onThreads(2) { thread in
            if thread == 0 {
                try database.inTransaction {
                    isHeld.open()
                    mayEnd.wait()
                }
                return
            }
            isHeld.wait()
            let clock = ContinuousClock()
            let start = clock.now
            #expect(thrown { try database.save(json: json(1)) }?.status == 503)
            #expect((.milliseconds(200)..<longestWait).contains(clock.now - start))
            #expect(thrown { try database.close() }?.code == .busy)
            // Reads wait for nobody.
            #expect(try database.documentCount == 0)
            mayEnd.open()
        }
        try database.save(json: json(1))
        try database.close()
    }

    /// Times beyond some hundred years once ended the process.
    @Test(
        "Threads wait for a transaction however long they were told to",
        arguments: [Int64.max, 20_000_000_000, 100_000])
    func patience(seconds: Int64) throws {
        let database = try stores.open { $0.busyTimeout = .seconds(seconds) }
        let isHeld = Gate()
        try onThreads(2) { thread in
            guard thread == 0 else {
                isHeld.wait()
                try database.save(json: json(1))
                return
            }
            try database.inTransaction {
                isHeld.open()
                Thread.sleep(forTimeInterval: 0.1)
            }
        }
        #expect(try database.documentCount == 1)
    }

    /// A reader that finds the log's index being changed locks the log for an instant, and so may another connection of
    /// the library. Without patience the writer, who came then, gave up.
    @Test("Threads that share the file by connections of their own wait for each other's locks instead of being busy")
    func ownLocks() throws {
        let database = try stores.open(key: nil)
        try database.save(json: json(1), withID: "a")
        let file = DatabaseFile(path: try stores.databaseFile().path, subject: "test")
        let (isLocked, isWaiting) = (Gate(), Gate())
        try onThreads(2) { thread in
            if thread == 0 {
                let other = try file.connect(.readWrite, cacheByteCount: 1 << 20)
                try other.execute("BEGIN IMMEDIATE")
                isLocked.open()
                isWaiting.wait()
                Thread.sleep(forTimeInterval: 0.1)
                try other.execute("COMMIT")
                try other.close()
            } else {
                isLocked.wait()
                isWaiting.open()
                try database.save(json: json(2), withID: "b")
            }
        }
        #expect(try database.documentCount == 2)
    }
}
