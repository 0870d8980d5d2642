import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferModel

func decoded<T: Decodable>(_ json: String, as type: T.Type = T.self) throws -> T { try T(canonical: Array(json.utf8)) }

/// What a type sees while it is decoded.
struct Decoding: Decodable {
    nonisolated(unsafe) static var body: (any Decoder) throws -> Void = { _ in }
    init(from decoder: any Decoder) throws { try Self.body(decoder) }
}

@Suite("Decoding from JSON", .serialized) struct DecoderTests {
    struct Person: Codable, Equatable {
        var name: String
        var age: Int?
        var tags: [String]
        var address: Address
        struct Address: Codable, Equatable { var zip: UInt16 }
    }

    /// The kind of error, and the path in it.
    func failure(_ body: () throws -> Void) -> String {
        func path(_ context: DecodingError.Context) -> String {
            context.codingPath.map(\.stringValue).joined(separator: "/")
        }
        do {
            try body()
            return "none"
        } catch DecodingError.keyNotFound(let key, let context) {
            return "no \(key.stringValue) in \(path(context))"
        } catch DecodingError.typeMismatch(_, let context) {
            return "mismatch at \(path(context))"
        } catch DecodingError.valueNotFound(_, let context) {
            return "null at \(path(context))"
        } catch DecodingError.dataCorrupted(let context) {
            return "corrupted at \(path(context))"
        } catch {
            return "\(error)"
        }
    }

    @Test("The decoder reads values of every type")
    func values() throws {
        let json = #"{"address":{"zip":12345},"age":31,"name":"Robin","tags":["a","b\n"]}"#
        #expect(try decoded(json) == Person(name: "Robin", age: 31, tags: ["a", "b\n"], address: .init(zip: 12345)))
        #expect(try decoded(#"{"address":{"zip":1},"name":"","tags":[]}"#, as: Person.self).age == nil)
        #expect(try decoded(#"{"address":{"zip":1},"age":null,"name":"","tags":[]}"#, as: Person.self).age == nil)
        #expect(try decoded(#"{"a":{"b":[1,2]}}"#, as: [String: [String: [Int]]].self) == ["a": ["b": [1, 2]]])
        #expect(try decoded(#"{"a":[1,"x",null]}"#, as: JSONObject.self) == ["a": [1, "x", nil]])
        #expect(try decoded(#"{"a":[1,"x",null]}"#, as: JSONValue.self) == ["a": [1, "x", nil]])
        #expect(try decoded(#"{"a":null}"#, as: [String: JSONValue].self) == ["a": nil])
        #expect(
            try decoded(#"{"a":null,"b":"2001-01-01T00:00:00Z"}"#, as: [String: Date?].self) == [
                "a": nil, "b": Date(timeIntervalSinceReferenceDate: 0),
            ])
    }

    @Test("The decoder refuses what the JSON doesn't say with an error that names the place")
    func errors() {
        func person(_ json: String) -> String { failure { _ = try decoded(json, as: Person.self) } }
        #expect(person(#"{"address":{"zip":1},"tags":[]}"#) == "no name in ")
        #expect(person(#"{"address":{},"name":"","tags":[]}"#) == "no zip in address")
        #expect(person(#"{"address":{"zip":65536},"name":"","tags":[]}"#) == "corrupted at address/zip")
        #expect(person(#"{"address":{"zip":-1},"name":"","tags":[]}"#) == "corrupted at address/zip")
        #expect(person(#"{"address":{"zip":1.5},"name":"","tags":[]}"#) == "corrupted at address/zip")
        #expect(person(#"{"address":{"zip":"1"},"name":"","tags":[]}"#) == "mismatch at address/zip")
        #expect(person(#"{"address":{"zip":null},"name":"","tags":[]}"#) == "null at address/zip")
        #expect(person(#"{"address":[],"name":"","tags":[]}"#) == "mismatch at address")
        #expect(person(#"{"address":null,"name":"","tags":[]}"#) == "null at address")
        #expect(person(#"{"address":{"zip":1},"name":1,"tags":[]}"#) == "mismatch at name")
        #expect(person(#"{"address":{"zip":1},"name":"","tags":{}}"#) == "mismatch at tags")
        #expect(person(#"{"address":{"zip":1},"name":"","tags":["a",["b"]]}"#) == "mismatch at tags/Index 1")
        #expect(person(#"{"address":{"zip":1},"age":true,"name":"","tags":[]}"#) == "mismatch at age")
        #expect(person("[]") == "mismatch at ")
        #expect(failure { _ = try decoded(#"{"a":"x"}"#, as: [String: Date].self) } == "corrupted at a")
        #expect(failure { _ = try decoded(#"{"a":1}"#, as: [String: URL].self) } == "corrupted at a")
        #expect(failure { _ = try decoded(#"{"a":null}"#, as: [String: Data].self) } == "null at a")
        #expect(failure { _ = try decoded(#"{"a":1e39}"#, as: [String: Float].self) } == "corrupted at a")
        #expect(failure { _ = try decoded(#"{"a":"1"}"#, as: [String: Double].self) } == "mismatch at a")
        #expect(failure { _ = try decoded(#"{"a":"true"}"#, as: [String: Bool].self) } == "mismatch at a")
    }

    @Test("Messages of the decoder hold no content")
    func messages() throws {
        let error = #expect(throws: DecodingError.self) {
            try decoded(#"{"a":{"b":"secret"}}"#, as: [String: [String: Int]].self)
        }
        #expect(error.map { "\($0)" }?.contains("secret") == false)
    }

    @Test("Decoded integers are exact, and their type's limits hold")
    func integers() throws {
        #expect(try decoded(#"{"a":9007199254740993}"#, as: [String: Int64].self) == ["a": 9_007_199_254_740_993])
        #expect(try decoded(#"{"a":18446744073709551615}"#, as: [String: UInt64].self) == ["a": .max])
        #expect(try decoded(#"{"a":-9223372036854775808}"#, as: [String: Int].self) == ["a": .min])
        #expect(
            failure { _ = try decoded(#"{"a":9223372036854775808}"#, as: [String: Int64].self) } == "corrupted at a")
        #expect(failure { _ = try decoded(#"{"a":-1}"#, as: [String: UInt].self) } == "corrupted at a")
        #expect(failure { _ = try decoded(#"{"a":128}"#, as: [String: Int8].self) } == "corrupted at a")
        #expect(
            failure { _ = try decoded(#"{"a":18446744073709552000}"#, as: [String: UInt64].self) } == "corrupted at a")
        #expect(try decoded(#"{"a":18446744073709551615}"#, as: [String: Double].self) == ["a": 0x1p64])
    }

    @Test("Keys that only look alike are two for the decoder")
    func composition() throws {
        let json = "{\"e\u{301}\":1,\"\u{E9}\":2}"
        Decoding.body = {
            let container = try $0.container(keyedBy: JSONKey.self)
            #expect(container.allKeys.count == 2)
            #expect(try container.decode(Int.self, forKey: "\u{E9}") == 2)
            #expect(try container.decode(Int.self, forKey: "e\u{301}") == 1)
        }
        _ = try decoded(json, as: Decoding.self)
    }

    @Test("Containers of the decoder answer what they hold")
    func containers() throws {
        Decoding.body = { decoder in
            let container = try decoder.container(keyedBy: JSONKey.self)
            #expect(container.allKeys.map(\.stringValue) == ["a", "b\"", "c", "d"])
            #expect(container.contains("b\""))
            #expect(!container.contains("x"))
            #expect(try container.decodeNil(forKey: "c"))
            #expect(try !container.decodeNil(forKey: "a"))
            #expect(failure { _ = try container.decodeNil(forKey: "x") } == "no x in ")
            #expect(try container.decodeIfPresent(Int.self, forKey: "x") == nil)
            #expect(try container.decodeIfPresent(Int.self, forKey: "c") == nil)

            var list = try container.nestedUnkeyedContainer(forKey: "a")
            #expect(list.codingPath.map(\.stringValue) == ["a"])
            #expect(list.count == 4)
            #expect(try list.decodeNil() == false)
            #expect(list.currentIndex == 0)
            #expect(throws: DecodingError.self) { try list.decode(String.self) }
            #expect(try list.decode(Int.self) == 1)
            #expect(try list.decodeNil())
            #expect(list.currentIndex == 2)
            let object = try list.nestedContainer(keyedBy: JSONKey.self)
            #expect(object.codingPath.map(\.stringValue) == ["a", "Index 2"])
            #expect(try object.decode(Bool.self, forKey: "x"))
            var inner = try list.nestedUnkeyedContainer()
            #expect(inner.isAtEnd)
            #expect(list.isAtEnd)
            #expect(failure { _ = try inner.decode(Int.self) } == "null at a/Index 3/Index 0")
            #expect(failure { _ = try list.decodeNil() } == "null at a/Index 4")

            #expect(try container.nestedContainer(keyedBy: JSONKey.self, forKey: "d").allKeys.isEmpty)
            #expect(
                failure { _ = try container.nestedContainer(keyedBy: JSONKey.self, forKey: "a") } == "mismatch at a")
            #expect(failure { _ = try container.nestedUnkeyedContainer(forKey: "d") } == "mismatch at d")
            #expect(try container.superDecoder().singleValueContainer().decodeNil())
            #expect(try container.superDecoder(forKey: "b\"").singleValueContainer().decode(String.self) == "text")
            #expect(try container.superDecoder(forKey: "d").codingPath.map(\.stringValue) == ["d"])
        }
        _ = try decoded(#"{"a":[1,null,{"x":true},[]],"b\"":"text","c":null,"d":{}}"#, as: Decoding.self)
    }

    @Test("The decoder finds members in any order, in small and in large objects", arguments: [1, 2, 15, 16, 17, 100])
    func anyOrder(count: Int) throws {
        let keys = (0..<count).map { "key \($0 * 7919 % 1009) \"\n"[...].dropLast($0 % 3) }.map(String.init)
        let json = text(
            try DocumentBody(JSONObject(uniqueKeysWithValues: keys.enumerated().map { ($1, JSONValue($0)) })).body)
        for seed in 0..<5 {
            var random = SeededNumbers(seed: UInt64(seed))
            let order = Array(keys.enumerated()).shuffled(using: &random)
            Decoding.body = { decoder in
                let container = try decoder.container(keyedBy: JSONKey.self)
                for (value, key) in order {
                    #expect(try container.decode(Int.self, forKey: JSONKey(key)) == value)
                    #expect(!container.contains(JSONKey(key + "x")))
                }
            }
            _ = try decoded(json, as: Decoding.self)
        }
    }

    @Test("User info reaches the type that is decoded")
    func userInfo() throws {
        let key = try #require(CodingUserInfoKey(rawValue: "k"))
        Decoding.body = { #expect($0.userInfo[key] as? String == "v") }
        _ = try [String: Decoding](canonical: Array(#"{"a":{}}"#.utf8), userInfo: [key: "v"])
    }

    @Test(
        "JSON that cannot have been stored is damage to the decoder, never a crash",
        arguments: Vectors.read("json/invalid.json", as: [Vectors.Text].self))
    func damage(vector: Vectors.Text) {
        // Not all of it is noticed: the digest of what is stored was checked before.
        for read in [
            { _ = try JSONValue(canonical: vector.bytes) }, { _ = try JSONObject(canonical: vector.bytes.span) },
        ] as [() throws -> Void] {
            do { try read() } catch { #expect((error as? CofferError)?.code == .damaged || error is DecodingError) }
        }
    }

    @Test("JSON with anything after it is damage", arguments: ["x", " ", "\0", "}", "{}", ","])
    func trailing(text: String) {
        for json in ["{}\(text)", "{\"a\":1}\(text)", "1\(text)", "\"a\"\(text)"].map({ Array($0.utf8) }) {
            let error = #expect(throws: CofferError.self) { try JSONValue(canonical: json) }
            #expect(error?.code == .damaged)
            let other = #expect(throws: CofferError.self) { try CanonicalReader.value(json.span) }
            #expect(other?.code == .damaged)
        }
    }

    @Test("JSON cut short anywhere is damage")
    func truncated() throws {
        let json = Array(#"{"a":[1,null,{"x":true},[-1.5e-7]],"b\"":"te\u0001xt","c":false,"d":{}}"#.utf8)
        #expect(try JSONObject(canonical: json.span).count == 4)
        for count in 0..<json.count {
            let error = #expect(throws: CofferError.self) { try JSONValue(canonical: Array(json[..<count])) }
            #expect(error?.code == .damaged)
            let other = #expect(throws: CofferError.self) { try JSONObject(canonical: json.span.extracting(..<count)) }
            #expect(other?.code == .damaged)
        }
    }
}
