import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

private struct Stop: Error {}

@Suite("A transaction")
struct TransactionTests {
    let stores = TestStores()

    @Test("A transaction is saved whole, or not at all when it throws")
    func wholeOrNothing() throws {
        let database = try stores.open()
        let count = try database.inTransaction {
            for number in 0..<100 { try database.save(json: json(number), withID: "a\(number)") }
            return try database.documentCount
        }
        #expect(count == 100)
        #expect(throws: Stop.self) {
            try database.inTransaction {
                for number in 0..<100 { try database.save(json: json(number), withID: "b\(number)") }
                try database.document(withID: "a0").delete()
                throw Stop()
            }
        }
        #expect(try database.documentCount == 100)
        #expect(try database["a0"] != nil)
        try database.close()
        #expect(try stores.open().documentCount == 100)
    }

    @Test("A transaction sees what it has saved so far, and no other thread does before it ends")
    func isolation() throws {
        let database = try stores.open()
        try database.save(json: json(0), withID: "old")
        try database.inTransaction {
            try database.save(json: json(1), withID: "new")
            try database.document(withID: "old").delete()
            #expect(try database.documentIDs() == ["new"])
            #expect(try database["new"]?["n"] == 1)
            try onThreads(3) { _ throws in
                #expect(try database.documentIDs() == ["old"])
                #expect(try database["new"] == nil)
            }
        }
        try onThreads(3) { _ throws in #expect(try database.documentIDs() == ["new"]) }
    }

    /// Which of the nested transactions throw: each bit one level, from the outermost.
    @Test(
        "A transaction nests: each that throws takes back its own changes and those in it, and no others",
        arguments: 0..<16)
    func nesting(throwing: Int) throws {
        let database = try stores.open()
        var expected: Set<String> = []

        /// Saves before and after an inner one, and returns what its caller may expect to find.
        func nest(_ level: Int) throws -> Set<String> {
            guard level < 4 else { return [] }
            var saved: Set<String> = []
            do {
                saved = try database.inTransaction {
                    try database.save(json: json(level), withID: "before-\(level)")
                    let inner = try nest(level + 1)
                    try database.save(json: json(level), withID: "after-\(level)")
                    if throwing & 1 << level != 0 { throw Stop() }
                    return inner.union(["before-\(level)", "after-\(level)"])
                }
            } catch is Stop {}
            return saved
        }
        expected = try nest(0)
        #expect(Set(try database.documentIDs()) == expected)
        #expect(expected.count == (throwing == 0 ? 8 : 2 * throwing.trailingZeroBitCount))
        // Nothing is left open that would take a later save with it.
        try database.save(json: json(0), withID: "later")
        try database.close()
        #expect(Set(try stores.open().documentIDs()) == expected.union(["later"]))
    }

    @Test("A transaction goes on after a save that was refused, and loses nothing by it")
    func refusedInside() throws {
        let database = try stores.open()
        try database.inTransaction {
            let first = try database.save(json: json(1), withID: "a")
            #expect(thrown { try database.save(json: json(2), withID: "a") }?.code == .conflict)
            #expect(thrown { try database.save(json: Data("{".utf8), withID: "b") }?.code == .invalidJSON)
            #expect(thrown { try database.document(withID: "c").delete() }?.code == .documentNotFound)
            #expect(
                thrown { try database.inTransaction { try database.save(json: json(2), withID: "a") } }?.status == 409)
            try database.save(json: json(3), withID: "a", replacing: first.revisionID)
        }
        #expect(try database["a"]?["n"] == 3)
        #expect(try database.documentCount == 1)
    }

    /// A database that refuses the second half of every save of a document called `refused`.
    private func openWithRefusal() throws -> Database {
        try stores.open(key: nil).close()
        let connection = try DatabaseFile(path: stores.databaseFile().path, subject: "test")
            .connect(.readWrite, cacheByteCount: 1 << 20)
        try connection.execute(
            """
            CREATE INDEX refusal ON revisions (CASE WHEN id = 'refused' THEN abs(-9223372036854775808) END)
            """)
        try connection.close()
        return try stores.open(key: nil)
    }

    @Test("A transaction in which a change was left half done is not saved, even if its body goes on")
    func halfDone() throws {
        let database = try openWithRefusal()
        let error = thrown {
            try database.inTransaction {
                try database.save(json: json(1), withID: "a")
                #expect(thrown { try database.save(json: json(1), withID: "refused") }?.code == .damaged)
                #expect(thrown { try database.save(json: json(1), withID: "b") }?.code == .damaged)
            }
        }
        #expect(error?.code == .damaged)
        #expect(try database.documentIDs() == [])
        try database.save(json: json(1), withID: "c")
        #expect(try database.documentIDs() == ["c"])
    }

    /// The failure of an inner one, undone with it, once kept the outer one from being saved too.
    @Test("A transaction is saved though one in it was left half done and taken back")
    func halfDoneInside() throws {
        let database = try openWithRefusal()
        try database.inTransaction {
            try database.save(json: json(1), withID: "a")
            let error = thrown {
                try database.inTransaction {
                    try database.save(json: json(1), withID: "b")
                    _ = try? database.save(json: json(1), withID: "refused")
                }
            }
            #expect(error?.code == .damaged)
            #expect(try database.documentIDs() == ["a"])
            try database.save(json: json(1), withID: "c")
        }
        #expect(try database.documentIDs() == ["a", "c"])
    }

    @Test("A transaction refuses what would wait for it: closing and deleting the database are a 400")
    func waitingForItself() throws {
        let database = try stores.open()
        try database.inTransaction {
            #expect(thrown { try database.close() }?.code == .invalidArgument)
            #expect(thrown { try database.delete() }?.code == .invalidArgument)
            try database.inTransaction {
                #expect(thrown { try database.close() }?.code == .invalidArgument)
            }
            #expect(try stores.open() === database)
            try database.save(json: json(1), withID: "a")
        }
        #expect(try database.documentCount == 1)
    }

    /// They said of themselves that they were saved, and could not be saved again: a 404.
    @Test("A transaction that is rolled back leaves drafts and documents as before, so that they can be saved")
    func drafts() throws {
        let database = try stores.open()
        let old = try database.save(json: json(1), withID: "old")
        let new = try database.document(withID: "new").newRevision()
        let next = try old.createRevision()
        next.setAttachment(named: "a.txt", contentType: "text/plain", content: Data("content".utf8))
        let document = MutableDocument(id: "mutable")
        for isNested in [false, true] {
            let body: () throws -> Void = {
                for number in 0..<3 {
                    for draft in [new, next] {
                        draft["n"] = .number(JSONNumber(number))
                        try draft.save()
                    }
                    try database.saveDocument(document)
                }
                throw Stop()
            }
            #expect(throws: Stop.self) {
                if isNested { try database.inTransaction { try database.inTransaction(body) } }
                try database.inTransaction(body)
            }
            #expect(new.parentRevisionID == nil)
            #expect(next.parentRevisionID == old.revisionID)
            #expect(document.revisionID == nil)
        }
        #expect(try database.documentIDs() == ["old"])

        try database.inTransaction {
            try new.save()
            // Only what is rolled back is taken back.
            #expect(throws: Stop.self) {
                try database.inTransaction {
                    new["n"] = 7
                    try new.save()
                    throw Stop()
                }
            }
            try new.save()
            try next.save()
            try database.saveDocument(document)
        }
        #expect(try database["new"]?.currentRevision?.revisionID.generation == 2)
        #expect(try database["new"]?["n"] == 7)
        #expect(try database["old"]?["n"] == 2)
        let content = try database["old"]?.currentRevision?.attachment(named: "a.txt")?.content
        #expect(content == Data("content".utf8))
        #expect(document.revisionID?.generation == 1)
    }

    /// They were said to be missing from a damaged database.
    @Test("A transaction that is rolled back leaves its revisions to their holders, who find nothing more: a 404")
    func revisions() throws {
        let database = try stores.open()
        var saved: [SavedRevision] = []
        #expect(throws: Stop.self) {
            try database.inTransaction {
                let draft = try database.document(withID: "a").newRevision()
                for number in 0..<2 {
                    draft["n"] = .number(JSONNumber(number))
                    saved.append(try draft.save())
                }
                #expect(try saved[1].parentRevision == saved[0])
                #expect(try saved[1].history == saved)
                throw Stop()
            }
        }
        #expect(try saved[1]["n"] == 1)
        #expect(thrown { try saved[1].parentRevision }?.code == .revisionNotFound)
        #expect(thrown { try saved[1].history }?.code == .revisionNotFound)
        #expect(thrown { try saved[1].createRevision().save() }?.status == 404)
        let first = try database.save(json: json(3), withID: "a")
        #expect(first.sequence == saved[1].sequence + 1, "what was rolled back keeps its sequence")
        #expect(thrown { try saved[1].history }?.code == .revisionNotFound)
        #expect(try first.history == [first])
    }

    @Test("A transaction of one database may save in another, which then stays as its own transaction leaves it")
    func twoDatabases() throws {
        let (one, two) = (try stores.open("one"), try stores.open("two"))
        #expect(throws: Stop.self) {
            try one.inTransaction {
                try one.save(json: json(1), withID: "a")
                try two.save(json: json(1), withID: "b")
                throw Stop()
            }
        }
        #expect(try one.documentCount == 0)
        #expect(try two.documentCount == 1)
    }
}

/// A disk that fails or is full in the middle of a transaction makes SQLite roll the whole of it back by itself, also while
/// something is read. What its body saved after such an error was once saved on its own, the rest was not.
@Suite("A transaction that the disk cuts short")
struct CutShortTests {
    /// Reads and saves in turn until one fails, and then tries to go on. Returns which it was.
    static func fail(in database: Database) throws -> String? {
        for number in 0..<2_000 {
            if let error = thrown({ try database.save(json: json(number, byteCount: 3_900)) }) {
                return "save: \(error.code)"
            }
            for old in stride(from: number % 7, to: 500, by: 7) {
                if let error = thrown({ try database["old\(old)"] }) { return "read: \(error.code)" }
            }
        }
        return nil
    }

    /// Documents enough that the smallest cache holds few of them.
    static func fill(_ database: Database) throws {
        try database.inTransaction {
            for number in 0..<500 { try database.save(json: json(number, byteCount: 3_000), withID: "old\(number)") }
        }
        try database.close()
    }

    @Test("A transaction that a failing disk cuts short is undone whole, and the database must be opened anew")
    func failing() async {
        await #expect(processExitsWith: .success) {
            let stores = TestStores()
            try Self.fill(stores.open { $0.cacheByteCount = 0 })
            let database = try stores.open { $0.cacheByteCount = 0 }
            limitFiles(to: 300_000)
            let error = thrown {
                try database.inTransaction {
                    try database.save(json: json(0), withID: "before")
                    // Sealed pages that are only read take no room of those that wait to be written.
                    let expected = TestStores.isSQLCipher ? "read: ioFailed" : "save: ioFailed"
                    #expect(try Self.fail(in: database) == expected)
                    #expect(thrown { try database.save(json: json(0), withID: "after") }?.code == .ioFailed)
                    #expect(
                        thrown { try database.inTransaction { try database.save(json: json(0), withID: "inside") } }?
                            .code
                            == .ioFailed)
                    #expect(thrown { try database["before"] }?.code == .ioFailed)
                }
            }
            #expect(error?.code == .ioFailed)
            limitFiles(to: nil)
            #expect(thrown { try database.save(json: json(0), withID: "later") }?.code == .reopenRequired)
            #expect(thrown { try database.documentCount }?.code == .reopenRequired)
            #expect(thrown { try database.inTransaction {} }?.code == .reopenRequired)

            try database.close()
            let again = try stores.open()
            #expect(try again.documentCount == 500)
            try again.save(json: json(0), withID: "later")
            #expect(try again.documentCount == 501)
            try again.delete()
        }
    }

    @Test(
        "A transaction that a full disk cuts short is a 507, undone whole, and the database usable at once",
        .enabled(if: SmallDisk.isAvailable, "no small disk can be mounted here"),
        arguments: [0, 100_000, 600_000, 900_000], [false, true])
    func full(leaving byteCount: Int, isNested: Bool) throws {
        let disk = try SmallDisk(megabytes: 8)
        try Self.fill(disk.open { $0.cacheByteCount = 0 })
        let database = try disk.open { $0.cacheByteCount = 0 }
        try disk.fill(leaving: byteCount)
        let error = thrown {
            try database.inTransaction {
                try database.save(json: json(0), withID: "before")
                let failed = { () throws in #expect(try Self.fail(in: database)?.hasSuffix(": noSpace") == true) }
                if isNested {
                    #expect(thrown { try database.inTransaction(failed) }?.code == .noSpace)
                } else {
                    try failed()
                }
                #expect(thrown { try database.save(json: json(0), withID: "after") }?.code == .noSpace)
                #expect(thrown { try database.document(withID: "old1").delete() }?.code == .noSpace)
            }
        }
        #expect(error?.status == 507)
        #expect(try database.documentCount == 500)
        #expect(try database["old0"]?["n"] == 0)

        try disk.empty()
        _ = try database.inTransaction { try database.save(json: json(0), withID: "later") }
        try database.close()
        #expect(try disk.open().documentCount == 501)
    }
}
