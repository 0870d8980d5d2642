import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("The feed of changes")
struct FeedTests {
    let stores = TestStores()

    private func feed(
        _ database: Database, since: Int = 0, _ change: (inout FeedOptions) -> Void = { _ in }
    ) throws -> [String] {
        var options = FeedOptions()
        change(&options)
        return try database.changes(since: since, options: options).all.map {
            "\($0.sequence) \($0.isDeletion ? "-" : "")\($0.documentID)"
        }
    }

    @Test("The feed of changes has each document once, where it was changed last")
    func order() throws {
        let database = try stores.open()
        #expect(try feed(database) == [])
        for id in ["a", "b", "c", "a"] {
            try database.save(json: json(1), withID: id, replacing: database.document(withID: id).currentRevisionID)
        }
        try database.document(withID: "b").delete()
        #expect(try feed(database) == ["3 c", "4 a", "5 -b"])
        #expect(try feed(database, since: 3) == ["4 a", "5 -b"])
        #expect(try feed(database, since: 5) == [])
        #expect(try feed(database, since: .max) == [])
        #expect(try feed(database, since: -7).count == 3)
        #expect(try feed(database) { $0.limit = 2 } == ["3 c", "4 a"])
        #expect(try feed(database) { $0.limit = 0 } == [])
        try database.save(json: json(1), withID: "b")
        #expect(try feed(database, since: 4) == ["6 b"])
        try database.saveLocalDocument([:], withID: "x")
        try database.storage.write { (writer) throws(CofferError) in
            _ = try Purge(of: .init("a")).removeDocument(in: writer)
        }
        #expect(try feed(database) == ["3 c", "6 b"])
    }

    @Test(
        "The feed of changes goes through many in batches, however many have been replaced",
        arguments: [256, 257, 6_000])
    func many(count: Int) throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.inTransaction {
            for number in 0..<count { try database.save(json: json(number), withID: "d\(number)") }
            try database.saveDocument(MutableDocument(id: "x"))
            let draft = try database.document(withID: "x").newRevision()
            for number in 0..<count {
                draft["n"] = .number(.init(Int64(number)))
                try draft.save()
            }
        }
        let expected = (0..<count).map { "\($0 + 1) d\($0)" } + ["\(2 * count + 1) x"]
        #expect(try feed(database) == expected)
        #expect(try feed(database, since: count - 1) == Array(expected.suffix(2)))
        #expect(try feed(database) { $0.limit = 257 } == Array(expected.prefix(257)))
    }

    /// The losing branch is changed last: the document must be there, and say which revision counts.
    @Test("The feed of changes has a document whose losing branch was changed, with its leaves where asked for")
    func branches() throws {
        let database = try stores.open()
        let first = try database.save(json: json(1), withID: "a")
        try database.save(json: json(9), withID: "b")
        let second = try database.save(json: json(2), withID: "a", replacing: first.revisionID)
        let third = try database.save(json: json(3), withID: "a", replacing: second.revisionID)
        let draft = try first.createRevision()
        draft["n"] = 4
        let branch = try draft.saveAllowingConflict()
        #expect(try feed(database) == ["2 b", "5 a"])
        #expect(try feed(database, since: 4) == ["5 a"])
        var options = FeedOptions()
        let one = try #require(try database.changes(since: 4, options: options).all.first)
        #expect(one.revision == third && one.leafRevisionIDs == [third.revisionID])
        options.includesAllLeaves = true
        let all = try #require(try database.changes(since: 4, options: options).all.first)
        #expect(all.revision == third && all.leafRevisionIDs == [third.revisionID, branch.revisionID])
        let end = try branch.deleteDocument()
        let ended = try #require(try database.changes(since: 5, options: options).all.first)
        #expect(ended.sequence == 6 && ended.revision == third)
        #expect(ended.leafRevisionIDs == [third.revisionID, end.revisionID])
        #expect(try feed(database) == ["2 b", "6 a"])
    }

    @Test("The feed of changes is filtered by a function with parameters, deletions too, and goes on behind the others")
    func filters() throws {
        let database = try stores.open { $0.durability = .relaxed }
        database.setFilter(named: "by type") { revision, parameters in
            if revision.isDeletion { return true }
            return try revision["type"] == parameters["type"]
        }
        try database.inTransaction {
            for number in 0..<600 {
                try database.saveDocument(
                    MutableDocument(id: "d\(number)", ["type": number % 300 == 299 ? "task" : "note"]))
            }
        }
        try database.document(withID: "d0").delete()
        func tasks(_ change: (inout FeedOptions) -> Void = { _ in }) throws -> [String] {
            try feed(database) {
                ($0.filter, $0.filterParameters) = ("by type", ["type": "task"])
                change(&$0)
            }
        }
        #expect(try tasks() == ["300 d299", "600 d599", "601 -d0"])
        #expect(try tasks { $0.limit = 1 } == ["300 d299"])
        #expect(try feed(database) { $0.filter = "by type" } == ["601 -d0"])

        var options = FeedOptions()
        (options.filter, options.filterParameters) = ("by type", ["type": "task"])
        var reader = try FeedReader(database, since: 0, options)
        var positions: [Int] = []
        while try !reader.nextBatch().isEmpty { positions.append(reader.position) }
        #expect(positions.last == 601 && reader.position == 601)
        options.filterParameters = ["type": "nothing"]
        try database.document(withID: "d0").setExpirationDate(nil)
        reader = try FeedReader(database, since: 0, options)
        #expect(try reader.nextBatch().map(\.documentID) == ["d0"])
        options.limit = 1
        reader = try FeedReader(database, since: 300, options)
        options.filterParameters = ["type": "task"]
        reader = try FeedReader(database, since: 0, options)
        _ = try reader.nextBatch()
        // No further than what was handed out, although more was read.
        #expect(reader.position == 300)
    }

    @Test("The feed of changes with an unknown or removed filter is a 400, and one that throws ends it")
    func badFilters() throws {
        struct Failure: Error {}
        let database = try stores.open()
        try database.save(json: json(1), withID: "a")
        #expect(thrown { try feed(database) { $0.filter = "f" } }?.code == .invalidArgument)
        database.setFilter(named: "f") { _, _ in throw Failure() }
        let error = thrown { try feed(database) { $0.filter = "f" } }
        #expect(error?.code == .rejected && error?.cause is Failure)
        database.setFilter(named: "f") { _, _ in throw CofferError(.documentNotFound) }
        #expect(thrown { try feed(database) { $0.filter = "f" } }?.code == .documentNotFound)
        database.setFilter(named: "f") { _, _ in false }
        #expect(try feed(database) { $0.filter = "f" } == [])
        #expect(database.filter(named: "f") != nil && database.filter(named: "F") == nil)
        database.setFilter(named: "f", nil)
        #expect(thrown { try feed(database) { $0.filter = "f" } }?.code == .invalidArgument)
    }

    @Test("The feed of changes catches up with what a slow watcher missed")
    func catchingUp() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        var iterator = database.changes.makeAsyncIterator()
        for number in 0..<1_100 { try await database.save(json: json(number), withID: "d\(number)") }
        guard case .missed(let sequence)? = await iterator.next() else { throw CofferError(.damaged, "not missed") }
        var ids: Set<String> = []
        for try await change in database.changes(since: sequence) { ids.insert(change.documentID) }
        #expect(ids.count == 1_100)
        try await database.close()
    }
}
