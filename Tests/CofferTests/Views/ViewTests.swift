import CofferSealing
import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferModel

@Suite("Views")
struct ViewTests {
    let stores = TestStores()

    /// People with a city, a name and an age; each fifth lives nowhere.
    private func fill(_ database: Database, _ count: Int) throws {
        let cities = ["Berlin", "Ankara", "Rome", "Oslo"]
        try database.inTransaction {
            for number in 0..<count {
                var person: JSONObject = ["name": "n\(number)", "age": .number(JSONNumber(number % 70))]
                if number % 5 != 4 { person["city"] = .string(cities[number % 4]) }
                try database.save(json: JSONValue.object(person).canonicalData(), withID: "p\(1_000 + number)")
            }
        }
    }

    private func byCity(_ database: Database, version: String = "1", reduction: Reduction? = nil) throws -> DatabaseView
    {
        let view = database.view(named: "by city")
        try view.setMap(version: version, reduction: reduction) { revision, emit in
            guard let city = try revision["city"] else { return }
            emit([city, try revision["age"] ?? .null] as [JSONValue], try revision["name"] ?? .null)
        }
        return view
    }

    /// What the rows should be, found by hand.
    private func expected(_ database: Database) throws -> [(key: JSONValue, value: JSONValue, id: String)] {
        try database.allDocuments().all.compactMap { revision -> (JSONValue, JSONValue, String)? in
            guard let city = try revision["city"] else { return nil }
            return ([city, try revision["age"] ?? .null], try revision["name"] ?? .null, revision.document.documentID)
        }.map { (key: $0.0, value: $0.1, id: $0.2) }.sorted { left, right in
            let (first, second) = (
                (try? CollationKey(left.key).bytes) ?? [], (try? CollationKey(right.key).bytes) ?? []
            )
            return first == second
                ? left.id.utf8.lexicographicallyPrecedes(right.id.utf8) : first.lexicographicallyPrecedes(second)
        }
    }

    private func expectRight(_ view: DatabaseView) throws {
        let (rows, expected) = (try view.rows().all, try expected(view.database))
        #expect(rows.map(\.documentID) == expected.map(\.id))
        #expect(rows.map(\.key) == expected.map(\.key))
        #expect(rows.map(\.value) == expected.map(\.value))
        #expect(try view.totalRows == expected.count)
        #expect(try !view.isStale)
        var backwards = ViewOptions()
        backwards.isDescending = true
        #expect(try view.rows(backwards).all.map(\.documentID) == expected.map(\.id).reversed())
    }

    /// More than a batch, and less.
    @Test("Views have what their function makes of each document, in order", arguments: [0, 1, 255, 256, 257, 1_000])
    func rows(count: Int) throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, count)
        let view = try byCity(database)
        #expect(try view.isStale)
        #expect(try view.totalRows == 0)
        #expect(try view.updateIndex() == count)
        #expect(try view.updateIndex() == 0)
        try expectRight(view)
        #expect(try view.lastSequenceIndexed == count)
        #expect(try database.viewNames == ["by city"])
    }

    @Test("Views follow what is saved, changed, deleted, undeleted, purged and expires")
    func incremental() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 300)
        let view = try byCity(database)
        try expectRight(view)
        let draft = try database.document(withID: "p1000").newRevision()
        draft["city"] = "Zagreb"
        try draft.save()
        #expect(try view.isStale)
        #expect(try view.updateIndex() == 1)
        try expectRight(view)
        try database.document(withID: "p1001").delete()
        try expectRight(view)
        try database.save(json: Data(#"{"city":"Back","age":1}"#.utf8), withID: "p1001")
        try expectRight(view)
        try database.document(withID: "p1002").purge()
        #expect(try !view.isStale)
        try expectRight(view)
        try database.save(json: Data(#"{"city":"New","age":1}"#.utf8), withID: "p1002")
        try expectRight(view)
        // The last one, so that no revision tells of it.
        try database.document(withID: "p1002").purge()
        try expectRight(view)
        try database.document(withID: "p1003").setExpirationDate(Date(timeIntervalSinceNow: -1))
        while try database["p1003"] != nil { Thread.sleep(forTimeInterval: 0.01) }
        try expectRight(view)
        try database.save(json: Data(#"{"city":"Later","age":1}"#.utf8), withID: "p2000")
        #expect(try view.updateIndex() == 1)
        try expectRight(view)
    }

    @Test("Views have the winning revision of a document in conflict, whatever makes it win")
    func conflicts() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 10)
        let view = try byCity(database)
        try view.updateIndex()
        let base = try #require(try database.document(withID: "p1000").currentRevision)
        let (left, right) = (try base.createRevision(), try base.createRevision())
        left["city"] = "Left"
        right["city"] = "Right"
        let (savedLeft, savedRight) = (try left.save(), try right.saveAllowingConflict())
        try expectRight(view)
        let document = database.document(withID: "p1000")
        let winner = try #require(try document.currentRevision)
        // Then the other one wins, which came earlier or later.
        try winner.deleteDocument()
        #expect(try document.currentRevision != nil)
        try expectRight(view)
        let other = winner.revisionID == savedLeft.revisionID ? savedRight : savedLeft
        #expect(try document.currentRevision?.revisionID == other.revisionID)
        try other.deleteDocument()
        try expectRight(view)
        // Purging the tombstones brings nothing back; purging leaves brings ancestors back, without a new sequence.
        let second = database.document(withID: "p1001")
        let draft = try second.newRevision()
        draft["city"] = "Purged"
        let purged = try draft.save()
        try expectRight(view)
        try second.purge([purged.revisionID])
        #expect(try database["p1001"] == nil || second.currentRevision?.revisionID != purged.revisionID)
        try expectRight(view)
    }

    @Test("Views are made anew by another version of their function, and by no other name")
    func versions() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 50)
        let view = try byCity(database)
        try view.updateIndex()
        #expect(try !view.setMap(version: "1") { _, emit in emit("other") })
        #expect(try view.rows().all.count == 40)
        #expect(try view.setMap(version: "2") { _, emit in emit("other") })
        #expect(try view.rows().all.map(\.key) == [JSONValue](repeating: "other", count: 50))
        #expect(try view.totalRows == 50)
        // The type of documents is part of what it is.
        #expect(try view.setMap(version: "2", documentType: "person") { _, emit in emit("typed") })
        #expect(try view.rows().all.isEmpty)
        try database.save(json: Data(#"{"type":"person"}"#.utf8), withID: "typed")
        try database.save(json: Data(#"{"type":["person"]}"#.utf8), withID: "not typed")
        #expect(try view.rows().all.map(\.documentID) == ["typed"])
        #expect(try view.deleteIndex())
        #expect(try !view.deleteIndex())
        #expect(try database.viewNames == [])
        #expect(try view.rows().all.count == 1)
        try view.delete()
        #expect(!view.hasMap)
        #expect(thrown { try view.rows().all }?.status == 400)
    }

    @Test("Views without a function are a 400, but for what is asked of the rows that are there")
    func withoutFunction() throws {
        var database: Database? = try stores.open { $0.durability = .relaxed }
        try fill(try #require(database), 20)
        try byCity(try #require(database)).updateIndex()
        try database?.close()
        database = nil
        let again = try stores.open { $0.durability = .relaxed }
        let view = again.view(named: "by city")
        for body in [
            { _ = try view.rows().all }, { try view.updateIndex() }, { _ = try view.isStale },
            { _ = try view.reducedRows().all }, { _ = try view.reduce() },
        ] as [() throws -> Void] {
            #expect(thrown(body)?.code == .invalidArgument)
        }
        var options = ViewOptions()
        options.update = .never
        #expect(try view.rows(options).all.count == 16)
        #expect(try view.totalRows == 16)
        #expect(try byCity(again).updateIndex() == 0)
        #expect(thrown { try byCity(again).reduce() }?.code == .invalidArgument)
        #expect(thrown { try again.view(named: "").setMap(version: "1") { _, _ in } }?.status == 400)
        let long = String(repeating: "x", count: 401)
        #expect(thrown { try again.view(named: long).setMap(version: "1") { _, _ in } }?.status == 400)
        #expect(thrown { try view.setMap(version: String(repeating: "x", count: 2_000)) { _, _ in } }?.status == 400)
    }

    struct Failure: Error {}

    @Test("Views leave out documents for which the function fails, and say which")
    func failures() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in
            emit("before")
            if let kind: String = try revision["kind"] {
                if kind == "throws" { throw Failure() }
                if kind == "nan" { emit(Double.nan) }
                if kind == "inf" { emit("x", Double.infinity) }
            }
            emit("after")
        }
        for (id, kind) in [("a", "throws"), ("b", "fine"), ("c", "nan"), ("d", "inf"), ("e", "fine")] {
            try database.save(json: Data(#"{"kind":"\#(kind)"}"#.utf8), withID: id)
        }
        #expect(try view.rows().all.map(\.documentID) == ["b", "e", "b", "e"])
        #expect(try view.totalRows == 4)
        #expect(try view.failedDocumentIDs() == ["a", "c", "d"])
        #expect(try view.failedDocumentIDs(limit: 1) == ["a"])
        // Once it is mended it has rows like others, and one that breaks loses them.
        let draft = try database.document(withID: "a").newRevision()
        draft["kind"] = "fine"
        try draft.save()
        let broken = try database.document(withID: "b").newRevision()
        broken["kind"] = "throws"
        try broken.save()
        #expect(try view.rows().all.map(\.documentID) == ["a", "e", "a", "e"])
        #expect(try view.failedDocumentIDs() == ["b", "c", "d"])
        try database.document(withID: "c").purge()
        #expect(try view.failedDocumentIDs() == ["b", "d"])
        #expect(try view.totalRows == 4)
    }

    @Test("Views can't write in their function, and change nothing when they try")
    func writing() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.save(json: Data("{}".utf8), withID: "a")
        let view = database.view(named: "v")
        let errors = Errors()
        try view.setMap(version: "1") { revision, emit in
            for body in [
                { try database.save(json: Data("{}".utf8), withID: "new") }, { try revision.deleteDocument() },
                { try database.inTransaction { _ = try database.document(withID: "a").purge() } },
            ] as [() throws -> Void] {
                do { try body() } catch { errors.append(error) }
            }
            // Reading is fine.
            emit(try database.document(withID: "a").currentRevision?.documentID ?? "")
        }
        #expect(try view.rows().all.map(\.key) == ["a"])
        #expect(errors.all.count == 3)
        #expect(errors.all.allSatisfy { ($0 as? CofferError)?.code == .invalidArgument })
        #expect(try database.documentCount == 1)
        // And after it everything goes on.
        try database.save(json: Data("{}".utf8), withID: "new")
        #expect(try view.totalRows == 1)
    }

    final class Errors: Sendable {
        private let state = Lock<[any Error]>([])
        var all: [any Error] { state.withLock { $0 } }
        func append(_ error: any Error) { state.withLock { $0.append(error) } }
    }

    @Test("Views inside a transaction see what it saved, and are as before when it is rolled back")
    func transactions() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 20)
        let view = try byCity(database)
        for hasIndex in [false, true] {
            if hasIndex { try view.updateIndex() }
            #expect(throws: Failure.self) {
                try database.inTransaction {
                    try database.save(json: Data(#"{"city":"Inside","age":1}"#.utf8), withID: "inside")
                    #expect(try view.rows().all.contains { $0.documentID == "inside" })
                    throw Failure()
                }
            }
            #expect(try view.rows().all.count == 16)
            try expectRight(view)
        }
    }

    @Test("Views are brought up to date once by two threads that ask at the same time")
    func twoThreads() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 3_000)
        let view = database.view(named: "v")
        let calls = Lock(0)
        try view.setMap(version: "1") { revision, emit in
            calls.withLock { $0 += 1 }
            emit(revision.documentID)
        }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<4 { group.addTask { try await view.rows().reduce(into: 0) { count, _ in count += 1 } } }
            for try await count in group { #expect(count == 3_000) }
        }
        #expect(calls.withLock { $0 } == 3_000)
    }

    @Test("Views update when they are asked to: before, never, after")
    func updateModes() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 20)
        let view = try byCity(database)
        var options = ViewOptions()
        options.update = .never
        #expect(try view.rows(options).all.isEmpty)
        #expect(try view.isStale)
        options.update = .after
        _ = try view.rows(options).all
        while try view.isStale { Thread.sleep(forTimeInterval: 0.005) }
        options.update = .never
        #expect(try view.rows(options).all.count == 16)
    }

    @Test("Views in a database open for reading only are read as far as they are up to date")
    func readOnly() throws {
        var database: Database? = try stores.open { $0.durability = .relaxed }
        try fill(try #require(database), 20)
        try byCity(try #require(database)).updateIndex()
        try database?.close()
        database = nil
        let reading = try stores.open {
            $0.create = false
            $0.readOnly = true
        }
        #expect(try byCity(reading).rows().all.count == 16)
        #expect(thrown { try byCity(reading, version: "2").rows().all }?.code == .readOnly)
        var options = ViewOptions()
        options.update = .never
        #expect(try reading.view(named: "by city").rows(options).all.count == 16)
    }

    @Test("Views give rows with their documents, sequences and values of yours")
    func rowParts() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.save(json: Data(#"{"a":{"x":1,"y":["z"]}}"#.utf8), withID: "one")
        let saved = try database.save(json: Data(#"{"b":2}"#.utf8), withID: "two")
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in
            emit(revision.documentID, JSONValue.object(try revision.properties))
        }
        struct A: Codable, Equatable {
            struct Inner: Codable, Equatable { var x: Int, y: [String] }
            var a: Inner
        }
        let rows = try view.rows().all
        #expect(try rows[0].decodeValue(A.self) == A(a: .init(x: 1, y: ["z"])))
        #expect(throws: DecodingError.self) { try rows[1].decodeValue(A.self) }
        #expect(rows[1].sequence == saved.sequence)
        #expect(rows[1].revision == nil)
        #expect(try rows[1].document.currentRevision == saved)
        var options = ViewOptions()
        options.loadsDocuments = true
        #expect(
            try view.rows(options).all.map(\.revision?.revisionID) == [
                rows[0].document.currentRevision?.revisionID, saved.revisionID,
            ])
        // Design documents are no documents of the app's.
        try database.save(json: Data("{}".utf8), withID: "_design/x")
        #expect(try view.rows().all.count == 2)
    }
}

extension JSONValue {
    /// The value as canonical JSON.
    func canonicalData() throws -> Data { Data(try canonicalJSON()) }
}
