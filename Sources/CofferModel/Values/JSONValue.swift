package import CofferSealing

/// One value of a JSON document.
///
/// Literals are values: `["name": "Robin", "tags": ["a", "b"], "age": 31, "nickname": nil]`. Swift values become JSON
/// values and back by ``JSONConvertible``. Strings and keys are compared and hashed as their UTF-8 bytes, so that two
/// strings that only look alike stay two; numbers by what they are worth (see ``JSONNumber``).
public enum JSONValue: Sendable {
    /// JSON's `null`: a member that is there and has no value.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number.
    case number(JSONNumber)
    /// A string.
    case string(String)
    /// A list of values.
    case array([JSONValue])
    /// An object: members with keys.
    case object(JSONObject)
    /// Content that is kept in a file of its own; see ``Blob``.
    case blob(Blob)
}

extension JSONValue: Hashable {
    /// Whether both are the same value: strings byte for byte, objects regardless of the order of their members.
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): haveSameBytes(left, right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        case (.blob(let left), .blob(let right)): left == right
        case (.null, _), (.bool, _), (.number, _), (.string, _), (.array, _), (.object, _), (.blob, _): false
        }
    }

    /// Hashes what `==` compares.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0 as UInt8)
        case .bool(let value): hasher.combine(value ? 2 : 1 as UInt8)
        case .number(let value):
            hasher.combine(3 as UInt8)
            hasher.combine(value)
        case .string(let value):
            hasher.combine(4 as UInt8)
            value.hashBytes(into: &hasher)
        case .array(let value):
            hasher.combine(5 as UInt8)
            hasher.combine(value)
        case .object(let value):
            hasher.combine(6 as UInt8)
            hasher.combine(value)
        case .blob(let value):
            hasher.combine(7 as UInt8)
            hasher.combine(value)
        }
    }
}

extension JSONValue: CustomStringConvertible {
    /// The value as canonical JSON. One that JSON cannot say, for a number in it that is not finite, or a blob that was not
    /// saved, says only that.
    public var description: String {
        guard let text = try? CanonicalWriter.text(of: self) else { return "a value that JSON can't express" }
        return String(decoding: text, as: UTF8.self)
    }
}

extension JSONValue {
    /// The value that a Swift value becomes.
    public init(_ value: some JSONConvertible) { self = value.jsonValue }

    /// Whether this is JSON's `null`.
    public var isNull: Bool {
        if case .null = self { true } else { false }
    }

    /// The Boolean, or nil if the value is not a Boolean.
    public var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The number, or nil if the value is not a number.
    public var numberValue: JSONNumber? {
        if case .number(let value) = self { value } else { nil }
    }

    /// The number as an integer, or nil if the value is not a number, has a fraction, or is out of range.
    public var intValue: Int? { Int(jsonValue: self) }

    /// The number as a double, or nil if the value is not a number.
    public var doubleValue: Double? { Double(jsonValue: self) }

    /// The string, or nil if the value is not a string.
    public var stringValue: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The list, or nil if the value is not a list.
    public var arrayValue: [JSONValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The object, or nil if the value is not an object.
    public var objectValue: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }

    /// The member of that key; nil if there isn't one, or where the value is not an object.
    ///
    /// Setting nil removes the member. A value that is not an object stays as it is: `object["address"]?["street"] =
    /// "…"` changes an address that is there and is an object, and nothing else.
    public subscript(key: String) -> JSONValue? {
        get { objectValue?[key] }
        set {
            guard case .object(var object) = self else { return }
            self = .null  // so that `object` is the only owner, and isn't copied
            object[key] = newValue
            self = .object(object)
        }
    }

    /// The member of that key as a Swift value; nil if there isn't one, or one of another type.
    @_disfavoredOverload
    public subscript<T: JSONConvertible>(key: String) -> T? {
        get { self[key].flatMap { T(jsonValue: $0) } }
        set { self[key] = newValue?.jsonValue }
    }

    /// The element at that place of the list; nil if there isn't one, or where the value is not a list.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }
}

extension JSONValue: Comparable {
    /// Whether the left value comes first, as in a view or an index: null, false, true, numbers, strings, lists, objects.
    ///
    /// Numbers by what they are worth, strings by their bytes in UTF-8, lists element by element, objects member by member in
    /// the order of their keys. What JSON can't say, such as a number that is not finite, comes before everything else.
    public static func < (left: JSONValue, right: JSONValue) -> Bool {
        left.bytesToCompare.lexicographicallyPrecedes(right.bytesToCompare)
    }

    private var bytesToCompare: [UInt8] { (try? CollationKey(self).bytes) ?? [] }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// JSON's `null`.
    public init(nilLiteral: ()) { self = .null }

    /// `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    /// A number, from a literal such as `42`.
    public init(integerLiteral value: Int64) { self = .number(JSONNumber(value)) }

    /// A number, from a literal such as `0.5`.
    public init(floatLiteral value: Double) { self = .number(JSONNumber(value)) }

    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }

    /// A list.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

    /// An object. Two members of the same key are a programming error.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(JSONObject(uniqueKeysWithValues: members))
    }
}

extension JSONValue: Codable {
    /// Reads whatever is there.
    public init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: JSONKey.self) {
            self = .object(try JSONObject(from: container))
        } else if var container = try? decoder.unkeyedContainer() {
            var elements: [JSONValue] = []
            while !container.isAtEnd { elements.append(try container.decode(JSONValue.self)) }
            self = .array(elements)
        } else {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let value = try? container.decode(Bool.self) {
                self = .bool(value)
            } else if let value = try? container.decode(String.self) {
                self = .string(value)
            } else {
                self = .number(try container.decode(JSONNumber.self))
            }
        }
    }

    /// Writes the value as it is.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .object(let object): try object.encode(to: encoder)
        case .blob(let blob): try blob.encode(to: encoder)
        case .array(let elements):
            var container = encoder.unkeyedContainer()
            for element in elements { try container.encode(element) }
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value):
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case .number(let value): try value.encode(to: encoder)
        case .string(let value):
            var container = encoder.singleValueContainer()
            try container.encode(value)
        }
    }
}

/// A member's key, for coders.
struct JSONKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ text: String) { stringValue = text }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension JSONValue {
    /// The value that `json` says, in UTF-8.
    ///
    /// - Throws: `invalidJSON` (400), as for a document: for more values than ``JSONLimits/valueCount``, too.
    package init(json: some Sequence<UInt8>) throws(CofferError) {
        guard let text = try CheckedJSON(Array(json), valueLimit: JSONLimits.valueCount) else { throw .tooManyValues }
        self = try text.value()
    }

    /// The value that ``canonicalJSON()`` wrote.
    ///
    /// - Throws: `damaged` (500), where it can't have.
    package init(canonicalJSON json: [UInt8]) throws(CofferError) { self = try CanonicalReader.value(json.span) }

    /// The value in canonical form.
    ///
    /// - Throws: `invalidJSON` (400) for a number that is not finite, and for more depth than JSON may have;
    ///   `invalidAttachment` (400) for a blob that was not saved.
    package func canonicalJSON() throws(CofferError) -> [UInt8] { try CanonicalWriter.text(of: self) }

    /// The same of a message with documents in it, each of which may be as deep as any.
    package func messageJSON() throws(CofferError) -> [UInt8] {
        try CanonicalWriter.text(of: self, frameDepth: JSONLimits.frameDepth)
    }
}

/// Text that is JSON, and how many values it holds: what it costs to read them is known before any memory is taken for them.
package struct CheckedJSON: Sendable {
    private let text: [UInt8]

    /// How many values there are, containers included.
    package let valueCount: Int

    /// Nil for more than `valueLimit` values, as soon as so many have been met.
    ///
    /// - Throws: `invalidJSON` (400) for what is not JSON, or has too many bytes or too much depth.
    package init?(_ json: [UInt8], valueLimit: Int) throws(CofferError) {
        var canonicalizer = Canonicalizer(.value, valueLimit: valueLimit)
        do throws(CofferError) {
            try canonicalizer.scan(json.span)
        } catch {
            if canonicalizer.isOverLimit { return nil }
            throw error
        }
        valueCount = canonicalizer.valueCount
        // Without a copy, where nothing needs to be put in another form for those who read it.
        text = canonicalizer.isNormalized ? json : canonicalizer.normalized(json.span)
    }

    /// The value that it says.
    package func value() throws(CofferError) -> JSONValue { try CanonicalReader.value(text.span) }
}

/// What may not be there, such as a property, and what is in it: `document["address"]["lines"][0]` instead of
/// `document["address"]?["lines"]?[0]`.
extension Optional<JSONValue> {
    /// The member of that key, or nil if the value is missing, is not an object, or has no such member.
    public subscript(key: String) -> JSONValue? {
        flatMap { value in value[key] }
    }

    /// The element at that place, or nil if the value is missing, is not a list, or is shorter.
    public subscript(index: Int) -> JSONValue? {
        flatMap { value in value[index] }
    }
}
