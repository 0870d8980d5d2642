import CofferSealing
import Testing

@testable import CofferModel

/// Values cost many times what their text does, so documents are bounded in both.
@Suite("The limit of a document's values") struct ValueLimitTests {
    /// An object with an array of so many elements is that many values and two more.
    private static let largest = JSONLimits.valueCount - 2

    private static func json(elementCount: Int, of element: String = "0") -> [UInt8] {
        var text = Array("{\"a\":[".utf8)
        for number in 0..<elementCount {
            if number > 0 { text.append(UInt8(ascii: ",")) }
            text += element.utf8
        }
        return text + Array("]}".utf8)
    }

    private func expectRefusal(_ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) {
        let error = #expect(throws: CofferError.self, sourceLocation: sourceLocation) { try body() }
        #expect(error?.code == .invalidJSON, sourceLocation: sourceLocation)
        #expect(error?.detail?.hasSuffix("values") == true, sourceLocation: sourceLocation)
    }

    @Test("A document in JSON has as many values as the limit, and not one more")
    func text() throws {
        #expect(try DocumentBody(json: Self.json(elementCount: Self.largest)).body.bytes.count > Self.largest)
        expectRefusal { _ = try DocumentBody(json: Self.json(elementCount: Self.largest + 1)) }
        expectRefusal { _ = try DocumentBody(json: Self.json(elementCount: Self.largest + 1), isForeign: true) }
        expectRefusal { _ = try JSONValue(json: Self.json(elementCount: Self.largest + 1)) }
    }

    @Test("A document of values has as many as the limit, and not one more")
    func values() throws {
        let array = Array(repeating: JSONValue.number(0), count: Self.largest)
        _ = try DocumentBody(["a": .array(array)])
        expectRefusal { _ = try DocumentBody(["a": .array(array + [nil])]) }
    }

    @Test("A document that a type encodes has as many values as the limit, and not one more")
    func encodable() throws {
        let numbers = Array(repeating: 0, count: Self.largest)
        _ = try DocumentBody(encoding: ["a": numbers])
        expectRefusal { _ = try DocumentBody(encoding: ["a": numbers + [0]]) }
        // Values within a whole JSON value count, too.
        let half = JSONValue.array(Array(repeating: .null, count: JSONLimits.valueCount / 2))
        expectRefusal { _ = try DocumentBody(encoding: ["a": half, "b": half]) }
    }

    @Test("Empty containers, members and deep containers all count", arguments: ["[]", "{}", "{\"b\":0}", "[[0]]"])
    func kinds(element: String) throws {
        let valueCount = element.filter { "[{0".contains($0) }.count
        let fitting = (JSONLimits.valueCount - 2) / valueCount
        let text = try #require(
            try CheckedJSON(Self.json(elementCount: fitting, of: element), valueLimit: JSONLimits.valueCount))
        #expect(text.valueCount == fitting * valueCount + 2)
        #expect(
            try CheckedJSON(Self.json(elementCount: fitting + 1, of: element), valueLimit: JSONLimits.valueCount) == nil
        )
    }

    @Test("A text with too many values is told from one that is no JSON")
    func checked() throws {
        #expect(try CheckedJSON(Array("[1,2,3]".utf8), valueLimit: 3) == nil)
        #expect(try CheckedJSON(Array("[1,2,3]".utf8), valueLimit: 4)?.value() == [1, 2, 3])
        #expect(try CheckedJSON(Array(" [ 1 ,2.0]".utf8), valueLimit: 4)?.value() == [1, 2])
        #expect(throws: CofferError.self) { try CheckedJSON(Array("[1,2".utf8), valueLimit: 3) }
    }

    @Test("A stored value is read whatever number of values it has")
    func stored() throws {
        let json = Self.json(elementCount: Self.largest + 1)
        let body = try DocumentBody(json: json, valueLimit: JSONLimits.storedValueCount).body
        #expect(try JSONObject(body)["a"]?.arrayValue?.count == Self.largest + 1)
        #expect(CanonicalBody.isStored(json))
        #expect(try JSONValue.object(JSONObject(body)).canonicalJSON() == json)
        #expect(try [String: [Int]](canonical: json)["a"]?.count == Self.largest + 1)
    }
}
