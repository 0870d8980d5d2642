package import CofferSealing

/// Reads canonical JSON, or such with members in another order, into JSON values.
///
/// It trusts that the text was checked when it was written, and for its own safety only that: what can't have been written is
/// *damaged*, and nothing is read beyond the end.
struct CanonicalReader {
    private var at = 0
    private var depth = 0

    /// The value that `text` says.
    static func value(_ text: Span<UInt8>) throws(CofferError) -> JSONValue {
        var reader = CanonicalReader()
        let value = try reader.value(text)
        guard reader.at == text.count else { throw reader.damaged }
        return value
    }

    private var damaged: CofferError { CofferError(.damaged, "what is stored is not JSON at byte \(at)") }

    private mutating func value(_ text: Span<UInt8>) throws(CofferError) -> JSONValue {
        guard at < text.count else { throw damaged }
        switch text[at] {
        case UInt8(ascii: "\""): return .string(try string(text))
        case UInt8(ascii: "{"): return .object(try object(text))
        case UInt8(ascii: "["): return .array(try array(text))
        case UInt8(ascii: "t"): return try literal("true", .bool(true), text)
        case UInt8(ascii: "f"): return try literal("false", .bool(false), text)
        case UInt8(ascii: "n"): return try literal("null", .null, text)
        default: return .number(try number(text))
        }
    }

    private mutating func literal(
        _ literal: StaticString, _ value: JSONValue, _ text: Span<UInt8>
    ) throws(CofferError) -> JSONValue {
        guard text.hasBytes(of: literal, at: at) else { throw damaged }
        at += literal.utf8CodeUnitCount
        return value
    }

    private mutating func object(_ text: Span<UInt8>) throws(CofferError) -> JSONObject {
        try enter()
        var members: [JSONObject.Member] = []
        while try next(text, isFirst: members.isEmpty, end: UInt8(ascii: "}")) {
            guard at < text.count, text[at] == UInt8(ascii: "\"") else { throw damaged }
            let key = try string(text)
            guard at < text.count, text[at] == UInt8(ascii: ":") else { throw damaged }
            at += 1
            members.append(JSONObject.Member(key: key, value: try value(text)))
        }
        depth -= 1
        return JSONObject(uniqueMembers: members)
    }

    private mutating func array(_ text: Span<UInt8>) throws(CofferError) -> [JSONValue] {
        try enter()
        var elements: [JSONValue] = []
        while try next(text, isFirst: elements.isEmpty, end: UInt8(ascii: "]")) { elements.append(try value(text)) }
        depth -= 1
        return elements
    }

    private mutating func enter() throws(CofferError) {
        at += 1
        depth += 1
        guard depth <= JSONLimits.depth else { throw damaged }
    }

    /// Steps over the comma to the next element, or over the closing bracket.
    @inline(__always)
    private mutating func next(_ text: Span<UInt8>, isFirst: Bool, end: UInt8) throws(CofferError) -> Bool {
        guard at < text.count else { throw damaged }
        if text[at] == end {
            at += 1
            return false
        }
        if isFirst { return true }
        guard text[at] == UInt8(ascii: ",") else { throw damaged }
        at += 1
        return true
    }

    @inline(__always)
    private mutating func string(_ text: Span<UInt8>) throws(CofferError) -> String {
        let start = at + 1
        var (end, hasEscapes) = (start, false)
        while end < text.count, text[end] != UInt8(ascii: "\"") {
            if text[end] == UInt8(ascii: "\\") {
                hasEscapes = true
                end += 1
            }
            end += 1
        }
        guard end < text.count else { throw damaged }
        at = end + 1
        guard hasEscapes else { return String(utf8: text.extracting(start..<end)) }
        var bytes: [UInt8] = []
        bytes.append(unescaping: text.extracting(start..<end))
        return String(utf8: bytes.span)
    }

    private mutating func number(_ text: Span<UInt8>) throws(CofferError) -> JSONNumber {
        var failure = at
        guard let literal = NumberLiteral(in: text, at: at, failure: &failure), let value = literal.value(in: text)
        else {
            throw damaged
        }
        at = literal.end
        return value
    }
}

extension JSONObject {
    /// The object that canonical JSON says.
    ///
    /// - Throws: *damaged* (500), where `json` cannot have been written by Coffer.
    package init(canonical json: Span<UInt8>) throws(CofferError) {
        guard let object = try CanonicalReader.value(json).objectValue else {
            throw CofferError(.damaged, "what is stored is not a JSON object")
        }
        self = object
    }

    /// The object that canonical JSON says.
    package init(_ body: CanonicalBody) throws(CofferError) { try self.init(canonical: body.bytes.span) }
}
