import CofferSealing
import Foundation
import Testing

@testable import CofferModel

/// A value that encodes itself as the closure says.
struct Encoding: Encodable, @unchecked Sendable {
    let body: (any Encoder) throws -> Void
    func encode(to encoder: any Encoder) throws { try body(encoder) }
}

func encoded(_ value: some Encodable) throws -> String { text(try DocumentBody(encoding: value).body) }

func encoded(_ body: @escaping (any Encoder) throws -> Void) throws -> String { try encoded(Encoding(body: body)) }

enum Shape: Codable, Equatable {
    case point
    case circle(radius: Double)
    case label(String, Int)
}

class Animal: Codable {
    var name = "cat"
    var legs = 4
}

final class Cat: Animal {
    var lives = 9

    override init() { super.init() }

    private enum Keys: CodingKey { case lives, name }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        try super.init(from: container.superDecoder())
        lives = try container.decode(Int.self, forKey: .lives)
    }

    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(lives, forKey: .lives)
        try super.encode(to: container.superEncoder())
    }
}

@Suite("Encoding to canonical JSON") struct EncoderTests {
    struct Everything: Codable, Equatable {
        var bool = true
        var int = Int.min
        var int8 = Int8.min
        var int16 = Int16.max
        var int32 = Int32.min
        var int64 = Int64.max
        var uint = UInt.max
        var uint8 = UInt8.max
        var uint16 = UInt16.max
        var uint32 = UInt32.max
        var uint64 = UInt64.max
        var double = 1e-7
        var float: Float = 0.1
        var string = "\u{E9}e\u{301}\n\"\\\u{1}😀"
        var date = Date(timeIntervalSinceReferenceDate: 0.5)
        var data = Data([0, 255])
        var url = URL(string: "https://example.com/a/b")
        var uuid = UUID(uuidString: "01234567-89AB-CDEF-0123-456789ABCDEF")
        var decimal = Decimal(string: "1.10")
        var missing: Int?
        var list: [Int?] = [1, nil, 3]
        var nested = [["a": [true]], [:]]
        var shapes: [Shape] = [.point, .circle(radius: 1.5), .label("x", 2)]
        var value: JSONValue = ["z": nil, "a": [1.0]]
        var object: JSONObject = ["y": 1, "x": "2"]
        var number: JSONNumber = 3.5
        var revision = RevisionID("1-abc")
    }

    @Test("The encoder writes every type as canonical JSON, and reads it back as it was")
    func everything() throws {
        let json = try encoded(Everything())
        #expect(try canonical(json) == json)
        #expect(
            json == """
                {"bool":true,"data":"AP8=","date":"2001-01-01T00:00:00.5Z","decimal":1.1,"double":1e-7,"float":0.1,\
                "int":-9223372036854775808,"int16":32767,"int32":-2147483648,"int64":9223372036854775807,"int8":-128,\
                "list":[1,null,3],"nested":[{"a":[true]},{}],"number":3.5,"object":{"x":"2","y":1},"revision":"1-abc",\
                "shapes":[{"point":{}},{"circle":{"radius":1.5}},{"label":{"_0":"x","_1":2}}],\
                "string":"\u{E9}e\u{301}\\n\\"\\\\\\u0001😀","uint":18446744073709551615,"uint16":65535,\
                "uint32":4294967295,"uint64":18446744073709551615,"uint8":255,"url":"https://example.com/a/b",\
                "uuid":"01234567-89AB-CDEF-0123-456789ABCDEF","value":{"a":[1],"z":null}}
                """)
        let again = try Everything(canonical: Array(json.utf8))
        #expect(again == Everything())
        #expect(same(again.string, Everything().string))
    }

    @Test("The encoder's JSON means the same as what JSONEncoder writes for the same value")
    func likeJSONEncoder() throws {
        var value = Everything()
        (value.date, value.data, value.float) = (.init(timeIntervalSinceReferenceDate: 0), Data(), 0.5)
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        #expect(try encoded(value) == text(DocumentBody(json: Array(encoder.encode(value))).body))
    }

    @Test("Whole JSON values are documents, if they are objects")
    func wholeValues() throws {
        #expect(try encoded(["b": 1, "a": 2]) == #"{"a":2,"b":1}"#)
        #expect(try encoded(["b": [1: "x"]]) == #"{"b":{"1":"x"}}"#)
        #expect(try encoded(["b": 1, "a": [nil]] as JSONObject) == #"{"a":[null],"b":1}"#)
        #expect(try encoded(["b": 1, "a": [nil]] as JSONValue) == #"{"a":[null],"b":1}"#)
        struct Empty: Codable {}
        #expect(try encoded(Empty()) == "{}")
        #expect(try encoded { encoder in _ = encoder.container(keyedBy: JSONKey.self) } == "{}")
        #expect(
            try encoded { encoder in
                var container = encoder.singleValueContainer()
                try container.encode(["b": 1, "a": 2])
            } == #"{"a":2,"b":1}"#)
    }

    @Test(
        "A value that is no object is refused by the encoder",
        arguments: [
            .init {
                var c = $0.singleValueContainer(); try c.encode(1)
            },
            .init {
                var c = $0.singleValueContainer(); try c.encodeNil()
            },
            .init {
                var c = $0.unkeyedContainer(); try c.encode(1)
            },
            .init {
                var c = $0.singleValueContainer(); try c.encode([1])
            },
            .init {
                var c = $0.singleValueContainer(); try c.encode([1] as JSONValue)
            },
            .init {
                var c = $0.singleValueContainer(); try c.encode(Date())
            },
            .init { _ in },
        ] as [Encoding])
    func noObject(value: Encoding) {
        let error = #expect(throws: CofferError.self) { try DocumentBody(encoding: value) }
        #expect(error?.code == .invalidJSON)
    }

    @Test("A number that JSON can't hold is refused wherever it stands")
    func notFinite() {
        func refuses(_ body: @escaping (any Encoder) throws -> Void, _ line: SourceLocation = #_sourceLocation) {
            let error = #expect(throws: CofferError.self, sourceLocation: line) { try encoded(body) }
            #expect(error?.code == .invalidJSON, sourceLocation: line)
        }
        refuses { try $0.keyed { try $0.encode(Double.nan, forKey: "a") } }
        refuses { try $0.keyed { try $0.encode(-Double.infinity, forKey: "a") } }
        refuses { try $0.keyed { try $0.encode(Float.infinity, forKey: "a") } }
        refuses { try $0.keyed { try $0.encode([Double.nan], forKey: "a") } }
        refuses { try $0.keyed { try $0.encode(["b": Float.nan], forKey: "a") } }
        refuses { try $0.keyed { try $0.encode(JSONNumber(Double.nan), forKey: "a") } }
        refuses { try $0.keyed { try $0.encode(["x": [.number(JSONNumber(Double.nan))]] as JSONValue, forKey: "a") } }
        refuses { try $0.keyed { try $0.encode(Decimal.nan, forKey: "a") } }
        refuses { try $0.keyed { try $0.encode(Date(timeIntervalSince1970: 1e18), forKey: "a") } }
        refuses { try $0.keyed { try $0.encode(Optional(Double.nan), forKey: "a") } }
    }

    @Test("Containers of the encoder may be filled in any order")
    func interleaved() throws {
        let json = try encoded { encoder in
            var container = encoder.container(keyedBy: JSONKey.self)
            var list = container.nestedUnkeyedContainer(forKey: "list")
            var object = container.nestedContainer(keyedBy: JSONKey.self, forKey: "object")
            try list.encode(1)
            try object.encode("x", forKey: "z")
            var inner = list.nestedContainer(keyedBy: JSONKey.self)
            try container.encode(true, forKey: "after")
            try list.encode(2)
            try object.encode("y", forKey: "a")
            try inner.encode(3, forKey: "k")
            var innerList = list.nestedUnkeyedContainer()
            try inner.encode(4, forKey: "j")
            try innerList.encodeNil()
            #expect(list.count == 4)
            var same = encoder.container(keyedBy: JSONKey.self)
            try same.encode(5, forKey: "before")
        }
        #expect(json == #"{"after":true,"before":5,"list":[1,{"j":4,"k":3},2,[null]],"object":{"a":"y","z":"x"}}"#)
    }

    @Test("Of two values for a key the encoder keeps the later one; nested containers go on")
    func twice() throws {
        #expect(
            try encoded {
                try $0.keyed { container in
                    try container.encode(1, forKey: "b")
                    try container.encode(["x"], forKey: "a")
                    try container.encode("later", forKey: "b")
                    try container.encode(2, forKey: "a")
                    try container.encode(3, forKey: "a")
                }
            } == #"{"a":3,"b":"later"}"#)
        #expect(
            try encoded {
                try $0.keyed { container in
                    var first = container.nestedContainer(keyedBy: JSONKey.self, forKey: "a")
                    try first.encode(1, forKey: "x")
                    var second = container.nestedContainer(keyedBy: JSONKey.self, forKey: "a")
                    try second.encode(2, forKey: "y")
                    try first.encode(3, forKey: "z")
                    try second.encode(4, forKey: "x")
                    var third = container.nestedContainer(keyedBy: JSONKey.self, forKey: "a")
                    try third.encode(5, forKey: "w")
                    var list = container.nestedUnkeyedContainer(forKey: "l")
                    try list.encode(1)
                    var again = container.nestedUnkeyedContainer(forKey: "l")
                    try again.encode(2)
                    var other = container.nestedUnkeyedContainer(forKey: "m")
                    try other.encode(1)
                    try container.encode([7], forKey: "m")
                }
            } == #"{"a":{"w":5,"x":4,"y":2,"z":3},"l":[1,2],"m":[7]}"#)
    }

    @Test("Of many values for many keys the encoder keeps the latest")
    func manyTwice() throws {
        let json = try encoded {
            try $0.keyed { container in
                for value in 0..<400 { try container.encode(value, forKey: JSONKey("k\(value * 7 % 100)")) }
            }
        }
        let object = try JSONObject(canonical: Array(json.utf8).span)
        #expect(object.count == 100)
        #expect(
            object.allSatisfy { member in
                (300..<400).contains { member.value == JSONValue($0) && member.key == "k\($0 * 7 % 100)" }
            })
        #expect(try canonical(json) == json)
    }

    @Test("A value whose encoding error is caught leaves nothing behind")
    func caught() throws {
        struct Failure: Error {}
        #expect(
            try encoded {
                try $0.keyed { container in
                    try? container.encode(Double.nan, forKey: "a")
                    try? container.encode([1, Double.nan], forKey: "b")
                    try? container.encode(
                        Encoding {
                            try $0.keyed { try $0.encode(1, forKey: "x") }; throw Failure()
                        }, forKey: "c")
                    try? container.encode([.number(JSONNumber(Double.nan))] as JSONValue, forKey: "d")
                    try container.encode(1, forKey: "e")
                    try container.encode(
                        Encoding {
                            var c = $0.singleValueContainer(); try? c.encode(Double.nan)
                        }, forKey: "f")
                }
            } == #"{"e":1,"f":{}}"#)
    }

    @Test("Errors of the encoded type's own pass through")
    func ownErrors() {
        struct Failure: Error {}
        #expect(throws: Failure.self) { try encoded { _ in throw Failure() } }
        #expect(throws: Failure.self) {
            try encoded { try $0.keyed { try $0.encode([Encoding { _ in throw Failure() }], forKey: "a") } }
        }
    }

    @Test("A superclass is encoded under its key, and decoded")
    func inheritance() throws {
        let json = try encoded(Cat())
        #expect(json == #"{"lives":9,"super":{"legs":4,"name":"cat"}}"#)
        let cat = try Cat(canonical: Array(#"{"lives":8,"super":{"legs":3,"name":"Tom"}}"#.utf8))
        #expect((cat.lives, cat.legs, cat.name) == (8, 3, "Tom"))
        #expect(
            try encoded { encoder in
                var container = encoder.container(keyedBy: JSONKey.self)
                var list = container.superEncoder(forKey: "a").unkeyedContainer()
                try Animal().encode(to: list.superEncoder())
                _ = list.superEncoder()
                try list.encode(1)
            } == #"{"a":[{"legs":4,"name":"cat"},{},1]}"#)
    }

    @Test("The path to a value is known while it is encoded")
    func codingPath() throws {
        _ = try encoded { encoder in
            #expect(encoder.codingPath.isEmpty)
            var container = encoder.container(keyedBy: JSONKey.self)
            #expect(container.codingPath.isEmpty)
            try container.encode(
                [
                    "x": [
                        Encoding {
                            #expect($0.codingPath.map(\.stringValue) == ["a", "x", "Index 0"])
                            #expect($0.codingPath.map(\.intValue) == [nil, nil, 0])
                            let nested = $0.singleValueContainer()
                            #expect(nested.codingPath.count == 3)
                        }
                    ]
                ], forKey: "a")
            var list = container.nestedUnkeyedContainer(forKey: "b")
            try list.encode(1)
            #expect(list.nestedUnkeyedContainer().codingPath.map(\.stringValue) == ["b", "Index 1"])
            #expect(container.superEncoder().codingPath.map(\.stringValue) == ["super"])
        }
    }

    @Test("User info reaches the type that is encoded")
    func userInfo() throws {
        let key = try #require(CodingUserInfoKey(rawValue: "k"))
        let value = Encoding {
            #expect($0.userInfo[key] as? String == "v")
            try $0.keyed { try $0.encode([Encoding { #expect($0.userInfo[key] as? String == "v") }], forKey: "a") }
        }
        _ = try DocumentBody(encoding: value, userInfo: [key: "v"])
    }

    @Test("The encoder finds what has to be escaped wherever it stands, in keys and in values")
    func escapesEverywhere() throws {
        let escapes: [(character: Character, text: String)] = [
            ("\"", "\\\""), ("\\", "\\\\"), ("\n", "\\n"), ("\u{1}", "\\u0001"), ("\u{1F}", "\\u001f"),
        ]
        for count in 0...20 {
            let plain = String(repeating: "é!", count: 10).prefix(count)
            #expect(try encoded([String(plain): String(plain)]) == #"{"\#(plain)":"\#(plain)"}"#)
            for place in 0...count {
                let (before, after) = (plain.prefix(place), plain.dropFirst(place))
                for (character, escaped) in escapes {
                    let text = before + String(character) + after
                    let expected = #""\#(before)\#(escaped)\#(after)""#
                    #expect(try encoded([String(text): String(text)]) == "{\(expected):\(expected)}")
                    #expect(try encoded(["a": [String(text + text)]]).utf8.count == 2 * expected.utf8.count + 6)
                }
            }
        }
    }

    @Test("Keys with escapes are sorted among the others by what they are")
    func sortsEscapedKeys() throws {
        let keys = ["a\nb", "a b", "a", "a\"", "a!", "\u{1}", "a\u{1}b", "é\"", "b"]
        let expected = keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        let pairs = Dictionary(uniqueKeysWithValues: keys.map { ($0, "v") })
        let object = try JSONObject(DocumentBody(encoding: pairs).body)
        #expect(object.members.map(\.key) == expected)
        // The same through the containers, the later of two for a key.
        struct Key: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }
        let same = try encoded { encoder in
            var container = encoder.container(keyedBy: Key.self)
            for value in ["w", "v"] {
                for key in keys { try container.encode(value, forKey: Key(stringValue: key)) }
            }
        }
        #expect(try same == encoded(pairs))
    }

    @Test("The encoder takes out and checks reserved members, as in JSON")
    func reserved() throws {
        struct Task: Codable {
            var _id = "task-1"
            var _rev: String? = "1-abc"
            var _deleted = true
            var _attachments: JSONObject? = ["a": [:]]
            var nested = ["_id": 1]
            var title = "x"
        }
        let document = try DocumentBody(encoding: Task())
        #expect(text(document.body) == #"{"_attachments":{"a":{}},"nested":{"_id":1},"title":"x"}"#)
        #expect(document.id == "task-1")
        #expect(document.revision == "1-abc")
        #expect(document.isDeletion)
        #expect(document.attachments == ["a": [:]])
        for value in [["_other": "x"], ["_": "x"], ["_idx": "x"], ["_deleted": "true"], ["_attachments": "x"]] {
            #expect(throws: CofferError.self) { try DocumentBody(encoding: value) }
            #expect(throws: CofferError.self) { try DocumentBody(JSONObject(jsonValue: value.jsonValue) ?? [:]) }
        }
        #expect(try DocumentBody(["_id": "a", "b": 1]).id == "a")
        #expect(try text(DocumentBody(["_id": "a", "b": 1]).body) == #"{"b":1}"#)
    }

    @Test("The encoder sorts, escapes and tells keys apart as bytes")
    func keys() throws {
        let pairs = [
            "\u{E9}", "e\u{301}", "", "\"", "#", "\\", "\n", "a\u{0}", "a", "abcdefgh1", "abcdefgh", "\u{1F600}",
            "\u{FB33}",
        ]
        let json = try encoded {
            try $0.keyed { for (n, key) in pairs.enumerated() { try $0.encode(n, forKey: JSONKey(key)) } }
        }
        #expect(same(json, try canonical(json)))
        let object = JSONObject(uniqueKeysWithValues: pairs.enumerated().map { ($1, JSONValue($0)) })
        #expect(same(json, text(try DocumentBody(object).body)))
        #expect(try JSONObject(canonical: Array(json.utf8).span) == object)
        // More than the sort by insertion takes.
        let many = Dictionary(uniqueKeysWithValues: (0..<200).map { ("key \($0 * 7919 % 1000)", $0) })
        #expect(try encoded(many) == text(DocumentBody(JSONObject(jsonValue: many.jsonValue) ?? [:]).body))
    }
}

extension Encoder {
    func keyed(_ body: (inout KeyedEncodingContainer<JSONKey>) throws -> Void) rethrows {
        var container = container(keyedBy: JSONKey.self)
        try body(&container)
    }
}

extension JSONKey: ExpressibleByStringLiteral {
    /// The key with that text.
    public init(stringLiteral value: String) { self.init(value) }
}
