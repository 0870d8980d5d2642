import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferModel

@Suite("JSON objects") struct JSONObjectTests {
    @Test("Properties take literals, variables and nil")
    func properties() {
        var object = JSONObject()
        let (name, tags, scores, flag) = ("Robin", ["a", "b"], ["x": 1], true)
        let date = Date(timeIntervalSince1970: 1_700_000_000)
        object["name"] = name
        object["literal"] = "literal"
        object["age"] = 31
        object["tags"] = tags
        object["more"] = ["c", "d"]
        object["scores"] = scores
        object["flag"] = flag
        object["date"] = date
        object["data"] = Data([1, 2, 3])
        object["nothing"] = .null
        let absent: String? = nil
        object["absent"] = absent
        object["gone"] = 1
        object["gone"] = nil

        let age: Int? = object["age"]
        #expect(age == 31)
        let text: String? = object["age"]
        #expect(text == nil)
        let readDate: Date? = object["date"]
        #expect(readDate == date)
        let data: Data? = object["data"]
        #expect(data == Data([1, 2, 3]))
        let readTags: [String]? = object["tags"]
        #expect(readTags == tags)
        let readScores: [String: Int]? = object["scores"]
        #expect(readScores == scores)
        #expect(object["age"] as Double? == 31)
        #expect(object["nothing"] == .null)
        #expect(object["nothing"] != nil)
        #expect(object["gone"] == nil)
        #expect(
            object.keys == ["name", "literal", "age", "tags", "more", "scores", "flag", "date", "data", "nothing"])
    }

    @Test("Members of an object keep the order in which they were added")
    func order() {
        var object: JSONObject = ["b": 1, "a": 2, "c": 3]
        object["a"] = 4
        #expect(object.keys == ["b", "a", "c"])
        object["b"] = nil
        object["b"] = 5
        #expect(object.keys == ["a", "c", "b"])
        #expect(object.values == [4, 3, 5])
        #expect(object.map(\.key) == object.keys)
        #expect(object[1].key == "c")
        #expect(object.first?.value == 4)
        #expect(object.isEmpty == false)
        #expect(JSONObject().isEmpty)
    }

    @Test("Objects are equal whatever the order of their members")
    func equality() {
        let left: JSONObject = ["a": 1, "b": ["x": 1, "y": 2]]
        let right: JSONObject = ["b": ["y": 2, "x": 1], "a": 1]
        #expect(left == right)
        #expect(left.hashValue == right.hashValue)
        #expect(left != ["a": 1, "b": ["x": 1]])
        #expect(left != ["a": 1, "c": ["x": 1, "y": 2]])
        #expect(left != ["a": 1])
        #expect(["a": .null] as JSONObject != ["b": .null])
        // Two of one and none of the other must not cancel out.
        #expect((["a": 1, "b": 2] as JSONObject).hashValue != (["a": 2, "b": 1] as JSONObject).hashValue)
    }

    @Test("Two members of the same key are a programming error")
    func duplicates() async {
        await #expect(processExitsWith: .failure) { _ = ["a": 1, "a": 2] as JSONObject }
    }

    @Test("Small and large objects find, replace and remove their members", arguments: [1, 15, 16, 17, 18, 40, 300])
    func likeAModel(size: Int) throws {
        var random = SeededNumbers(seed: UInt64(size))
        var object = JSONObject()
        var model: [(key: String, value: JSONValue)] = []
        // Keys that collide under canonical equivalence are among them.
        let keys = (0..<size).flatMap { ["k\($0)", "\u{E9}\($0)", "e\u{301}\($0)"] }
        for step in 0..<(20 * size + 100) {
            let key = try #require(keys.randomElement(using: &random))
            let place = model.firstIndex { same($0.key, key) }
            #expect(object[key] == place.map { model[$0].value })
            if Int.random(in: 0..<10, using: &random) < 6 {
                object[key] = JSONValue(step)
                if let place { model[place].value = JSONValue(step) } else { model.append((key, JSONValue(step))) }
            } else {
                object[key] = nil
                if let place { model.remove(at: place) }
            }
            if step % 250 == 99 {
                // What was read from JSON is searched in another way.
                let body = try DocumentBody(object).body
                #expect(try DocumentBody(json: body.bytes).body == body)
                let reread = try JSONObject(body)
                #expect(reread == object)
                object = reread
                model = object.map { $0 }
            }
        }
        #expect(object.count == model.count)
        #expect(zip(object, model).allSatisfy { same($0.key, $1.key) && $0.value == $1.value })
    }

    @Test("Copies of an object are independent")
    func copies() {
        let object = JSONObject(uniqueKeysWithValues: (0..<40).map { ("k\($0)", JSONValue($0)) })
        var copy = object
        copy["k1"] = nil
        copy["k2"] = "changed"
        copy["new"] = 1
        #expect(object["k1"] == 1)
        #expect(object["k2"] == 2)
        #expect(object["new"] == nil)
        #expect(copy["k39"] == 39)
        #expect(copy["new"] == 1)
    }
}
