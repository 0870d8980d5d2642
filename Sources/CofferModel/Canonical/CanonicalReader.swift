package import CofferSealing

/// Reads canonical JSON, or such with members in another order, into JSON values.
///
/// It trusts that the text was checked when it was written, and for its own safety only that: what can't have been written is
/// *damaged*, and nothing is read beyond the end. Nothing recurses, so that no depth overflows the stack.
struct CanonicalReader {
    private struct Container {
        let isObject: Bool
        /// An object's members; the value of the last one may be to come.
        var members: [JSONObject.Member] = []
        /// An array's elements.
        var elements: [JSONValue] = []
    }

    private var at = 0
    /// The innermost container that is open, and the ones around it.
    private var current: Container?
    private var outer: [Container] = []
    private var containerCount = 0

    /// So many containers get room for some members at once, which saves time. Beyond that, memory counts for more.
    private static let roomyContainerCount = 4096

    /// The value that `text` says.
    static func value(_ text: Span<UInt8>) throws(CofferError) -> JSONValue {
        var reader = CanonicalReader()
        return try reader.read(text)
    }

    private var damaged: CofferError { CofferError(.damaged, "the stored bytes are not JSON at byte \(at)") }

    private mutating func read(_ text: Span<UInt8>) throws(CofferError) -> JSONValue {
        while true {
            guard var value = try start(text) else { continue }
            // It ends, and with it perhaps the containers around it.
            while true {
                guard let isObject = current?.isObject else {
                    guard at == text.count else { throw damaged }
                    return value
                }
                if isObject { setLastMember(value) } else { current?.elements.append(value) }
                guard at < text.count else { throw damaged }
                let byte = text[at]
                at += 1
                if byte == UInt8(ascii: ",") {
                    if isObject { try readKey(text) }
                    break
                }
                guard byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { throw damaged }
                value = close()
            }
        }
    }

    private mutating func setLastMember(_ value: JSONValue) {
        guard let last = current?.members.count else { return }
        current?.members[last - 1].value = value
    }

    /// Reads a value that isn't in parts, or goes into a container, and then returns nil.
    @inline(__always)
    private mutating func start(_ text: Span<UInt8>) throws(CofferError) -> JSONValue? {
        guard at < text.count else { throw damaged }
        switch text[at] {
        case UInt8(ascii: "\""): return .string(try string(text))
        case UInt8(ascii: "{"), UInt8(ascii: "["): return try enter(text)
        case UInt8(ascii: "t"): return try literal("true", .bool(true), text)
        case UInt8(ascii: "f"): return try literal("false", .bool(false), text)
        case UInt8(ascii: "n"): return try literal("null", .null, text)
        default: return .number(try number(text))
        }
    }

    private mutating func enter(_ text: Span<UInt8>) throws(CofferError) -> JSONValue? {
        let isObject = text[at] == UInt8(ascii: "{")
        at += 1
        guard at < text.count else { throw damaged }
        if text[at] == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
            at += 1
            return isObject ? .object(JSONObject()) : .array([])
        }
        if let current {
            outer.append(current)
            guard outer.count < JSONLimits.depth else { throw damaged }
        }
        current = Container(isObject: isObject)
        if isObject {
            containerCount += 1
            if containerCount <= Self.roomyContainerCount { current?.members.reserveCapacity(8) }
            try readKey(text)
        }
        return nil
    }

    private mutating func close() -> JSONValue {
        guard let container = current.take() else { return .null }
        current = outer.popLast()
        return container.isObject
            ? .object(JSONObject(uniqueMembers: container.members)) : .array(container.elements)
    }

    private mutating func readKey(_ text: Span<UInt8>) throws(CofferError) {
        guard at < text.count, text[at] == UInt8(ascii: "\"") else { throw damaged }
        let key = try string(text)
        current?.members.append(JSONObject.Member(key: key, value: .null))
        guard at < text.count, text[at] == UInt8(ascii: ":") else { throw damaged }
        at += 1
    }

    @inline(__always)
    private mutating func string(_ text: Span<UInt8>) throws(CofferError) -> String {
        let start = at + 1
        var (end, hasEscapes) = (start, false)
        while true {
            end = text.skipUnescaped(from: end)
            guard end < text.count, text[end] >= 0x20 else { throw damaged }
            if text[end] == UInt8(ascii: "\"") { break }
            hasEscapes = true
            end += 2
        }
        at = end + 1
        guard hasEscapes else { return String(utf8: text.extracting(start..<end)) }
        var bytes: [UInt8] = []
        bytes.append(unescaping: text.extracting(start..<end))
        return String(utf8: bytes.span)
    }

    private mutating func number(_ text: Span<UInt8>) throws(CofferError) -> JSONNumber {
        var failure = at
        guard let literal = NumberLiteral(in: text, at: at, failure: &failure), let value = literal.value(in: text)
        else { throw damaged }
        at = literal.end
        return value
    }

    private mutating func literal(
        _ literal: StaticString, _ value: JSONValue, _ text: Span<UInt8>
    ) throws(CofferError) -> JSONValue {
        guard text.hasBytes(of: literal, at: at) else { throw damaged }
        at += literal.utf8CodeUnitCount
        return value
    }
}

extension JSONObject {
    /// The object that canonical JSON says.
    ///
    /// - Throws: *damaged* (500), where `json` cannot have been written by Coffer.
    package init(canonical json: Span<UInt8>) throws(CofferError) {
        guard let object = try CanonicalReader.value(json).objectValue else {
            throw CofferError(.damaged, "the stored bytes are not a JSON object")
        }
        self = object
    }

    /// The object that canonical JSON says.
    package init(_ body: CanonicalBody) throws(CofferError) { try self.init(canonical: body.bytes.span) }
}
