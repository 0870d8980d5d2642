import Foundation
import Testing

@testable import Coffer
@testable import CofferModel

@Suite("Rows of properties")
struct PropertyRowTests {
    let stores = TestStores()
    let database: Database

    init() throws {
        database = try stores.open { $0.durability = .relaxed }
        let people: [(String, JSONObject)] = [
            ("a", ["city": "Berlin", "age": 30, "name": "Ada"]), ("b", ["city": "Berlin", "age": 40, "name": "Bo"]),
            ("c", ["city": "Rome", "age": 1.5, "name": "Cy"]), ("d", ["age": "old", "name": "Di"]),
            ("e", ["city": nil, "age": nil, "name": "Ed"]), ("f", ["city": "Rome", "name": "Fa"]),
        ]
        for (id, person) in people { try database.save(person, withID: id) }
    }

    private func texts(_ rows: Rows<PropertyRow>) throws -> [String] {
        try rows.all.map { row in
            (row.values.map { $0.map(\.description) ?? "-" } + row.aggregates.map(\.description)).joined(separator: " ")
        }
    }

    @Test(
        "Rows of properties have what was asked for of each document, in the query's order", arguments: [false, true])
    func rows(isIndexed: Bool) throws {
        if isIndexed { try database.createIndex(named: "city", on: "city", "age") }
        var query = DocumentQuery(where: Property("city").exists)
        query.order = [.descending("age")]
        query.limit = 3
        let rows = try database.rows(["name", "age", "nothing"], of: query).all
        #expect(rows.map { $0["name"] } == ["Bo", "Ada", "Cy"])
        #expect(rows[2].values == ["Cy", 1.5, nil] && rows[2]["nothing"] == nil && rows[2]["city"] == nil)
        #expect(rows[0].aggregates.isEmpty)
        #expect(try database.rows(["_id"]).all.map { $0["_id"] } == ["a", "b", "c", "d", "e", "f"])
    }

    @Test("Rows of properties come each once where only different ones are asked for, and are counted then")
    func distinct() throws {
        var query = DocumentQuery()
        query.order = [.ascending("city")]
        #expect(try texts(database.distinctRows(["city"], of: query)) == ["-", "null", #""Berlin""#, #""Rome""#])
        (query.skip, query.limit) = (1, 2)
        #expect(try texts(database.distinctRows(["city"], of: query)) == ["null", #""Berlin""#])
        query.limit = 0
        #expect(try database.distinctRows(["city"], of: query).all.isEmpty)
        #expect(try database.distinctRows([]).all.count == 1)
        query.limit = -1
        #expect(thrown { try database.distinctRows(["city"], of: query).all }?.code == .invalidArgument)
        #expect(thrown { try database.groups(by: ["city"], of: query, .count).all }?.code == .invalidArgument)
    }

    @Test("Rows of properties say what comes of a group's documents", arguments: [false, true])
    func groups(isIndexed: Bool) throws {
        if isIndexed { try database.createIndex(named: "city", on: "city", "age") }
        let report = database.groups(
            by: ["city"], .count, .count("age"), .sum("age"), .min("age"), .max("name"), .average("age"))
        #expect(
            try texts(report) == [
                #"- 1 1 0 "old" "Di" null"#, #"null 1 0 0 null "Ed" null"#, #""Berlin" 2 2 70 30 "Bo" 35"#,
                #""Rome" 2 1 1.5 1.5 "Fa" 1.5"#,
            ])
        var query = DocumentQuery(where: Property("city") == "Berlin")
        #expect(try texts(database.groups(of: query, .count, .sum("age"))) == ["2 70"])
        query.predicate = Property("city") == "Paris"
        #expect(try texts(database.groups(of: query, .count, .sum("age"), .max("age"))) == ["0 0 null"])
        #expect(try database.groups(by: ["city"], of: query, .count).all.isEmpty)
        query.predicate = nil
        (query.skip, query.limit) = (2, 1)
        #expect(try texts(database.groups(by: ["city"], of: query, .count)) == [#""Berlin" 2"#])
    }

    @Test("Rows of properties sum integers exactly, and are of one moment inside a transaction")
    func exact() throws {
        let key = try stores.open("big")
        for (id, n) in [("a", Int64.max - 1), ("b", 1)] {
            try key.save(["n": .number(JSONNumber(n))] as JSONObject, withID: id)
        }
        #expect(try key.groups(.sum("n")).all.first?.aggregates == [.number(JSONNumber(Int64.max))])
        try key.save(["n": 1e308] as JSONObject, withID: "c")
        try key.save(["n": 1e308] as JSONObject, withID: "d")
        #expect(try key.groups(.sum("n"), .average("n")).all.first?.aggregates == [.null, .null])
        try key.inTransaction {
            try key.document(withID: "d").delete()
            #expect(try key.groups(.count).all.first?.aggregates == [3])
        }
    }

    @Test("Rows of properties come in a task as well") func task() async throws {
        try await database.createIndex(named: "city", on: "city")
        var names: [JSONValue?] = []
        for try await row in database.rows(["name"], of: DocumentQuery(where: Property("city") == "Rome")) {
            names.append(row["name"])
        }
        #expect(names == ["Cy", "Fa"])
    }
}
