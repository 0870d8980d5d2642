import CofferSealing
import TestSupport
import Testing

@testable import CofferModel

@Suite("Keys that sort")
struct CollationKeyTests {
    /// In their order; those that are one are in one list.
    static let sorted: [[JSONValue]] = [
        [.null], [false], [true], [.number(JSONNumber(-Double.greatestFiniteMagnitude))],
        [.number(JSONNumber(-0x1p70))],
        [.number(JSONNumber(Int64.min))], [.number(JSONNumber(Int64.min + 1))], [-9_007_199_254_740_993],
        [-9_007_199_254_740_992], [-2], [-1.5], [-1, -1.0], [.number(JSONNumber(-5e-324))],
        [0, .number(JSONNumber(-0.0)), 0.0], [.number(JSONNumber(5e-324))], [0.1], [1, 1.0], [1.5], [2], [10],
        [9_007_199_254_740_992], [9_007_199_254_740_993], [9_007_199_254_740_994],
        [.number(JSONNumber(Int64.max - 1))], [.number(JSONNumber(Int64.max))],
        [.number(JSONNumber(UInt64(1) << 63)), .number(JSONNumber(0x1p63))], [.number(JSONNumber(UInt64.max - 1))],
        [.number(JSONNumber(UInt64.max))], [.number(JSONNumber(0x1p64))],
        [.number(JSONNumber(Double.greatestFiniteMagnitude))], [""], ["\0"], ["\0\0"], ["\0a"], ["\u{1}"], ["\u{1}\0"],
        ["\u{1}\u{1}"], ["\u{2}"], ["A"], ["a"],
        ["a\0"], ["a\0b"], ["a\u{1}"], ["aa"], ["a\u{308}"], ["b"], ["ä"], ["\u{FFFF}"], ["\u{10000}"], [[]], [[.null]],
        [[.null, .null]], [[false]], [[1]], [[1, 2]], [[2]], [["a"]], [["a", 1]], [["a", "b"]], [["a\0"]], [["b"]],
        [[[]]],
        [[[], 1]], [[[1]]], [[[:]]], [[:]], [["a": 1]], [["a": 1, "b": 1], ["b": 1, "a": 1]], [["a": 2]], [["a\0": 0]],
        [["b": 0]],
    ]

    @Test("Every collation key is before those of later values, and equal to itself however the value is written")
    func order() throws {
        let keys = try Self.sorted.map { try $0.map { try CollationKey($0).bytes } }
        for (place, equal) in keys.enumerated() {
            for key in equal { #expect(key == equal[0]) }
            for later in keys[(place + 1)...] {
                #expect(equal[0].lexicographicallyPrecedes(later[0]), "\(Self.sorted[place])")
                // So that keys can stand one behind the other.
                #expect(!later[0].starts(with: equal[0]), "\(Self.sorted[place])")
            }
        }
    }

    @Test("Collation keys say the value again")
    func roundTrip() throws {
        for value in Self.sorted.joined() {
            #expect(try CollationKey.value(CollationKey(value).bytes) == value)
        }
    }

    @Test("Collation keys of random values sort as the values do element by element", arguments: 0..<200)
    func random(seed: UInt64) throws {
        var generator = SeededNumbers(seed: seed)
        let values = (0..<20).map { _ in Self.value(&generator, depth: 4) }
        for left in values {
            let leftKey = try CollationKey(left)
            #expect(try CollationKey.value(leftKey.bytes) == left)
            for right in values {
                let rightKey = try CollationKey(right)
                let order = Self.compare(left, right)
                #expect(leftKey.bytes.lexicographicallyPrecedes(rightKey.bytes) == (order < 0), "\(left) \(right)")
                #expect((leftKey.bytes == rightKey.bytes) == (order == 0), "\(left) \(right)")
            }
        }
    }

    @Test("A collation key for what JSON can't say is a 400")
    func refused() {
        for value: JSONValue in [.number(JSONNumber(.nan)), [.number(JSONNumber(.infinity))]] {
            #expect(throws: CofferError.self) { try CollationKey(value) }
        }
        var deep: JSONValue = 1
        for _ in 0..<JSONLimits.depth { deep = [deep] }
        #expect(throws: Never.self) { try CollationKey.value(CollationKey(deep).bytes) }
        let error = #expect(throws: CofferError.self) { try CollationKey([deep]) }
        #expect(error?.status == 400)
    }

    @Test("Changed bytes of a collation key are damage, or another value's key", arguments: 0..<200)
    func hostile(seed: UInt64) throws {
        var generator = SeededNumbers(seed: seed)
        var bytes = try CollationKey(Self.value(&generator, depth: 4)).bytes
        for _ in 0..<100 {
            switch generator.next() % 4 {
            case 0 where !bytes.isEmpty: bytes.remove(at: Int(generator.next() % UInt64(bytes.count)))
            case 1: bytes.insert(Self.byte(&generator), at: Int(generator.next() % UInt64(bytes.count + 1)))
            case 2 where !bytes.isEmpty: bytes[Int(generator.next() % UInt64(bytes.count))] = Self.byte(&generator)
            default: bytes = Array(bytes.prefix(Int(generator.next() % UInt64(bytes.count + 1))))
            }
            do throws(CofferError) {
                let value = try CollationKey.value(bytes)
                // Of −0 and of integers in another split there are bytes that nothing writes: they say a value all the same.
                #expect(try CollationKey.value(CollationKey(value).bytes) == value)
            } catch {
                #expect(error.code == .damaged)
            }
        }
    }

    private static func byte(_ generator: inout SeededNumbers) -> UInt8 {
        let bytes: [UInt8] = [
            0, 1, 2, 0x08, 0x10, 0x20, 0x21, 0x30, 0x40, 0x50, 0x60, 0x61, 0xFF, UInt8(generator.next() & 0xFF),
        ]
        return bytes[Int(generator.next() % UInt64(bytes.count))]
    }

    /// What a prefix of level n begins, and what it doesn't.
    @Test("Bounds of prefixes are above what begins with them, and below everything else")
    func prefixes() throws {
        let cases: [(JSONValue, Int, within: [JSONValue], above: [JSONValue])] = [
            ("a", 1, ["a", "a\0", "ab", "a\u{10FFFF}z"], ["b", "ä", []]),
            ("", 1, ["", "x", "\u{10FFFF}"], [[]]),
            (["a"], 1, [["a"], ["a", 1], ["a", [:]]], [["a\0"], ["ab"], ["b"], [:]]),
            (["a"], 2, [["a"], ["ab"], ["ab", 1]], [["b"], [[]]]),
            (
                [1, ["a", "x"]], 3, [[1, ["a", "x"]], [1, ["a", "xy"], 3], [1, ["a", "xy", 3]]],
                [[1, ["a", "y"]], [1, ["b"]], [2]]
            ),
            ([1, ["a"]], 2, [[1, ["a"]], [1, ["a", "x"]], [1, ["a", "x"], 5]], [[1, ["aa"]], [1, ["b"]]]),
            ([], 1, [[], [1], [[:]]], [[:]]), (1, 1, [1], [1.5, 2, ""]), ([1], 5, [[1], [1, 1]], [[2]]),
        ]
        for (prefix, level, within, above) in cases {
            let bound = try CollationKey.upperBound(ofPrefix: prefix, level: level)
            for value in within {
                #expect(try CollationKey(value).bytes.lexicographicallyPrecedes(bound), "\(prefix) \(level) \(value)")
            }
            for value in above {
                #expect(try bound.lexicographicallyPrecedes(CollationKey(value).bytes), "\(prefix) \(level) \(value)")
            }
        }
    }

    // MARK: A plain comparison

    private static func rank(_ value: JSONValue) -> Int {
        switch value {
        case .null: 0
        case .bool(let flag): flag ? 2 : 1
        case .number: 3
        case .string: 4
        case .array: 5
        case .object, .blob: 6
        }
    }

    private static func compare(_ left: JSONValue, _ right: JSONValue) -> Int {
        switch (left, right) {
        case (.number(let left), .number(let right)):
            let (low, high) = (exact(left), exact(right))
            return low < high ? -1 : low == high ? 0 : 1
        case (.string(let left), .string(let right)):
            return compare(Array(left.utf8), Array(right.utf8)) { Int($0) - Int($1) }
        case (.array(let left), .array(let right)): return compare(left, right, by: compare)
        case (.object(let left), .object(let right)):
            return compare(members(left), members(right)) { left, right in
                let order = compare(.string(left.0), .string(right.0))
                return order != 0 ? order : compare(left.1, right.1)
            }
        default: return rank(left) - rank(right)
        }
    }

    private static func compare<Element>(_ left: [Element], _ right: [Element], by order: (Element, Element) -> Int)
        -> Int
    {
        for (left, right) in zip(left, right) {
            let order = order(left, right)
            if order != 0 { return order }
        }
        return left.count - right.count
    }

    private static func members(_ object: JSONObject) -> [(String, JSONValue)] {
        zip(object.keys, object.values).sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
    }

    /// Numbers of the test have no more than 80 bits before the point, and no more than 20 behind.
    private static func exact(_ number: JSONNumber) -> Int128 {
        if let integer = number.int64 { return Int128(integer) << 20 }
        if let integer = number.uint64 { return Int128(integer) << 20 }
        return Int128(number.double * 0x1p20)
    }

    private static func value(_ generator: inout SeededNumbers, depth: Int) -> JSONValue {
        switch generator.next() % (depth > 0 ? 9 : 6) {
        case 0: return [JSONValue.null, false, true][Int(generator.next() % 3)]
        case 1: return .number(JSONNumber(Int64(bitPattern: generator.next()) >> Int64(generator.next() % 64)))
        case 2: return .number(JSONNumber(generator.next() >> (generator.next() % 8)))
        case 3: return .number(JSONNumber(Double(Int64(bitPattern: generator.next()) >> 20) / 0x1p20))
        case 4: return .number(JSONNumber(Double(Int64(bitPattern: generator.next())) * 0x1p6))
        case 5:
            let letters = ["\0", "a", "\u{2}", "\u{FF}", "\u{FFFF}", "\u{10000}", "\u{1}"]
            return .string((0..<generator.next() % 4).map { _ in letters[Int(generator.next() % 7)] }.joined())
        case 6, 7: return .array((0..<generator.next() % 4).map { _ in value(&generator, depth: depth - 1) })
        default:
            var object: JSONObject = [:]
            for _ in 0..<generator.next() % 4 {
                object[["a", "b", "a\0", "\u{FFFF}", "\u{10000}"][Int(generator.next() % 5)]] = value(
                    &generator, depth: depth - 1)
            }
            return .object(object)
        }
    }
}
