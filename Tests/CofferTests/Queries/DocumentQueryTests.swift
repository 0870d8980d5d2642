import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferModel

@Suite("Queries for documents")
struct DocumentQueryTests {
    let stores = TestStores()

    private static let values: [JSONValue] = [
        .null, false, true, -1, 0, 1, 1.5, 2, 3, 1e305, -1e305, "", "a", "ab", "b", "\0", [], [1], ["a"], [:], ["x": 1],
    ]

    private func value(_ random: inout SeededNumbers) -> JSONValue {
        Self.values[Int.random(in: 0..<Self.values.count, using: &random)]
    }

    private func document(_ random: inout SeededNumbers) -> JSONObject {
        var document: JSONObject = [:]
        for name in ["a", "b"] where Bool.random(using: &random) { document[name] = value(&random) }
        if Bool.random(using: &random) { document["c"] = .object(["d": value(&random)]) }
        if Bool.random(using: &random) {
            document["t"] = .array((0..<Int.random(in: 0..<4, using: &random)).map { _ in value(&random) })
            document["i"] = .array(
                (0..<Int.random(in: 0..<4, using: &random)).map { _ in
                    var item: JSONObject = [:]
                    for name in ["x", "y"] where Bool.random(using: &random) { item[name] = value(&random) }
                    return .object(item)
                })
        }
        return document
    }

    private func predicate(_ random: inout SeededNumbers, depth: Int = 2) -> DocumentPredicate {
        let path: PropertyPath = ["a", "b", "c.d", "c", "_id"][Int.random(in: 0..<5, using: &random)]
        let property = Property(path)
        let value = value(&random)
        if Int.random(in: 0..<3, using: &random) == 0 { return ofAnotherKind(property, value, &random) }
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

    /// Texts, types, what is missing, and lists.
    private func ofAnotherKind(
        _ property: Property, _ value: JSONValue, _ random: inout SeededNumbers
    ) -> DocumentPredicate {
        let (other, text) = (self.value(&random), ["", "a", "b", "A", "ab"][Int.random(in: 0..<5, using: &random)])
        let differences: DocumentPredicate.TextDifferences = Bool.random(using: &random) ? .case : []
        let types = DocumentPredicate.ValueType.allCases
        switch Int.random(in: 0..<18, using: &random) {
        case 0: return property.contains(text, ignoring: differences)
        case 1: return property.hasSuffix(text, ignoring: differences)
        case 2: return property.hasPrefix(text, ignoring: differences)
        case 3: return property.isLike(["a%", "%b", "a_", "a", "_", "a%b", "%"][Int.random(in: 0..<7, using: &random)])
        case 4: return property.isMissing
        case 5: return property.is(types[Int.random(in: 0..<types.count, using: &random)])
        case 6: return property == nil
        case 7: return property != nil
        case 8: return property.isBetween(value, and: other)
        case 9: return property == value || property == other || property.isMissing
        case 10: return Property("t").hasElement(value)
        case 11: return Property("t").hasElement(value) && Property("t").hasElement(other)
        case 12: return Property("t").anyElement { $0 > value && $0 <= other }
        case 13: return Property("t").anyElement { $0 > value } && Property("t").anyElement { $0 <= other }
        case 14: return Property("t").everyElement { $0 >= value }
        case 15: return Property("i").anyElement { $0["x"] == value && $0["y"] == other }
        case 16: return Property("i").anyElement { $0["x"].isMissing || $0["x"] == value }
        default: return Property("t").hasElement(value) || Property("t").hasElement(other)
        }
    }

    private func order(_ random: inout SeededNumbers) -> [DocumentQuery.Order] {
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
        let matching = try documents.keys.filter { id in
            query.predicate?.matches(documents[id] ?? [:], id: id) ?? true
        }.map { id in (id: id, keys: try query.order.map { try key($0.path, id) }) }
        let found = matching.sorted { left, right in
            for (place, order) in query.order.enumerated() where left.keys[place] != right.keys[place] {
                return left.keys[place].lexicographicallyPrecedes(right.keys[place]) != order.isDescending
            }
            return (left.id < right.id) != (query.order.last?.isDescending ?? false)
        }
        return found.dropFirst(query.skip).prefix(query.limit ?? .max).map(\.id)
    }

    /// Each query with every set of indexes, while documents come and go: the same as by hand, whatever way they are found.
    @Test("Queries for documents find what they ask for, with any index and without", arguments: 0..<12)
    func random(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        let database = try stores.open { $0.durability = .relaxed }
        var documents: [String: JSONObject] = [:]
        var (indexed, narrowed, sorted) = (0, 0, 0)
        var listed = 0
        let indexes: [(String, [PropertyPath])] = [
            ("a", ["a"]), ("ab", ["a", "b"]), ("d", ["c.d"]), ("bad", ["b", "a", "c.d"]), ("c", ["c"]), ("t", ["t[]"]),
            ("ta", ["t[]", "a"]), ("at", ["a", "t[]"]),
            ("x", ["i[].x"]),
        ]
        for round in 0..<6 {
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
                let (name, paths) =
                    round == 1 ? ("t", ["t[]"]) : indexes[Int.random(in: 0..<indexes.count, using: &random)]
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
                if plan.index?.paths.contains(where: \.isOverElements) == true { listed += 1 }
                if plan.narrowingCount > 0 { narrowed += 1 }
                if plan.index != nil && hasOrder && !plan.sortsInMemory { sorted += 1 }
            }
        }
        for index in try database.indexes {
            for isDescending in [false, true] {
                var query = DocumentQuery()
                query.order = index.paths.map { isDescending ? .descending($0) : .ascending($0) }
                let isOverElements = index.paths.contains(where: \.isOverElements)
                #expect(try database.explain(query).sortsInMemory == isOverElements)
                if isOverElements { query.order = query.order.filter { !$0.path.isOverElements } }
                #expect(try database.documents(query).all.map(\.documentID) == expected(query, documents))
                sorted += 1
            }
        }
        #expect(indexed > 20 && narrowed > 10 && sorted > 0, "\(indexed) \(narrowed) \(sorted)")
        #expect(listed > 0, "an index over elements serves nothing")
    }

    @Test("Queries for documents are planned by what an index narrows, and by what it sorts")
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
        #expect(try plan("city = 'x' or city = 'y'") == "reads the index place, narrowed by city")
        #expect(try plan("city is missing and age is a number") == "reads the index place, narrowed by city, age")
        #expect(try plan("city exists") == "reads the index place, narrowed by city")
        #expect(try plan("city between 'x' and 'y'") == "reads the index place, narrowed by city")
        #expect(try plan("city begins with 'x'") == "reads the index place, narrowed by city")
        #expect(try plan("city like 'x%'") == "reads the index place, narrowed by city")
        #expect(try plan("city like 'x'") == "reads the index place, narrowed by city")
        #expect(try plan("city like 'x%y_'") == "reads the index place, narrowed by city; checks each document")
        for unserved in ["like '%x'", "contains 'x'", "ends with 'x'", "starts with 'x' ignoring case"] {
            #expect(try plan("city \(unserved)") == "reads all documents; checks each document")
        }
        let nothing = DocumentQuery(where: Property("city") == nil)
        #expect(try database.explain(nothing).description == "reads the index place, narrowed by city")
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

    /// It equals the path of an index over elements, whose entries stood for the property then.
    @Test("Queries for documents find nothing at a path with [], whether there is an index of that path or not")
    func bracketsElsewhere() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.save(json: Data(#"{"t":["a",[1]]}"#.utf8), withID: "list")
        try database.save(json: Data(#"{"t":[]}"#.utf8), withID: "empty")
        try database.save(json: Data(#"{"n":1}"#.utf8), withID: "none")
        let expressions = [
            "t[] = 'a'", "t[] in ['a', 'b']", "t[] starts with 'a'", "t[] is missing", "not t[] is missing",
            "t[] is a string", "any t (it[] = 1)", "n = 1 and t[] is missing",
        ]
        func found() throws -> [[String]] {
            try expressions.map { try database.documents(DocumentQuery(where: $0)).all.map(\.documentID).sorted() }
        }
        let withoutIndex = try found()
        #expect(withoutIndex[0] == [] && withoutIndex[3].count == 3)
        for path in ["t[]", "t[][]"] as [PropertyPath] { try database.createIndex(named: path.description, on: path) }
        try database.updateIndexes()
        #expect(try found() == withoutIndex)
    }

    @Test("Queries for documents are served by an index over a list's elements, which has one entry for each")
    func elements() throws {
        let database = try stores.open { $0.durability = .relaxed }
        func plan(_ expression: String, _ order: DocumentQuery.Order...) throws -> String {
            var query = try DocumentQuery(where: expression)
            query.order = order
            return try database.explain(query).description
        }
        #expect(try database.createIndex(named: "tags", on: "tags[]", "due"))
        #expect(try database.createIndex(named: "prices", on: "items[].price"))
        #expect(try plan("tags has 'x'") == "reads the index tags, narrowed by tags[]")
        #expect(try plan("tags has 'x'", .ascending("due")) == "reads the index tags, narrowed by tags[]")
        #expect(try plan("tags has 'x' and due < 3") == "reads the index tags, narrowed by tags[], due")
        #expect(try plan("tags has 'x' or tags has 'y'") == "reads the index tags, narrowed by tags[]")
        #expect(
            try plan("tags has 'x' and tags has 'y'")
                == "reads the index tags, narrowed by tags[]; checks each document")
        #expect(try plan("any tags (it starts with 'x')") == "reads the index tags, narrowed by tags[]")
        #expect(
            try plan("any tags (it > 'x' and it < 'y')", .ascending("due"))
                == "reads the index tags, narrowed by tags[]; sorts in memory")
        #expect(
            try plan("any items (it.price > 3 and it.sold = true)")
                == "reads the index prices, narrowed by items[].price; checks each document")
        #expect(try plan("any items (it.price between 3 and 5)") == "reads the index prices, narrowed by items[].price")
        for unserved in ["every tags (it = 'x')", "due < 3", "not tags has 'x'", "tags = [\"x\"]", "tags exists"] {
            #expect(try plan(unserved) == "reads all documents; checks each document", "\(unserved)")
        }
        #expect(
            try plan("due exists", .ascending("due")) == "reads all documents; checks each document; sorts in memory")

        for (id, tags) in [("a", ["x", "y", "x"]), ("b", ["y", "z"]), ("c", [])] {
            try database.save(["tags": tags.jsonValue, "due": 1] as JSONObject, withID: id)
        }
        try database.save(["tags": "x"] as JSONObject, withID: "none")
        let some = try DocumentQuery(where: "any tags (it >= 'x')")
        #expect(try database.documents(some).all.map(\.documentID).sorted() == ["a", "b"], "each once")
        #expect(try database.indexes.map(\.documentCount) == [0, 4])
        try database.document(withID: "a").delete()
        #expect(try database.documents(some).all.map(\.documentID) == ["b"])
        #expect(thrown { try database.createIndex(named: "two", on: "a[]", "b[]") }?.code == .invalidArgument)
        try database.close()
        let again = try stores.open()
        #expect(try again.indexes.map(\.paths) == [["items[].price"], ["tags[]", "due"]])
        #expect(try again.documents(some).all.map(\.documentID) == ["b"])
    }

    @Test("Queries for documents are a 400 where a literal or a pattern is none")
    func literals() throws {
        let database = try stores.open()
        try database.save(["age": 4, "name": "Zoë"] as JSONObject, withID: "a")
        #expect(try database.documents(DocumentQuery(where: "age > 3")).all.count == 1)
        #expect(thrown { try DocumentQuery(where: "age >") }?.code == .invalidArgument)
        let long = DocumentQuery(where: Property("name").isLike(String(repeating: "_", count: 1_001)))
        #expect(thrown { try database.documents(long).all }?.code == .invalidArgument)
        #expect(thrown { try database.explain(long) }?.code == .invalidArgument)
        let nested = DocumentQuery(where: Property("a").anyElement { $0.isLike(String(repeating: "_", count: 1_001)) })
        #expect(thrown { try database.explain(nested) }?.code == .invalidArgument)
        let zoe = DocumentQuery(where: Property("name").isLike("ZO%", ignoring: [.case, .accents]))
        #expect(try database.documents(zoe).all.count == 1)
    }

    @Test("Queries for documents with bad input are a 400, and nothing is made")
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

    @Test("Queries of a read-only database use indexes that are up to date, and read all documents otherwise")
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

    @Test("Queries for documents are written in Swift as in an expression")
    func swift() {
        let person: JSONObject = [
            "name": "Robin", "age": 31, "address": ["city": "Berlin"], "a.b": true, "gone": nil,
            "tags": ["x", 1],
        ]
        let city = Property("address.city")
        let all: [(DocumentPredicate, Bool)] = [
            (city == "Berlin", true), (city != "Berlin", false), (Property("age") >= 31 && city == "Berlin", true),
            (Property("age") > 31 || city == "Berlin", true), (!(city == "Berlin"), false),
            (Property("age") < 32, true),
            (Property("age") <= 30, false), (city.hasPrefix("Ber"), true), (city.isOne(of: ["Rome", "Berlin"]), true),
            (city.exists, true), (Property("gone") == JSONValue.null, true), (Property("a\\.b") == true, true),
            (Property("gone") == nil, true), (Property("nowhere") == nil, true), (city == nil, false),
            (city != nil, true),
            (Property("gone") != nil, false), (Property("nowhere").isMissing, true), (city.is(.string), true),
            (city.contains("erl"), true), (city.hasSuffix("LIN", ignoring: .case), true), (city.isLike("B%n"), true),
            (Property("age").isBetween(31, and: 40), true), (Property("address")["city"] == "Berlin", true),
            (Property("tags").hasElement("x"), true), (Property("tags").anyElement { $0.hasPrefix("y") }, false),
            (Property("tags").everyElement { $0 == "x" || $0 == 1 }, true), (!Property("tags").hasElement(1), false),
        ]
        for (predicate, expected) in all { #expect(predicate.matches(person, id: "p1") == expected) }
    }

    /// Blobs in documents are compared and indexed as what their JSON says.
    @Test("Queries for documents find documents by what is in them of blobs, and by long values")
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
