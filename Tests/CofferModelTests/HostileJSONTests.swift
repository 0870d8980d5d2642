import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferModel

/// Runs `body` on a thread with as little stack as secondary threads have on macOS.
func onSmallStack(_ body: @escaping @Sendable () throws -> Void) throws {
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var failure: (any Error)?
    let thread = Thread {
        do { try body() } catch { failure = error }
        done.signal()
    }
    thread.stackSize = 512 << 10
    thread.start()
    done.wait()
    if let failure { throw failure }
}

@Suite("Hostile JSON") struct HostileJSONTests {
    @Test(
        "JSON of the greatest depth fits on a small stack, from JSON to values and back", arguments: ["[]", "{\"a\":}"])
    func deep(container: String) throws {
        let depth = JSONLimits.depth - 1
        let (open, close) = (container.dropLast(), container.suffix(1))
        let innermost = container.prefix(1) + container.suffix(1)
        let json =
            "{\"a\":" + String(repeating: String(open), count: depth - 1) + innermost
            + String(repeating: String(close), count: depth - 1) + "}"
        try onSmallStack {
            let document = try DocumentBody(json: Array(json.utf8))
            let object = try JSONObject(document.body)
            #expect(try DocumentBody(object).body.bytes == Array(json.utf8))
            #expect(try DocumentBody(encoding: object).body.bytes == Array(json.utf8))
            _ = try JSONValue(canonical: document.body.bytes)
            let deeper = "{\"a\":\(open)" + json.dropFirst(5).dropLast() + "\(close)}"
            #expect(throws: CofferError(.invalidJSON)) { try DocumentBody(json: Array(deeper.utf8)) }
        }
    }

    @Test("JSON that is one level too deep is refused, from JSON, values and encoders")
    func tooDeep() throws {
        var value: JSONValue = []
        for _ in 1..<JSONLimits.depth - 1 { value = [value] }
        _ = try DocumentBody(["a": value])
        _ = try DocumentBody(encoding: ["a": value])
        let tooDeep = value
        for refused in [
            { _ = try DocumentBody(["a": [tooDeep]]) }, { _ = try DocumentBody(encoding: ["a": [tooDeep]]) },
            { _ = try encoded { try $0.keyed { try $0.encode([tooDeep], forKey: "a") } } },
            { _ = try encoded { try $0.keyed { try $0.encode([[tooDeep]] as JSONValue, forKey: "a") } } },
        ] as [() throws -> Void] {
            let error = #expect(throws: CofferError.self) { try refused() }
            #expect(error?.code == .invalidJSON)
        }
    }

    @Test("Containers of a type's own nest as deep as JSON may, and no deeper")
    func depthOfTypes() throws {
        struct Nest: Codable {
            let depth: Int
            init(depth: Int) { self.depth = depth }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.unkeyedContainer()
                if depth > 1 { try container.encode(Nest(depth: depth - 1)) }
            }
            init(from decoder: any Decoder) throws {
                var container = try decoder.unkeyedContainer()
                depth = container.isAtEnd ? 1 : try container.decode(Nest.self).depth + 1
            }
        }
        let body = try DocumentBody(encoding: ["a": Nest(depth: JSONLimits.depth - 1)]).body
        #expect(try [String: Nest](canonical: body.bytes)["a"]?.depth == JSONLimits.depth - 1)
        let error = #expect(throws: CofferError.self) {
            try DocumentBody(encoding: ["a": Nest(depth: JSONLimits.depth)])
        }
        #expect(error?.code == .invalidJSON)
    }

    @Test("A type that encodes itself without end is refused")
    func endless() {
        struct Endless: Encodable {
            enum Keys: CodingKey { case a }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                try container.encode(Endless(), forKey: .a)
            }
        }
        let error = #expect(throws: CofferError.self) { try DocumentBody(encoding: Endless()) }
        #expect(error?.code == .invalidJSON)
    }

    @Test("More bytes than the limit are refused, before and after they are put in canonical form")
    func tooLarge() throws {
        let limit = JSONLimits.byteCount
        let largest =
            Array("{\"a\":\"".utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: limit - 8) + Array("\"}".utf8)
        #expect(largest.count == limit)
        #expect(try DocumentBody(json: largest).body.bytes == largest)
        // Numbers grow: four bytes to 21.
        let growing =
            Array("{\"a\":[0".utf8) + Array(repeating: Array(",1e20".utf8), count: 1_000).joined()
            + Array(",\"".utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: limit - 20_000) + Array("\"]}".utf8)
        #expect(growing.count < limit)
        // In a debug build `String(repeating:count:)` takes a second for it.
        func text(_ count: Int) -> String {
            String(decoding: [UInt8](repeating: UInt8(ascii: "x"), count: count), as: UTF8.self)
        }
        for refused in [
            { _ = try DocumentBody(json: largest + [UInt8(ascii: " ")]) },
            { _ = try DocumentBody(["a": .string(text(limit - 7))]) },
            { _ = try DocumentBody(encoding: ["a": text(limit - 7)]) },
            { _ = try DocumentBody(encoding: ["a": text(limit + 1), "b": "y"]) },
            { _ = try DocumentBody(json: growing) },
        ] as [() throws -> Void] {
            let error = #expect(throws: CofferError.self) { try refused() }
            #expect(error?.code == .invalidJSON)
        }
    }

    @Test("A million members in no order are sorted in time, and duplicates are found among them")
    func manyMembers() throws {
        // A debug build takes 20 times as long for each.
        let count = _isDebugAssertConfiguration() ? 50_000 : 1_000_000
        let keys = (0..<count).map { String($0 * 7_368_787 % 1_000_003) }
        var json = Array("{".utf8)
        for (at, key) in keys.enumerated() {
            if at > 0 { json.append(UInt8(ascii: ",")) }
            json.append(contentsOf: "\"\(key)\":0".utf8)
        }
        let unique = json + Array("}".utf8)
        let time = try processorTime {
            let object = try JSONObject(DocumentBody(json: unique).body)
            #expect(object.count == count)
            #expect(object[keys[count / 2]] == 0)
            #expect(object["1000003"] == nil)
        }
        let duplicate = json + Array(",\"\(keys[count / 3])\":1}".utf8)
        let timeOfDuplicate = processorTime {
            let error = #expect(throws: CofferError.self) { try DocumentBody(json: duplicate) }
            #expect(error?.code == .invalidJSON)
        }
        #expect(time < .seconds(20) && timeOfDuplicate < .seconds(20), "comparing all with all takes minutes")
    }

    @Test("Unordered objects in each other are copied once, not once for each")
    func nestedUnordered() throws {
        let payload = String(repeating: "x", count: 1 << 20)
        let depth = JSONLimits.depth - 1
        let json =
            String(repeating: "{\"b\":", count: depth) + "\"\(payload)\"" + String(repeating: ",\"a\":0}", count: depth)
        let expected =
            String(repeating: "{\"a\":0,\"b\":", count: depth) + "\"\(payload)\"" + String(repeating: "}", count: depth)
        let time = try processorTime {
            let body = try DocumentBody(json: Array(json.utf8)).body
            #expect(body.bytes == Array(expected.utf8))
        }
        #expect(time < .seconds(30))
    }

    @Test("Literals of a million digits are read in time")
    func longNumbers() throws {
        let digits = String(repeating: "7", count: 1_000_000)
        #expect(try canonical("0.\(digits)") == "0.7777777777777778")
        #expect(try canonical("1.\(String(repeating: "0", count: 1_000_000))") == "1")
        #expect(try canonical("\(digits).5e-1000000") == "0.7777777777777778")
        #expect(throws: CofferError.self) { try canonical(digits) }
        #expect(throws: CofferError.self) { try canonical("1e\(digits)") }
        #expect(throws: CofferError.self) { try canonical("1e-\(digits)") }
    }

    @Test(
        "Errors in JSON name the byte, and nothing of what stands there",
        arguments: [
            ("{\"secret\":tru}", 10), ("{\"secret\":1,\"secret\":2}", 22), ("[\"secret\\q\"]", 8),
            ("{\"a\":\"secret\u{1}\"}", 12),
            ("[1,2", 4), ("[1 2]", 3), ("", 0), ("\"secret", 7), ("[01]", 1), ("[1.]", 3), ("[1e400]", 1), ("nul", 0),
            ("{\"secret\" 1}", 10), ("{} secret", 3), ("[-]", 2), ("\"\\ud800secret\"", 1),
        ] as [(String, Int)])
    func offsets(json: String, offset: Int) throws {
        let error = try #require(throws: CofferError.self) { try canonical(json) }
        let detail = try #require(error.detail)
        #expect(detail.hasSuffix("at byte \(offset)"), "\(detail)")
        #expect(!error.description.contains("secret"))
        #expect(error.description.hasSuffix("(400)"))
    }

    @Test("The message about a reserved key does not hold it")
    func reservedKey() {
        for refused in [
            { _ = try DocumentBody(json: Array(#"{"_secret":1}"#.utf8)) }, { _ = try DocumentBody(["_secret": 1]) },
            { _ = try DocumentBody(encoding: ["_secret": 1]) },
        ] as [() throws -> Void] {
            let error = #expect(throws: CofferError.self) { try refused() }
            #expect(error?.description.contains("secret") == false)
        }
    }

    @Test("JSON cut short anywhere, or with any byte changed, is refused or canonical")
    func mutated() throws {
        let json = Array(#" {"b" : [1, -2.50e3, null], "a\u0041\n" : {"x":"é😀","w":[true,false]}, "c":"" } "#.utf8)
        let whole = try canonical(json)
        for count in 0..<json.count - 2 {
            #expect(throws: CofferError.self) { try canonical(Array(json[..<count])) }
        }
        var random = SeededNumbers(seed: 404)
        var refused = 0
        for _ in 0..<30_000 {
            var changed = json
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let at = Int.random(in: 0..<changed.count, using: &random)
                changed[at] = UInt8.random(in: 0...255, using: &random)
            }
            guard let form = try? canonical(changed) else {
                refused += 1
                continue
            }
            #expect(same(try canonical(form), form))
            #expect(String(validating: changed, as: UTF8.self) != nil)
        }
        #expect(refused > 10_000 && refused < 30_000)
        #expect(whole == #"{"aA\n":{"w":[true,false],"x":"é😀"},"b":[1,-2500,null],"c":""}"#)
    }
}

@Suite("Random JSON") struct RandomJSONTests {
    static func string(_ random: inout SeededNumbers) -> String {
        let scalars: [Unicode.Scalar] = [
            "a", "b", "z", "\"", "\\", "/", "\n", "\u{0}", "\u{1F}", "\u{7F}", "\u{E9}", "e", "\u{301}", "\u{20AC}",
            "\u{D7FF}",
            "\u{E000}", "\u{FFFF}", "\u{10000}", "\u{1F600}", "\u{10FFFF}",
        ]
        var text = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0..<20, using: &random) {
            text.append(scalars[Int.random(in: 0..<scalars.count, using: &random)])
        }
        return String(text)
    }

    static func number(_ random: inout SeededNumbers) -> JSONNumber {
        let bits = random.next()
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return JSONNumber(Int64(bitPattern: bits))
        case 1: return JSONNumber(bits)
        case 2: return JSONNumber(Int64(bits % 1000))
        case 3: return JSONNumber(Double(Int64(bitPattern: bits) >> 40) / 64)
        default:
            let value = Double(bitPattern: bits)
            return JSONNumber(value.isFinite ? value : 0.1)
        }
    }

    static func value(_ random: inout SeededNumbers, depth: Int) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &random) {
        case 0: return .null
        case 1: return .bool(random.next() & 1 == 0)
        case 2, 3: return .number(number(&random))
        case 4, 5: return .string(string(&random))
        case 6: return .array((0..<Int.random(in: 0..<6, using: &random)).map { _ in value(&random, depth: depth - 1) })
        default: return .object(object(&random, depth: depth - 1))
        }
    }

    static func object(_ random: inout SeededNumbers, depth: Int) -> JSONObject {
        var object = JSONObject()
        for _ in 0..<Int.random(in: 0..<(random.next() % 10 == 0 ? 60 : 8), using: &random) {
            var key = string(&random)
            if key.utf8.first == UInt8(ascii: "_") { key = "x" + key }
            object[key] = value(&random, depth: depth)
        }
        return object
    }

    @Test("Random values come back equal from canonical JSON, and write the same again", arguments: 0..<20)
    func roundTrip(seed: Int) throws {
        var random = SeededNumbers(seed: UInt64(seed))
        for _ in 0..<50 {
            let object = Self.object(&random, depth: 4)
            let body = try DocumentBody(object).body
            #expect(try JSONObject(body) == object)
            #expect(try DocumentBody(json: body.bytes).body == body)
            #expect(try DocumentBody(encoding: object).body == body)
            #expect(try DocumentBody(encoding: Codable(object)).body == body)
            #expect(try JSONValue(canonical: body.bytes) == .object(object))
            #expect(try Codable(canonical: body.bytes).object == object)
            #expect(try JSONObject(body).hashValue == object.hashValue)
        }
    }

    /// Codes through the containers, as a type of one's own would.
    struct Codable: Swift.Codable {
        let object: JSONObject
        init(_ object: JSONObject) { self.object = object }
        func encode(to encoder: any Encoder) throws { try object.encode(to: encoder) }
        init(from decoder: any Decoder) throws { object = try JSONObject(from: decoder) }
    }

    @Test("A Double's digits are those of its description, and read back as the same Double")
    func digits() throws {
        var random = SeededNumbers(seed: 754)
        for _ in 0..<50_000 {
            let value = Double(bitPattern: random.next())
            guard value.isFinite else { continue }
            let text = JSONNumber(value).description
            #expect(Double(text) == value)
            #expect(try CanonicalReader.value(Array(text.utf8).span) == .number(JSONNumber(value)))
            guard JSONNumber(value).int64 == nil, JSONNumber(value).uint64 == nil else { continue }
            func digits(_ text: String) -> String {
                let significand = text.prefix { $0 != "e" }.filter(\.isNumber)
                return String(String(significand.drop { $0 == "0" }.reversed()).drop { $0 == "0" }.reversed())
            }
            #expect(digits(text) == digits(value.description))
        }
    }

    @Test("Decimals of few digits are read as the nearest Double", arguments: 0..<10)
    func decimals(seed: Int) throws {
        var random = SeededNumbers(seed: UInt64(seed))
        for _ in 0..<5_000 {
            let digits = Int.random(in: 1...20, using: &random)
            var text = String((0..<digits).map { _ in Character("\(Int.random(in: 0...9, using: &random))") })
            text.insert(".", at: text.index(text.startIndex, offsetBy: Int.random(in: 0...digits, using: &random)))
            text = (text.hasPrefix(".") ? "0" : "") + text + (text.hasSuffix(".") ? "0" : "")
            while text.hasPrefix("0"), !text.hasPrefix("0.") { text.removeFirst() }
            if random.next() & 1 == 0 { text += "e\(Int.random(in: -30...30, using: &random))" }
            if random.next() & 1 == 0 { text = "-" + text }
            let value = try #require(Double(text))
            let number = try JSONValue(canonicalText: text).numberValue
            // Beyond 2^53 an integer is exact, and the Double its nearest.
            #expect(number?.double == value)
            if abs(value) <= 0x1p53 || number?.int64 == nil && number?.uint64 == nil {
                #expect(number == JSONNumber(value))
            }
        }
    }
}

extension JSONValue {
    /// The value that any JSON says.
    init(canonicalText text: String) throws { self = try CanonicalReader.value(Array(try canonical(text).utf8).span) }
}

/// The processor time of this thread that `body` takes, whatever else the machine does.
private func processorTime(_ body: () throws -> Void) rethrows -> Duration {
    func now() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
    let start = now()
    try body()
    return now() - start
}
