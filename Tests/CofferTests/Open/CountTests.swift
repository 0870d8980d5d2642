import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("The number of documents")
struct CountTests {
    let stores = TestStores()

    /// What the database says, and what counting its rows says.
    private func counts(_ database: Database) throws -> [Int] {
        [
            try database.documentCount,
            try database.storage.read { (tables) throws(CofferError) in try tables.documentCount() },
        ]
    }

    @Test("The number of documents is the same as counting, after each kind of change")
    func changes() throws {
        let database = try stores.open()
        #expect(try counts(database) == [0, 0])
        for id in ["a", "b", "c", "d"] { try database.save(json: json(1), withID: id) }
        #expect(try counts(database) == [4, 4])
        try database.save(json: json(2), withID: "a", replacing: database.document(withID: "a").currentRevisionID)
        try database.document(withID: "b").delete()
        #expect(try counts(database) == [3, 3])
        try database.save(json: json(1), withID: "b")
        #expect(try counts(database) == [4, 4])

        // A branch, and its winner deleted, and then the other.
        let first = try #require(try database.document(withID: "c").currentRevision)
        try database.save(json: json(2), withID: "c", replacing: first.revisionID)
        let draft = try first.createRevision()
        draft["n"] = 3
        try draft.saveAllowingConflict()
        #expect(try counts(database) == [4, 4])
        try database.document(withID: "c").currentRevision?.deleteDocument()
        #expect(try counts(database) == [4, 4])
        try database.document(withID: "c").currentRevision?.deleteDocument()
        #expect(try counts(database) == [3, 3])

        try? database.inTransaction {
            try database.save(json: json(1), withID: "x")
            #expect(try counts(database) == [4, 4])
            try? database.inTransaction {
                try database.document(withID: "a").delete()
                #expect(try counts(database) == [3, 3])
                throw CancellationError()
            }
            #expect(try counts(database) == [4, 4])
            throw CancellationError()
        }
        #expect(try counts(database) == [3, 3])
        try database.storage.write { (writer) throws(CofferError) in
            _ = try Purge(of: .init("a")).removeDocument(in: writer)
            _ = try Purge(of: .init("b")).removeDocument(in: writer)
            _ = try Purge(of: .init("c")).removeDocument(in: writer)
            #expect(try Purge(of: .init("nobody")).removeDocument(in: writer) == false)
        }
        #expect(try counts(database) == [1, 1])
        try database.save(json: json(1), withID: "a")
        #expect(try counts(database) == [2, 2])
        try database.close()
        #expect(try counts(stores.open { $0.readOnly = true }) == [2, 2])
    }

    @Test("The number of documents never misses one that was seen, while others write, and never goes back")
    func threads() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let isOver = Shared(false)
        try onThreads(4) { thread in
            if thread == 0 {
                defer { isOver.value = true }
                for number in 0..<1_000 { try database.save(json: json(number), withID: "d\(number)") }
                return
            }
            var (next, last) = (0, 0)
            while !isOver.value {
                while try database["d\(next)"] != nil { next += 1 }
                let count = try database.documentCount
                if count < next || count < last { throw CofferError(.damaged, "\(count) after \(next), \(last)") }
                last = count
            }
        }
        #expect(try counts(database) == [1_000, 1_000])
    }

    @Test("A count that is made while a purge is committed is not kept")
    func duringPurge() throws {
        let counter = DocumentCounter(lastSequence: 3)
        func count(_ count: Int) throws -> Int {
            try counter.count(
                lastSequence: { () throws(CofferError) in 3 }, scan: { () throws(CofferError) in (count, 3) })
        }
        #expect(try count(2) == 2 && counter.known == 2)
        counter.willPurge()
        #expect(try count(2) == 2 && counter.known == nil)
        #expect(try count(1) == 1 && counter.known == nil)
        counter.note(documentDelta: -1, lastSequence: 3, hasPurged: true)
        #expect(counter.known == nil)
        #expect(try count(1) == 1 && counter.known == 1)
    }

    /// Purging gives no new sequence to tell a count by: the one before it was given for an instant after it.
    @Test("A document that was seen to be purged is not counted any more")
    func purges() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let count = 1_000
        try database.inTransaction {
            for number in 0..<count { try database.save(json: json(1), withID: "d\(number)") }
        }
        let (isCounted, isSeen) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isOver = Shared(false)
        try withBusyProcessors {
            try onThreads(2) { thread in
                defer {
                    isOver.value = true
                    isCounted.signal()
                }
                for number in 0..<count {
                    let document = database.document(withID: "d\(number)")
                    if thread == 0 {
                        isCounted.wait()
                        if isOver.value { return }
                        try document.purge()
                        isSeen.wait()
                        continue
                    }
                    // Known, so that it could be given again.
                    _ = try database.documentCount
                    isCounted.signal()
                    while try !isOver.value && document.currentRevisionID != nil {}
                    let found = try database.documentCount
                    isSeen.signal()
                    guard found == count - number - 1 else {
                        throw CofferError(.damaged, "\(found) after \(number + 1) purges")
                    }
                }
            }
        }
    }
}
