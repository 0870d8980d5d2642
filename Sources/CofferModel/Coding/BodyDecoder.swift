internal import CofferSealing
internal import Foundation

/// Decodes values from canonical JSON.
///
/// Keys are compared as bytes; integers are exact, and a number that a type doesn't have is an error, never rounded to it
/// (a `Double` is the nearest one). Dates, data, URLs, UUIDs and decimals are read as ``JSONConvertible`` says.
struct BodyDecoder: Decoder {
    /// The document, which all containers share.
    final class Source {
        let index: BodyIndex
        let userInfo: () -> [CodingUserInfoKey: any Sendable]

        init(_ json: [UInt8], userInfo: @escaping () -> [CodingUserInfoKey: any Sendable]) throws(CofferError) {
            index = try BodyIndex(json)
            self.userInfo = userInfo
        }
    }

    let source: Source
    let node: Int

    var codingPath: [any CodingKey] { source.index.path(to: node) }
    var userInfo: [CodingUserInfoKey: Any] { source.userInfo() }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(try BodyKeyedContainer(source: source, node: node))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try BodyUnkeyedContainer(source: source, node: node)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        BodySingleValueContainer(source: source, node: node)
    }
}

extension BodyDecoder.Source {
    func isNull(_ node: Int) -> Bool { index.nodes[node].kind == .null }

    func bool(_ node: Int) throws -> Bool {
        guard index.nodes[node].kind == .bool else { throw mismatch(Bool.self, node) }
        return index.bytes[Int(index.nodes[node].start)] == UInt8(ascii: "t")
    }

    func string(_ node: Int) throws -> String {
        let kind = index.nodes[node].kind
        guard kind == .string || kind == .escapedString else { throw mismatch(String.self, node) }
        return index.string(node)
    }

    func number(_ node: Int, _ type: Any.Type) throws -> JSONNumber {
        guard index.nodes[node].kind == .number else { throw mismatch(type, node) }
        guard let number = index.number(node) else { throw corrupted("a number out of range", node) }
        return number
    }

    func integer<I: FixedWidthInteger>(_ node: Int) throws -> I {
        guard let value = try number(node, I.self).integer(I.self) else {
            throw corrupted("the number is not one of \(I.self)", node)
        }
        return value
    }

    func double(_ node: Int) throws -> Double { try number(node, Double.self).double }

    func float(_ node: Int) throws -> Float {
        guard let value = Float(jsonValue: .number(try number(node, Float.self))) else {
            throw corrupted("the number is not one of Float", node)
        }
        return value
    }

    func decode<T: Decodable>(_ type: T.Type, _ node: Int) throws -> T {
        if let convertible = Self.convertible(type) {
            if isNull(node), type != JSONValue.self { throw mismatch(type, node) }
            guard let value = convertible.init(jsonValue: try index.value(node)) as? T else {
                throw corrupted("the value is not one of \(type)", node)
            }
            return value
        }
        return try T(from: BodyDecoder(source: self, node: node))
    }

    /// The types that aren't decoded by their own method.
    private static func convertible(_ type: Any.Type) -> (any JSONConvertible.Type)? {
        if type == Date.self { return Date.self }
        if type == Data.self { return Data.self }
        if type == URL.self { return URL.self }
        if type == UUID.self { return UUID.self }
        if type == Decimal.self { return Decimal.self }
        if type == JSONValue.self { return JSONValue.self }
        if type == JSONObject.self { return JSONObject.self }
        if type == JSONNumber.self { return JSONNumber.self }
        return nil
    }

    // MARK: Errors

    func context(_ what: String, _ node: Int) -> DecodingError.Context {
        DecodingError.Context(codingPath: index.path(to: node), debugDescription: what)
    }

    func corrupted(_ what: String, _ node: Int) -> DecodingError { .dataCorrupted(context(what, node)) }

    func mismatch(_ type: Any.Type, _ node: Int) -> DecodingError {
        switch index.nodes[node].kind {
        case .null: .valueNotFound(type, context("null instead of a value", node))
        case .bool: .typeMismatch(type, context("a Boolean instead of \(type)", node))
        case .number: .typeMismatch(type, context("a number instead of \(type)", node))
        case .string, .escapedString: .typeMismatch(type, context("a string instead of \(type)", node))
        case .array: .typeMismatch(type, context("an array instead of \(type)", node))
        case .object: .typeMismatch(type, context("an object instead of \(type)", node))
        }
    }
}

extension Decodable {
    /// The value that canonical JSON says.
    ///
    /// - Parameter userInfo: What `init(from:)` finds in its decoder's `userInfo`. Made when it looks there.
    /// - Throws: `DecodingError`, where the JSON says no such value; *damaged* (500), where `json` cannot have been written
    ///   by Coffer; and whatever the type throws itself.
    package init(
        canonical json: [UInt8], userInfo: @escaping @autoclosure () -> [CodingUserInfoKey: any Sendable] = [:]
    ) throws {
        self = try BodyDecoder.Source(json, userInfo: userInfo).decode(Self.self, 0)
    }
}
