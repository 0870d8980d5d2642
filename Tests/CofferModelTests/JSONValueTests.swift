import CofferSealing
import Foundation
import Testing

@testable import CofferModel

@Suite("JSON values") struct JSONValueTests {
    @Test("Literals are JSON values")
    func literals() {
        let value: JSONValue = [
            "a": nil, "b": true, "c": 42, "d": 0.5, "e": "text", "f": [1, "x", nil], "g": ["h": -1],
        ]
        let object: JSONObject = [
            "a": .null, "b": .bool(true), "c": .number(JSONNumber(Int64(42))), "d": .number(JSONNumber(0.5)),
            "e": .string("text"), "f": .array([.number(1), .string("x"), .null]), "g": .object(["h": -1]),
        ]
        #expect(value == .object(object))
        #expect(value.objectValue?.keys == ["a", "b", "c", "d", "e", "f", "g"])
        let text: JSONValue = "\(1 + 1) apples"
        #expect(text == .string("2 apples"))
    }

    @Test("Accessors of a JSON value answer for their own type and for no other")
    func accessors() {
        let values: [JSONValue] = [nil, true, 1, "a", [1], ["a": 1]]
        #expect(values.map(\.isNull) == [true, false, false, false, false, false])
        #expect(values.map(\.boolValue) == [nil, true, nil, nil, nil, nil])
        #expect(values.map(\.numberValue) == [nil, nil, 1, nil, nil, nil])
        #expect(values.map(\.stringValue) == [nil, nil, nil, "a", nil, nil])
        #expect(values.map(\.arrayValue) == [nil, nil, nil, nil, [1], nil])
        #expect(values.map(\.objectValue) == [nil, nil, nil, nil, nil, ["a": 1]])
    }

    @Test("JSON numbers are had as integers where they are some, and as doubles")
    func numberAccessors() {
        let values: [JSONValue] = [3, 2.5, 1e300, "3", true, nil]
        #expect(values.map(\.intValue) == [3, nil, nil, nil, nil, nil])
        #expect(values.map(\.doubleValue) == [3, 2.5, 1e300, nil, nil, nil])
    }

    @Test("A value deep in JSON is reached without question marks")
    func nestedSubscripts() {
        let object: JSONObject = ["a": ["b": [7, ["c": "x"]]]]
        #expect(object["a"]["b"][0] == 7)
        #expect(object["a"]["b"][1]["c"]?.stringValue == "x")
        #expect(object["a"]["b"][2] == nil && object["a"]["b"][-1] == nil)
        #expect(object["none"]["b"][0] == nil && object["a"][0] == nil)
    }

    @Test("JSON values sort as they do in a view")
    func order() {
        let values: [JSONValue] = [nil, false, true, -1, 0, 1.5, 2, 10, "", "B", "a", "ä", [], [1], [1, 2], [2], [:]]
        #expect(values.reversed().sorted() == values)
        for (left, a) in values.enumerated() {
            for (right, b) in values.enumerated() { #expect((a < b) == (left < right)) }
        }
        let infinite = JSONValue.number(JSONNumber(Double.infinity))
        #expect(infinite < nil && !(JSONValue.null < infinite))
    }

    @Test("JSON values of different types are never equal")
    func inequality() {
        let values: [JSONValue] = [nil, false, 0, "", [], [:], true, 1, "1", [1], ["1": 1], ["1": nil], [nil]]
        for (left, a) in values.enumerated() {
            for (right, b) in values.enumerated() { #expect((a == b) == (left == right)) }
        }
        #expect(Set(values).count == values.count)
    }

    @Test("Strings that only look alike are two, as values and as keys")
    func composition() {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect(composed == decomposed)
        #expect(JSONValue.string(composed) != .string(decomposed))
        #expect(Set<JSONValue>([.string(composed), .string(decomposed)]).count == 2)
        var object: JSONObject = [composed: 1, decomposed: 2]
        #expect(object.count == 2)
        #expect(object[composed] == 1)
        #expect(object[decomposed] == 2)
        object[decomposed] = nil
        #expect(object[composed] == 1)
        #expect(object.count == 1)
    }

    @Test("JSON numbers are equal when they are worth the same")
    func numbers() {
        #expect(JSONNumber(1.0) == JSONNumber(Int64(1)))
        #expect(JSONNumber(-0.0) == 0)
        #expect(JSONNumber(0x1p63) == JSONNumber(UInt64(1) << 63))
        #expect(JSONNumber(-0x1p63) == JSONNumber(Int64.min))
        #expect(JSONNumber(0x1p64) != JSONNumber(UInt64.max))
        #expect(JSONNumber(UInt64(7)) == JSONNumber(Int64(7)))
        #expect(JSONNumber(Int64(1) << 53) != JSONNumber((Int64(1) << 53) + 1))
        #expect(Set<JSONNumber>([1, 1.0, JSONNumber(UInt64(1)), JSONNumber(1)]).count == 1)
        #expect(JSONNumber(Double.nan) == JSONNumber(Double.nan))
        #expect(JSONNumber(Double.infinity) != JSONNumber(-Double.infinity))
    }

    @Test("A number says whether it is an integer of a type")
    func integers() {
        #expect(JSONNumber(Int64.min).int64 == .min)
        #expect(JSONNumber(Int64.min).uint64 == nil)
        #expect(JSONNumber(UInt64.max).uint64 == .max)
        #expect(JSONNumber(UInt64.max).int64 == nil)
        #expect(JSONNumber(UInt64.max).double == 0x1p64)
        #expect(JSONNumber(0.5).int64 == nil)
        #expect(JSONNumber(0.5).uint64 == nil)
        #expect(JSONNumber(0x1p64).uint64 == nil)
        #expect(JSONNumber(1e300).double == 1e300)
        #expect(JSONNumber(Double.nan).isFinite == false)
        #expect(JSONNumber(Double.nan).description == "nan")
        #expect(JSONNumber(-1.5).description == "-1.5")
    }

    @Test("Members of members are reached by subscripts")
    func nested() {
        var object: JSONObject = [
            "address": ["street": "Long Street", "zip": 12345], "tags": ["a", "b"], "name": "Robin",
        ]
        #expect(object["address"]?["street"] == "Long Street")
        let zip: Int? = object["address"]?["zip"]
        #expect(zip == 12345)
        #expect(object["tags"]?[1] == "b")
        #expect(object["tags"]?[2] == nil)
        #expect(object["tags"]?[-1] == nil)
        #expect(object["tags"]?["a"] == nil)
        #expect(object["name"]?[0] == nil)
        #expect(object["address"]?["country"] == nil)

        object["address"]?["street"] = "Short Street"
        object["address"]?["zip"] = nil
        object["name"]?["street"] = "no object"
        object["missing"]?["street"] = "no member"
        let city = "Springfield"
        object["address"]?["city"] = city
        #expect(
            object == [
                "address": ["street": "Short Street", "city": "Springfield"], "tags": ["a", "b"], "name": "Robin",
            ])
    }

    @Test(
        "JSON values survive other coders",
        arguments: [
            nil, true, -1, 0.1, "text", [], [:], [1, [2, [nil]]], ["a": ["b": ["c": [nil, false]]]],
            .number(JSONNumber(Int64.min)), .number(JSONNumber(UInt64.max)), .number(JSONNumber(1e300)),
        ] as [JSONValue])
    func codable(value: JSONValue) throws {
        let data = try JSONEncoder().encode([value])
        #expect(try JSONDecoder().decode([JSONValue].self, from: data) == [value])
        let object: JSONObject = ["x": value]
        #expect(try JSONDecoder().decode(JSONObject.self, from: JSONEncoder().encode(object)) == object)
    }
}
