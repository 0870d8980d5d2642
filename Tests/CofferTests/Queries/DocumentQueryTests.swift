import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferModel

@Suite("Queries for documents")
struct DocumentQueryTests {
    let stores = TestStores()

    private static let values: [JSONValue] = [
        .null, false, true, -1, 0, 1, 1.5, 2, 3, 1e305, -1e305, "", "a", "ab", "b", "\0", [], [1], ["a"], [:], ["x": 1],
    ]

    private func value(_ random: inout SeededRandom) -> JSONValue {
        Self.values[Int.random(in: 0..<Self.values.count, using: &random)]
    }

    private func document(_ random: inout SeededRandom) -> JSONObject {
        var document: JSONObject = [:]
        for name in ["a", "b"] where Bool.random(using: &random) { document[name] = value(&random) }
        if Bool.random(using: &random) { document["c"] = .object(["d": value(&random)]) }
        return document
    }

    private func predicate(_ random: inout SeededRandom, depth: Int = 2) -> DocumentPredicate {
        let path: PropertyPath = ["a", "b", "c.d", "c", "_id"][Int.random(in: 0..<5, using: &random)]
        let property = Property(path)
        let value = value(&random)
        switch Int.random(in: 0..<(depth > 0 ? 14 : 9), using: &random) {
        case 0: return property < value
        case 1: return property <= value
        case 2: return property > value
        case 3: return property >= value
        case 4: return property != value
        case 5: return property.isOne(of: [value, self.value(&random), self.value(&random)])
        case 6: return property.hasPrefix(["", "a", "\0", "ab"][Int.random(in: 0..<4, using: &random)])
        case 7: return property.exists
        case 8: return property == value
        case 9: return !predicate(&random, depth: depth - 1)
        case 10: return predicate(&random, depth: depth - 1) || predicate(&random, depth: depth - 1)
        default: return predicate(&random, depth: depth - 1) && predicate(&random, depth: depth - 1)
        }
    }

    private func order(_ random: inout SeededRandom) -> [DocumentQuery.Order] {
        (0..<Int.random(in: 0..<3, using: &random)).map { _ in
            let path: PropertyPath = ["a", "b", "c.d"][Int.random(in: 0..<3, using: &random)]
            return Bool.random(using: &random) ? .ascending(path) : .descending(path)
        }
    }

    /// What the query should find, by hand.
    private func expected(_ query: DocumentQuery, _ documents: [String: JSONObject]) throws -> [String] {
        func key(_ path: PropertyPath, _ id: String) throws -> [UInt8] {
            guard let value = path.value(in: documents[id] ?? [:], id: id) else { return [] }
            return try CollationKey(value).bytes
        }
        let found = try documents.keys.filter { id in
            query.predicate?.matches(documents[id] ?? [:], id: id) ?? true
        }.sorted { left, right in
            for order in query.order {
                let (first, second) = (try key(order.path, left), try key(order.path, right))
                if first != second { return first.lexicographicallyPrecedes(second) != order.isDescending }
            }
            return (left < right) != (query.order.last?.isDescending ?? false)
        }
        return Array(found.dropFirst(query.skip).prefix(query.limit ?? .max))
    }

    /// Each query with every set of indexes, while documents come and go: the same as by hand, whatever way they are found.
    @Test("find what they ask for, with any index and without", arguments: 0..<12)
    func random(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let database = try stores.open { $0.durability = .relaxed }
        var documents: [String: JSONObject] = [:]
        var (indexed, narrowed, sorted) = (0, 0, 0)
        let indexes: [(String, [PropertyPath])] = [
            ("a", ["a"]), ("ab", ["a", "b"]), ("d", ["c.d"]), ("bad", ["b", "a", "c.d"]), ("c", ["c"]),
        ]
        for round in 0..<4 {
            try database.inTransaction {
                for _ in 0..<120 {
                    let id = "d\(Int.random(in: 0..<200, using: &random))"
                    if documents[id] != nil && Bool.random(using: &random) {
                        try database.document(withID: id).delete()
                        documents[id] = nil
                    } else {
                        let new = document(&random)
                        let draft = try database.document(withID: id).newRevision()
                        draft.properties = new
                        try draft.save()
                        documents[id] = new
                    }
                }
            }
            if round > 0 {
                let (name, paths) = indexes[Int.random(in: 0..<indexes.count, using: &random)]
                try database.createIndex(named: name, on: paths)
            }
            for _ in 0..<60 {
                var query = DocumentQuery(where: Int.random(in: 0..<10, using: &random) == 0 ? nil : predicate(&random))
                query.order = order(&random)
                if Bool.random(using: &random) { query.limit = Int.random(in: 0..<30, using: &random) }
                if Bool.random(using: &random) { query.skip = Int.random(in: 0..<10, using: &random) }
                let hasOrder = !query.order.isEmpty
                if !hasOrder { (query.limit, query.skip) = (nil, 0) }
                let found = try database.documents(query).all
                let ids = found.map(\.documentID)
                let wanted = try expected(query, documents)
                let plan = try database.explain(query)
                #expect(hasOrder ? ids == wanted : ids.sorted() == wanted.sorted(), "\(plan)")
                for revision in found { #expect(try revision.properties == documents[revision.documentID]) }
                if plan.index != nil { indexed += 1 }
                if plan.narrowingCount > 0 { narrowed += 1 }
                if plan.index != nil && hasOrder && !plan.sortsInMemory { sorted += 1 }
            }
        }
        for index in try database.indexes {
            for isDescending in [false, true] {
                var query = DocumentQuery()
                query.order = index.paths.map { isDescending ? .descending($0) : .ascending($0) }
                #expect(try !database.explain(query).sortsInMemory)
                #expect(try database.documents(query).all.map(\.documentID) == expected(query, documents))
                sorted += 1
            }
        }
        #expect(indexed > 20 && narrowed > 10 && sorted > 0, "\(indexed) \(narrowed) \(sorted)")
    }

    @Test("are planned by what an index narrows, and by what it sorts")
    func plans() throws {
        let database = try stores.open { $0.durability = .relaxed }
        func plan(_ expression: String?, _ order: DocumentQuery.Order...) throws -> String {
            var query = DocumentQuery(where: try expression.map { try DocumentPredicate($0) })
            query.order = order
            return try database.explain(query).description
        }
        #expect(try plan("city = 'x'") == "reads all documents; checks each document")
        #expect(try plan(nil, .ascending("city")) == "reads all documents; sorts in memory")
        #expect(try database.createIndex(named: "place", on: "city", "age"))
        #expect(try !database.createIndex(named: "place", on: "city", "age"))
        #expect(try database.createIndex(named: "name", on: "name"))
        #expect(try database.indexes.map(\.name) == ["name", "place"])
        #expect(try database.indexes[1].paths == ["city", "age"])
        #expect(try plan("city = 'x'") == "reads the index place, narrowed by city")
        #expect(try plan("city = 'x' and age > 3") == "reads the index place, narrowed by city, age")
        #expect(try plan("age > 3 and age < 9 and city = 'x'") == "reads the index place, narrowed by city, age")
        #expect(try plan("age > 3") == "reads all documents; checks each document")
        #expect(try plan("city > 'x' and age > 3") == "reads the index place, narrowed by city; checks each document")
        #expect(try plan("city in ['x', 'y']") == "reads the index place, narrowed by city")
        #expect(try plan("city starts with 'x'") == "reads the index place, narrowed by city")
        #expect(try plan("city = 'x' or age = 3") == "reads all documents; checks each document")
        #expect(try plan("not city = 'x'") == "reads all documents; checks each document")
        #expect(try plan("city = 'x' and tag = 1") == "reads the index place, narrowed by city; checks each document")
        #expect(try plan("city = 'x'", .ascending("age")) == "reads the index place, narrowed by city")
        #expect(try plan("city = 'x'", .descending("age")) == "reads the index place, narrowed by city")
        #expect(
            try plan("city = 'x'", .ascending("name")) == "reads the index place, narrowed by city; sorts in memory")
        #expect(try plan(nil, .descending("name")) == "reads the index name")
        #expect(try plan(nil, .ascending("city"), .descending("age")) == "reads all documents; sorts in memory")
        #expect(try plan(nil, .ascending("city"), .ascending("age")) == "reads the index place")
        #expect(try database.deleteIndex(named: "place"))
        #expect(try !database.deleteIndex(named: "place"))
        #expect(try plan("city = 'x'") == "reads all documents; checks each document")
    }

    @Test("with bad input are a 400, and nothing is made")
    func badInput() throws {
        let database = try stores.open { $0.durability = .relaxed }
        #expect(thrown { try database.createIndex(named: "", on: "a") }?.status == 400)
        #expect(thrown { try database.createIndex(named: String(repeating: "x", count: 401), on: "a") }?.status == 400)
        #expect(thrown { try database.createIndex(named: "a", on: []) }?.status == 400)
        let long = PropertyPath(String(repeating: "x", count: 3_000))
        #expect(thrown { try database.createIndex(named: "a", on: long) }?.status == 400)
        #expect(try database.indexes == [])
        let query = DocumentQuery(where: Property("a") == Double.nan)
        #expect(thrown { try database.documents(query).all }?.code == .invalidJSON)
        #expect(thrown { try database.explain(query) }?.code == .invalidJSON)
        #expect(throws: CofferError.self) { try DocumentPredicate("a =") }
    }

    @Test("of a database that is open for reading only use what is up to date, and read all documents otherwise")
    func readOnly() throws {
        var database: Database? = try stores.open { $0.durability = .relaxed }
        try database?.save(json: Data(#"{"city":"x"}"#.utf8), withID: "a")
        try database?.createIndex(named: "place", on: "city")
        try database?.createIndex(named: "other", on: "age")
        let query = DocumentQuery(where: Property("city") == "x")
        #expect(try database?.documents(query).all.count == 1)
        try database?.close()
        database = nil
        let reading = try stores.open { ($0.create, $0.readOnly) = (false, true) }
        #expect(try reading.explain(query).index?.name == "place")
        #expect(try reading.documents(query).all.map(\.documentID) == ["a"])
        let stale = DocumentQuery(where: Property("age") == 3)
        #expect(try reading.explain(stale).index == nil)
        #expect(try reading.documents(stale).all.isEmpty)
        #expect(thrown { try reading.createIndex(named: "x", on: "y") }?.code == .readOnly)
        #expect(thrown { try reading.deleteIndex(named: "place") }?.code == .readOnly)
    }

    @Test("are written in Swift as in an expression")
    func swift() {
        let person: JSONObject = ["name": "Robin", "age": 31, "address": ["city": "Berlin"], "a.b": true, "gone": nil]
        let city = Property("address.city")
        let all: [(DocumentPredicate, Bool)] = [
            (city == "Berlin", true), (city != "Berlin", false), (Property("age") >= 31 && city == "Berlin", true),
            (Property("age") > 31 || city == "Berlin", true), (!(city == "Berlin"), false),
            (Property("age") < 32, true),
            (Property("age") <= 30, false), (city.hasPrefix("Ber"), true), (city.isOne(of: ["Rome", "Berlin"]), true),
            (city.exists, true), (Property("gone") == JSONValue.null, true), (Property("a\\.b") == true, true),
        ]
        for (predicate, expected) in all { #expect(predicate.matches(person, id: "p1") == expected) }
    }

    /// Blobs in documents are compared and indexed as what their JSON says.
    @Test("find documents by what is in them of blobs, and by long values")
    func blobsAndLongValues() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let document = MutableDocument(id: "blob", ["type": "image"])
        document["picture"] = Blob(contentType: "image/png", data: Data([1, 2, 3]))
        try database.saveDocument(document)
        let text = String(repeating: "long ", count: 2_000)
        try database.save(json: JSONValue.object(["text": .string(text)]).canonicalData(), withID: "long")
        try database.save(json: JSONValue.object(["text": .string(text + "x")]).canonicalData(), withID: "longer")
        for _ in 0..<2 {
            #expect(
                try database.documents(DocumentQuery(where: Property("text") == text)).all.map(\.documentID) == ["long"]
            )
            #expect(
                try database.documents(DocumentQuery(where: Property("text") > text)).all.map(\.documentID) == [
                    "longer"
                ])
            let pictures = DocumentQuery(where: Property("picture").exists)
            #expect(try database.documents(pictures).all.map(\.documentID) == ["blob"])
            try database.createIndex(named: "text", on: "text")
            try database.createIndex(named: "picture", on: "picture")
        }
        #expect(
            try database.documents(DocumentQuery(where: Property("type") == "image")).all.first?["picture"]?.blobValue?
                .content == Data([1, 2, 3]))
    }
}
