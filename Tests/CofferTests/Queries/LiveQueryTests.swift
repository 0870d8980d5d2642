import CofferSealing
import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("Live queries")
struct LiveQueryTests {
    let stores = TestStores()

    private func save(_ database: Database, _ id: String, _ city: String) throws {
        let draft = try database.document(withID: id).newRevision()
        draft["city"] = city
        try draft.save()
    }

    private func view(_ database: Database) throws -> DatabaseView {
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in
            if let city = try revision["city"] { emit(city) }
        }
        return view
    }

    @Test("Live queries give the first result at once, and another after each commit that touches their rows alone")
    func rows() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        try save(database, "a", "Berlin")
        var options = ViewOptions()
        (options.startKey, options.endKey) = ("B", "C")
        let live = Results(try view(database).liveRows(options)) { $0.documentID }
        #expect(await live.next() == ["a"])
        try save(database, "b", "Bern")
        #expect(await live.next() == ["a", "b"])
        // Others only.
        try save(database, "c", "Oslo")
        try save(database, "d", "Ankara")
        #expect(await live.hasNothing)
        // One of theirs that goes away, one that only changes, more than are remembered one by one.
        try save(database, "a", "Oslo")
        #expect(await live.next() == ["b"])
        try save(database, "b", "Bern")
        #expect(await live.next() == ["b"])
        try await database.inTransaction {
            for number in 0..<600 {
                let draft = try database.document(withID: "many \(number)").newRevision()
                draft["city"] = "Basel"
                try draft.save()
            }
        }
        #expect(await live.next()?.count == 601)
        try await database.document(withID: "b").purge()
        #expect(await live.next()?.count == 600)
        try await database.view(named: "v").deleteIndex()
        try save(database, "e", "Oslo")
        #expect(await live.next()?.count == 600)
        #expect(await live.hasNothing)
    }

    @Test("Live queries make one of what is committed while nobody waits, and see what others brought up to date")
    func coalescing() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        let view = try view(database)
        var live = view.liveRows().makeAsyncIterator()
        #expect(try await live.next()?.rows.all.count == 0)
        for number in 0..<50 {
            try save(database, "\(number)", "x")
            // Somebody else asks the view, so that the live query finds it up to date.
            if number % 3 == 0 { try await view.updateIndex() }
        }
        let result = try #require(try await live.next())
        #expect(try result.rows.all.count == 50)
        #expect(result.sequence == 50)
        // In a transaction that brings the view up to date itself.
        try await database.inTransaction {
            let draft = try database.document(withID: "inside").newRevision()
            draft["city"] = "y"
            try draft.save()
            try view.updateIndex()
        }
        #expect(try await live.next()?.rows.all.count == 51)
    }

    @Test("Live queries of documents follow their predicate, with an index and without")
    func documents() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        let query = DocumentQuery(where: Property("city") == "Bern")
        for hasIndex in [false, true] {
            if hasIndex { try await database.createIndex(named: "city", on: "city") }
            var live = database.liveDocuments(query).makeAsyncIterator()
            let count = try #require(try await live.next()?.rows.all.count)
            try save(database, "new \(hasIndex)", "Bern")
            #expect(try await live.next()?.rows.all.count == count + 1)
            try await database.document(withID: "new \(hasIndex)").delete()
            #expect(try await live.next()?.rows.all.count == count)
        }
    }

    @Test("Live queries end when the database is closed, and with their task, and throw what the query throws")
    func endings() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        let live = Results(try view(database).liveRows()) { $0.documentID }
        #expect(await live.next() == [])
        try await database.close()
        #expect(await live.next() == nil)
        #expect(await live.failure == nil)
        let again = try stores.open { $0.durability = .relaxed }
        var unknown = again.view(named: "unknown").liveRows().makeAsyncIterator()
        await #expect(throws: CofferError.self) { try await unknown.next() }
    }

    @Test("Live queries end with their task, by a 499")
    func cancelling() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        let live = Results(try view(database).liveRows()) { $0.documentID }
        #expect(await live.next() == [])
        live.cancel()
        #expect(await live.next() == nil)
        #expect(await live.failure?.status == 499)
    }

    /// Any number of them, whatever happens: none misses the last state.
    @Test("Live queries never miss the last state, whoever writes")
    func lastState() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        let view = try view(database)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    var options = ViewOptions()
                    (options.startKey, options.endKey) = ("c\(number)", "c\(number)")
                    for try await result in view.liveRows(options) {
                        if try result.rows.all.contains(where: { $0.documentID == "last \(number)" }) { return }
                    }
                    Issue.record("the database was closed before")
                }
            }
            for writer in 0..<2 {
                group.addTask {
                    for round in 0..<100 {
                        let draft = try database.document(withID: "d \(writer) \(round % 7)").newRevision()
                        draft["city"] = "c\((round + writer) % 5)"
                        try await draft.save()
                    }
                    for number in [writer, writer + 2] {
                        let draft = try database.document(withID: "last \(number)").newRevision()
                        draft["city"] = "c\(number)"
                        try await draft.save()
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

/// What a live query gives, taken by a task of its own.
private final class Results: Sendable {
    private let task: Task<CofferError?, Never>
    private let stream: AsyncStream<[String]>
    private let taken = Lock(0)
    private let given = Tally()

    init<Row>(_ query: LiveQuery<Row>, _ describe: @escaping @Sendable (Row) -> String) {
        let (stream, continuation) = AsyncStream<[String]>.makeStream()
        self.stream = stream
        task = Task { [given] in
            defer { continuation.finish() }
            do {
                for try await result in query {
                    let rows = try result.rows.all.map(describe)
                    given.count("result")
                    continuation.yield(rows)
                }
                return nil
            } catch {
                return error as? CofferError
            }
        }
    }

    /// Waits for the next result; nil after the last.
    func next() async -> [String]? {
        taken.withLock { $0 += 1 }
        return await stream.first { _ in true }
    }

    /// Whether nothing comes within some time in which everything has come so far.
    var hasNothing: Bool {
        get async {
            try? await Task.sleep(for: .milliseconds(300))
            return given["result"] == taken.withLock { $0 }
        }
    }

    /// How it ended; nil where that was no error.
    var failure: CofferError? { get async { await task.value } }

    func cancel() { task.cancel() }
}
