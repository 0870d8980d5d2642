import Foundation
import Testing

@testable import Coffer

@Suite("Values of one's own")
struct CodableTests {
    struct Person: Codable, Equatable, Sendable {
        var name: String
        var age: Int
        var born: Date?
        var key: Data?
        var home: URL?
        var id = UUID()
        var large = UInt64.max
        var scores: [String: Double] = [:]
    }

    let stores = TestStores()
    let database: Database

    init() throws { database = try stores.open() }

    @Test("Codable values come back as they were saved, from this process's memory and from the disk")
    func roundTrip() throws {
        let person = Person(
            name: "Robin", age: 31, born: Date(timeIntervalSince1970: 1_234_567_890.123456), key: Data([0, 1, 255]),
            home: URL(string: "https://example.org/a?b"), scores: ["a": 0.1, "b": 1e300])
        let saved = try database.save(person, withID: "person-1")
        #expect(saved.revisionID.generation == 1)
        #expect(try saved.decode(Person.self) == person)
        try database.close()
        let again = try stores.open()
        #expect(try again.document(withID: "person-1").decode(Person.self) == person)
        let age: Int? = try again["person-1"]?.currentRevision?["age"]
        #expect(age == 31)
    }

    @Test("Codable values are the same revision as the JSON that says the same")
    func sameAsJSON() throws {
        struct Point: Codable { var y = 2.0, x = -1 }
        let value = try database.save(Point(), withID: "value")
        let json = try database.save(json: Data(#"{"x":-1,"y":2}"#.utf8), withID: "json")
        #expect(value.revisionID == json.revisionID)
        #expect(try value.json == json.json)
    }

    @Test("Members of several kinds in a literal are saved as the JSON that says the same, by either form")
    func literal() async throws {
        let count = 2
        let saved = try await database.save(["t": "x", "n": JSONValue(count), "a": [1, nil]])
        try compareLiterals(with: saved)
    }

    private func compareLiterals(with other: SavedRevision) throws {
        let json = try database.save(json: Data(#"{"a":[1,null],"n":2,"t":"x"}"#.utf8), withID: "json")
        #expect(other.revisionID == json.revisionID)
        let blob = Blob(data: Data("b".utf8))
        let next = try database.save(
            ["_id": "json", "_rev": .string("\(json.revisionID)"), "n": 3, "blob": .blob(blob)])
        #expect(next.document.documentID == "json")
        #expect(try next.blob(forKey: "blob")?.content == Data("b".utf8))
        #expect(thrown { try database.save(["n": 1, "t": "x"], withID: "json") }?.status == 409)
        #expect(thrown { try database.save(["n": 1, "_own": "x"], withID: "own") }?.code == .invalidJSON)
        let infinite: JSONObject = ["n": .number(JSONNumber(Double.infinity))]
        let refusal = thrown { try database.save(infinite, withID: "own") }
        #expect(refusal?.code == .invalidJSON && refusal?.subject == "document own")
        #expect(try database["own"] == nil)
    }

    @Test("Codable values replace the revision that is named, and no other")
    func replacing() throws {
        let first = try database.save(Person(name: "a", age: 1), withID: "p")
        #expect(thrown { try database.save(Person(name: "b", age: 2), withID: "p") }?.code == .conflict)
        try database.save(Person(name: "b", age: 2), withID: "p", replacing: first.revisionID)
        #expect(
            thrown { try database.save(Person(name: "c", age: 3), withID: "p", replacing: first.revisionID) }?.status
                == 409)
        #expect(try database.document(withID: "p").decode(Person.self).name == "b")
    }

    @Test("Codable values are updated in one transaction")
    func update() throws {
        try database.save(Person(name: "a", age: 1), withID: "p")
        try database.update("p", as: Person.self) { $0.age += 1 }
        #expect(try database.document(withID: "p").decode(Person.self).age == 2)
        #expect(thrown { try database.update("none", as: Person.self) { $0.age += 1 } }?.code == .documentNotFound)
        #expect(throws: CancellationError.self) {
            try database.update("p", as: Person.self) { (person: inout Person) in
                person.age = 99
                throw CancellationError()
            }
        }
        #expect(try database.document(withID: "p").decode(Person.self).age == 2)
    }

    @Test("Codable values that are no objects, or hold no numbers, are a 400; what does not fit is the decoder's error")
    func bad() throws {
        #expect(thrown { try database.save(42, withID: "p") }?.code == .invalidJSON)
        #expect(thrown { try database.save([1, 2], withID: "p") }?.code == .invalidJSON)
        #expect(thrown { try database.save(["x": Double.nan], withID: "p") }?.code == .invalidJSON)
        #expect(thrown { try database.save(["_x": 1], withID: "p") }?.code == .invalidJSON)
        #expect(try database["p"] == nil)
        try database.save(["name": "only"], withID: "p")
        #expect(throws: DecodingError.self) { try database.document(withID: "p").decode(Person.self) }
        #expect(thrown { try database.document(withID: "q").decode(Person.self) }?.code == .documentNotFound)
        #expect(try database.document(withID: "p").decode([String: String].self) == ["name": "only"])
    }
}
