import Foundation
import Testing

@testable import Coffer

@Suite("Rows and snapshots as plain values")
struct PlainValueTests {
    let stores = TestStores()

    private func people() throws -> Database {
        let database = try stores.open("shop/people")
        for (id, city) in [("a", "Rome"), ("b", "Oslo"), ("c", "Rome")] {
            try database.saveDocument(MutableDocument(id: id, ["city": .string(city), "age": 31]))
        }
        return database
    }

    @Test("Rows are mapped, filtered, counted and begun without a task") func rows() throws {
        let rows = try people().allDocuments()
        let ids = try rows.map(\.documentID)
        #expect(ids == ["a", "b", "c"])
        let romans = try rows.filter { try $0["city"] == "Rome" }
        #expect(romans.map(\.documentID) == ["a", "c"])
        struct Stop: Error {}
        #expect(throws: Stop.self) { _ = try rows.map { (_) throws -> Int in throw Stop() } }
        #expect(throws: Stop.self) { _ = try rows.filter { (_) throws -> Bool in throw Stop() } }
    }

    @Test("A snapshot is a value whose properties are key paths") func snapshots() throws {
        let database = try people()
        let snapshots = try database.allDocuments().map { try $0.snapshot }
        #expect(snapshots.map(\.id) == ["a", "b", "c"])
        #expect(snapshots.map(\.properties["city"]) == ["Rome", "Oslo", "Rome"])
        let revision = try #require(try database["a"]?.currentRevision)
        let snapshot = snapshots[0]
        #expect(snapshot == (try revision.snapshot))
        #expect(snapshot.revisionID == revision.revisionID && snapshot.sequence == revision.sequence)
        #expect(!snapshot.isDeletion && snapshot["city"] == "Rome" && snapshot["none"] == nil)
    }

}
