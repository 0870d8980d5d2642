import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferModel

@Suite("Conversions to and from JSON values") struct JSONConvertibleTests {
    @Test("Integers convert to a type within its range and not beyond")
    func integers() {
        func sweep<I: FixedWidthInteger & JSONConvertible & Sendable>(_ type: I.Type) {
            for value in [I.min, I.min + 1, 0, 1, I.max - 1, I.max] {
                #expect(I(jsonValue: value.jsonValue) == value)
            }
            #expect(I(jsonValue: .number(JSONNumber(Double(I.max) + 1.0))) == nil || I.bitWidth == 64)
            #expect(I(jsonValue: 0.5) == nil)
            #expect(I(jsonValue: "1") == nil)
            #expect(I(jsonValue: true) == nil)
            #expect(I(jsonValue: nil) == nil)
            #expect(I(jsonValue: 7.0) == 7)
        }
        sweep(Int.self)
        sweep(Int8.self)
        sweep(Int16.self)
        sweep(Int32.self)
        sweep(Int64.self)
        sweep(UInt.self)
        sweep(UInt8.self)
        sweep(UInt16.self)
        sweep(UInt32.self)
        sweep(UInt64.self)
        #expect(UInt8(jsonValue: 256) == nil)
        #expect(UInt8(jsonValue: -1) == nil)
        #expect(Int8(jsonValue: -129) == nil)
        #expect(Int64(jsonValue: .number(JSONNumber(UInt64(1) << 63))) == nil)
        #expect(UInt64(jsonValue: .number(JSONNumber(0x1p64))) == nil)
    }

    @Test("Floating point converts to the nearest value of a type")
    func floatingPoint() {
        #expect(Double(jsonValue: .number(JSONNumber((Int64(1) << 53) + 1))) == 0x1p53)
        #expect(Double(jsonValue: 0.1) == 0.1)
        #expect(Double(jsonValue: "0.1") == nil)
        #expect(Float(0.1).jsonValue == 0.1)
        #expect(Float(jsonValue: 0.1) == 0.1)
        #expect(Float(jsonValue: 1e39) == nil)
        #expect(Float(jsonValue: -1e300) == nil)
        #expect(Float.infinity.jsonValue.numberValue?.isFinite == false)
        var random = SeededNumbers(seed: 7)
        for _ in 0..<20_000 {
            let float = Float(bitPattern: UInt32.random(in: 0...UInt32.max, using: &random))
            guard float.isFinite else { continue }
            #expect(Float(jsonValue: float.jsonValue) == float)
        }
    }

    @Test("Values that cannot be saved can be held, and are refused at the save")
    func notFinite() throws {
        for value in [Double.nan, .infinity, -.infinity] {
            var object: JSONObject = ["a": ["b": [1]]]
            object["a"]?["c"] = value
            let error = #expect(throws: CofferError.self) { try DocumentBody(object) }
            #expect(error?.code == .invalidJSON)
        }
        #expect(throws: CofferError.self) {
            try DocumentBody(["a": Date.distantFuture.addingTimeInterval(1e15).jsonValue])
        }
        #expect(throws: CofferError.self) { try DocumentBody(["a": Decimal.nan.jsonValue]) }
    }

    @Test(
        "Dates are RFC 3339 in UTC, with no more digits than they need",
        arguments: [
            (0, "2001-01-01T00:00:00Z"), (-978_307_200, "1970-01-01T00:00:00Z"), (-1, "2000-12-31T23:59:59Z"),
            (0.5, "2001-01-01T00:00:00.5Z"), (-0.25, "2000-12-31T23:59:59.75Z"),
            (1e-9, "2001-01-01T00:00:00.000000001Z"),
            (785_432_632.123, "2025-11-21T15:43:52.123Z"), (5_097_600, "2001-03-01T00:00:00Z"),
            (5_097_599.5, "2001-02-28T23:59:59.5Z"), (-26_524_800, "2000-02-29T00:00:00Z"),
            (-63_145_526_400, "0000-01-01T00:00:00Z"), (-63_113_904_000, "0001-01-01T00:00:00Z"),
            (252_423_993_599, "9999-12-31T23:59:59Z"),
            (-3_187_296_000, "1900-01-01T00:00:00Z"), (-3_182_198_400.5, "1900-02-28T23:59:59.5Z"),
        ] as [(Double, String)])
    func dates(time: Double, text: String) {
        let date = Date(timeIntervalSinceReferenceDate: time)
        #expect(date.jsonValue == .string(text))
        #expect(Date(jsonValue: .string(text)) == date)
    }

    @Test("Every date is read back as it was; within 97 days of 2001, where a Double knows more, to the nanosecond")
    func datesRoundTrip() throws {
        var random = SeededNumbers(seed: 3339)
        for _ in 0..<20_000 {
            let magnitude = Double.random(in: 0...10.5, using: &random)
            let time = (Bool.random(using: &random) ? 1 : -1) * pow(10, magnitude)
            let date = Date(timeIntervalSinceReferenceDate: time)
            let text = try #require(date.jsonValue.stringValue)
            let reread = try #require(Date(jsonValue: .string(text)))
            #expect(abs(time) < 0x1p23 ? abs(reread.timeIntervalSince(date)) < 1e-9 : reread == date)
            #expect(text.utf8.count <= 30)
        }
    }

    @Test("Whole seconds are what Foundation makes of them, which has another calendar before 1582")
    func datesLikeFoundation() throws {
        var random = SeededNumbers(seed: 8601)
        for _ in 0..<3_000 {
            let second = Int.random(in: -13_190_000_000...250_000_000_000, using: &random)
            let date = Date(timeIntervalSinceReferenceDate: Double(second))
            #expect(date.jsonValue.stringValue == date.formatted(.iso8601))
        }
    }

    @Test(
        "Other RFC 3339 texts are read",
        arguments: [
            ("2001-01-01T01:30:00+01:30", 0), ("2000-12-31T23:00:00-01:00", 0), ("2001-01-01t00:00:00z", 0),
            ("2001-01-01T00:00:00.000Z", 0), ("2001-01-01T00:00:00-00:00", 0), ("2000-12-31T23:59:60Z", 0),
            ("2001-01-01T00:00:00.1234567891234Z", 0.123456789),
        ] as [(String, Double)])
    func datesOfOthers(text: String, time: Double) {
        #expect(Date(jsonValue: .string(text)) == Date(timeIntervalSinceReferenceDate: time))
    }

    @Test(
        "A text that is no RFC 3339 date is no date",
        arguments: [
            "", "2001-01-01", "2001-01-01T00:00:00", "2001-01-01 00:00:00Z", "2001-1-1T00:00:00Z",
            "2001-13-01T00:00:00Z",
            "2001-00-01T00:00:00Z", "2001-02-29T00:00:00Z", "2000-02-30T00:00:00Z", "1900-02-29T00:00:00Z",
            "2001-04-31T00:00:00Z", "2001-01-00T00:00:00Z", "2001-12-32T00:00:00Z", "2001-01-01T24:00:00Z",
            "2001-01-01T00:60:00Z", "2001-01-01T00:00:61Z", "2001-01-01T00:00:00.Z", "2001-01-01T00:00:00+0100",
            "2001-01-01T00:00:00+24:00", "2001-01-01T00:00:00Zx", "+2001-01-01T00:00:00Z", "-001-01-01T00:00:00Z",
            "2001-01-01T00:00:00+01:60", "２001-01-01T00:00:00Z",
        ])
    func noDates(text: String) {
        #expect(Date(jsonValue: .string(text)) == nil)
        #expect(Date(jsonValue: 0) == nil)
    }

    @Test("Data, URLs and UUIDs are strings")
    func strings() {
        for count in 0...5 {
            let data = Data((0..<count).map { UInt8($0 * 51) })
            #expect(Data(jsonValue: data.jsonValue) == data)
        }
        #expect(Data([0xFB, 0xFF]).jsonValue == "+/8=")
        #expect(Data(jsonValue: "not base64!") == nil)
        let url = URL(string: "https://example.com/a?b=c#d")
        #expect(URL(jsonValue: "https://example.com/a?b=c#d") == url)
        #expect(url?.jsonValue == "https://example.com/a?b=c#d")
        let id = UUID()
        #expect(UUID(jsonValue: id.jsonValue) == id)
        #expect(UUID(jsonValue: "no id") == nil)
        #expect(UUID(jsonValue: 1) == nil)
    }

    @Test(
        "Decimals keep every digit",
        arguments: [
            ("0", 0), ("1.5", 1.5), ("-0.1", -0.1), ("9223372036854775808", .number(JSONNumber(UInt64(1) << 63))),
            ("0.12345678901234567890123", "0.12345678901234567890123"), ("100000000000000000000", 1e20),
            ("100000000000000000001", "100000000000000000001"), ("3.14", 3.14),
        ] as [(String, JSONValue)])
    func decimals(text: String, value: JSONValue) throws {
        let decimal = try #require(Decimal(string: text))
        #expect(decimal.jsonValue == value)
        #expect(Decimal(jsonValue: value) == decimal)
        #expect(Decimal(jsonValue: .string(text)) == decimal)
    }

    @Test("A text that is no decimal is none", arguments: ["", "1x", "x1", "1.5.2", " 1", "one"] as [JSONValue])
    func noDecimals(value: JSONValue) { #expect(Decimal(jsonValue: value) == nil) }

    @Test("Lists and dictionaries convert whole or not at all")
    func collections() {
        #expect([Int](jsonValue: [1, 2, 3]) == [1, 2, 3])
        #expect([Int](jsonValue: [1, "2"]) == nil)
        #expect([Int](jsonValue: 1) == nil)
        #expect([String: [Int]](jsonValue: ["a": [1], "b": []]) == ["a": [1], "b": []])
        #expect([String: Int](jsonValue: ["a": nil]) == nil)
        #expect([[Bool]]([[true], []]).jsonValue == [[true], []])
        #expect(["b": 1, "a": 2].jsonValue == ["a": 2, "b": 1])
        // Swift's dictionaries take these two for one.
        #expect([String: Int](jsonValue: ["\u{E9}": 1, "e\u{301}": 2]) == nil)
    }
}
