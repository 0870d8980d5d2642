internal import CofferSealing
internal import Foundation

/// Encodes values straight to canonical JSON.
///
/// Dates, data, URLs, UUIDs and decimals are written as ``JSONConvertible`` says. Of two values for the same key the later
/// one counts; a value that encodes nothing is an empty object.
struct TapeEncoder: Encoder {
    /// The tape, which all containers of one document share.
    final class Recorder {
        /// Not checked for exclusive use, at every value: nothing but its own methods runs while it is being changed.
        @safe @exclusivity(unchecked) var tape = EncodingTape()
        let userInfo: () -> [CodingUserInfoKey: any Sendable]

        init(userInfo: @escaping () -> [CodingUserInfoKey: any Sendable]) { self.userInfo = userInfo }
    }

    let recorder: Recorder
    let node: Int

    var codingPath: [any CodingKey] { recorder.tape.codingPath(of: node) }
    var userInfo: [CodingUserInfoKey: Any] { recorder.userInfo() }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        recorder.tape.become(.object, node)
        return KeyedEncodingContainer(TapeKeyedContainer(recorder: recorder, node: node))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        recorder.tape.become(.array, node)
        return TapeUnkeyedContainer(recorder: recorder, node: node)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        TapeSingleValueContainer(recorder: recorder, node: node)
    }
}

extension TapeEncoder.Recorder {
    /// Adds a member or an element.
    func append<T: Encodable>(_ value: T, to parent: Int, key: String?, codingKey: any CodingKey) throws {
        // An array's elements and a dictionary's members come here.
        if let text = same(value, as: String.self) { return tape.append(text, to: parent, key: key) }
        if let value = jsonValue(of: value) { return try tape.append(value, to: parent, key: key) }
        if let failure = tape.failure { throw failure }
        let node = tape.makeNode(in: parent, key: codingKey)
        if let elements = same(value, as: [String].self) {
            // These and the next are common, and encoding themselves costs several times as much.
            tape.become(.array, node)
            for element in elements { tape.append(element, to: node, key: nil) }
        } else if let members = same(value, as: [String: String].self) {
            tape.become(.object, node)
            for (key, member) in members { tape.append(member, to: node, key: key) }
        } else {
            try value.encode(to: TapeEncoder(recorder: self, node: node))
        }
        // Not before it is known that there is a value: whoever catches its error may go on without it.
        tape.append(node, to: parent, key: key)
    }

    /// Encodes the value of a node.
    func set<T: Encodable>(_ value: T, of node: Int) throws {
        if let value = jsonValue(of: value) { return try tape.set(node, value) }
        try value.encode(to: TapeEncoder(recorder: self, node: node))
    }

    /// The value of a type that isn't encoded by its own method; nil for all others.
    private func jsonValue<T: Encodable>(of value: T) -> JSONValue? {
        // The first three only save them a container.
        if let value = same(value, as: String.self) { return value.jsonValue }
        if let value = same(value, as: Int.self) { return value.jsonValue }
        if let value = same(value, as: Double.self) { return value.jsonValue }
        if let value = same(value, as: Date.self) { return value.jsonValue }
        if let value = same(value, as: Data.self) { return value.jsonValue }
        if let value = same(value, as: URL.self) { return value.jsonValue }
        if let value = same(value, as: UUID.self) { return value.jsonValue }
        if let value = same(value, as: Decimal.self) { return value.jsonValue }
        if let value = same(value, as: JSONValue.self) { return value }
        if let value = same(value, as: JSONObject.self) { return value.jsonValue }
        if let value = same(value, as: JSONNumber.self) { return value.jsonValue }
        return nil
    }
}

/// `value`, if it is of this very type: comparing types costs nothing, casting does.
@inline(__always)
private func same<T, Other>(_ value: T, as type: Other.Type) -> Other? {
    T.self == type ? unsafe unsafeBitCast(value, to: type) : nil
}

/// An element's place in an array, for coding paths.
struct IndexKey: CodingKey {
    let index: Int

    var intValue: Int? { index }
    var stringValue: String { "Index \(index)" }

    init(_ index: Int) { self.index = index }
    init?(intValue: Int) { index = intValue }
    init?(stringValue: String) { nil }
}

/// The key of a superclass, unless it has one of its own.
let superKey = JSONKey("super")

extension DocumentBody {
    /// The document that `value` encodes itself as.
    ///
    /// - Parameter userInfo: What `encode(to:)` finds in its encoder's `userInfo`. Made when it looks there.
    /// - Throws: 400 (invalidJSON) for what isn't an object at the top level, for a number that is not finite, for too much
    ///   depth or too many bytes, and for keys that start with `_` as in ``init(json:isForeign:)``; and whatever `value`
    ///   throws itself.
    package init(
        encoding value: some Encodable,
        userInfo: @escaping @autoclosure () -> [CodingUserInfoKey: any Sendable] = [:]
    ) throws {
        let recorder = TapeEncoder.Recorder(userInfo: userInfo)
        try recorder.set(value, of: EncodingTape.root)
        let (text, reserved) = try TapeWriter.document(on: recorder.tape)
        try self.init(body: CanonicalBody(canonical: text), reserved: reserved)
    }
}
