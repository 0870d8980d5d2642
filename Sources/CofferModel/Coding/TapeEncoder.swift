internal import CofferSealing
internal import Foundation

/// Encodes values straight to canonical JSON.
///
/// Dates, data, URLs, UUIDs and decimals are written as ``JSONConvertible`` says. Of two values for the same key the later
/// one counts; a value that encodes nothing is an empty object.
struct TapeEncoder: Encoder {
    /// The tape, which all containers of one document share.
    final class Recorder {
        var tape = EncodingTape()
        let userInfo: [CodingUserInfoKey: any Sendable]

        init(userInfo: [CodingUserInfoKey: any Sendable]) { self.userInfo = userInfo }
    }

    let recorder: Recorder
    let node: Int

    var codingPath: [any CodingKey] { recorder.tape.codingPath(of: node) }
    var userInfo: [CodingUserInfoKey: Any] { recorder.userInfo }

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
        if let value = jsonValue(of: value) { return try tape.append(value, to: parent, key: key) }
        if let failure = tape.failure { throw failure }
        let node = tape.makeNode(in: parent, key: codingKey)
        try value.encode(to: TapeEncoder(recorder: self, node: node))
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
        // Comparing types costs nothing, casting does. The first three only save them a container: an array's elements come here.
        if T.self == String.self { return (value as? String)?.jsonValue }
        if T.self == Int.self { return (value as? Int)?.jsonValue }
        if T.self == Double.self { return (value as? Double)?.jsonValue }
        if T.self == Date.self { return (value as? Date)?.jsonValue }
        if T.self == Data.self { return (value as? Data)?.jsonValue }
        if T.self == URL.self { return (value as? URL)?.jsonValue }
        if T.self == UUID.self { return (value as? UUID)?.jsonValue }
        if T.self == Decimal.self { return (value as? Decimal)?.jsonValue }
        if T.self == JSONValue.self { return value as? JSONValue }
        if T.self == JSONObject.self { return (value as? JSONObject)?.jsonValue }
        if T.self == JSONNumber.self { return (value as? JSONNumber)?.jsonValue }
        return nil
    }
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
    /// - Parameter userInfo: What `encode(to:)` finds in its encoder's `userInfo`.
    /// - Throws: 400 (invalidJSON) for what isn't an object at the top level, for a number that is not finite, for too much
    ///   depth or too many bytes, and for keys that start with `_` as in ``init(json:)-(Span<UInt8>)``; and whatever `value`
    ///   throws itself.
    package init(encoding value: some Encodable, userInfo: [CodingUserInfoKey: any Sendable] = [:]) throws {
        let recorder = TapeEncoder.Recorder(userInfo: userInfo)
        try recorder.set(value, of: EncodingTape.root)
        let writer = try TapeWriter(document: recorder.tape)
        try self.init(body: CanonicalBody(canonical: writer.text), reserved: writer.reserved)
    }
}
