package import CofferSealing

extension CollationKey {
    /// The value that a key's bytes say.
    ///
    /// - Throws: `damaged` (500) for bytes that Coffer doesn't write.
    package static func value(_ bytes: [UInt8]) throws(CofferError) -> JSONValue {
        var reader = CollationKeyReader(bytes)
        let value = try reader.readValue()
        guard reader.isAtEnd else { throw .damagedKey }
        return value
    }
}

/// Reads the bytes of a ``CollationKey``. Nothing recurses, so that no depth overflows the stack.
private struct CollationKeyReader {
    private let bytes: [UInt8]
    private var at = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { at == bytes.count }

    /// A container that is being read.
    private enum Container {
        case array([JSONValue])
        case object([JSONObject.Member])
    }

    mutating func readValue() throws(CofferError) -> JSONValue {
        var open: [Container] = []
        while true {
            guard var value = try readScalar(&open) else { continue }
            while true {
                guard let container = open.popLast() else { return value }
                switch container {
                case .array(var elements):
                    elements.append(value)
                    open.append(.array(elements))
                case .object(var members):
                    members[members.count - 1].value = value
                    open.append(.object(members))
                }
                guard let closed = try close(&open) else { break }
                value = closed
            }
        }
    }

    /// A value that isn't in parts, or is an empty container; nil when it goes into a container.
    private mutating func readScalar(_ open: inout [Container]) throws(CofferError) -> JSONValue? {
        switch try readTag() {
        case .null: return .null
        case .false: return .bool(false)
        case .true: return .bool(true)
        case .number: return .number(try readNumber())
        case .string: return .string(try readString())
        case .array: open.append(.array([]))
        case .object: open.append(.object([]))
        case .end, .absent: throw .damagedKey
        }
        guard open.count <= JSONLimits.depth else { throw .damagedKey }
        return try close(&open)
    }

    /// Reads the end of the innermost container, if it is there, or the key of an object's next member.
    private mutating func close(_ open: inout [Container]) throws(CofferError) -> JSONValue? {
        guard at < bytes.count else { throw .damagedKey }
        let isEnd = bytes[at] == CollationKey.Tag.end.rawValue
        switch open.removeLast() {
        case .array(let elements):
            if isEnd {
                at += 1
                return .array(elements)
            }
            open.append(.array(elements))
        case .object(var members):
            if isEnd {
                at += 1
                return .object(JSONObject(uniqueMembers: members))
            }
            guard try readTag() == .string else { throw .damagedKey }
            let key = try readString()
            // Sorted, so that no key comes twice.
            if let last = members.last {
                let isSorted = last.key.withBytes { last in key.withBytes { compareBytes(last, $0) < 0 } }
                guard isSorted else { throw .damagedKey }
            }
            members.append(JSONObject.Member(key: key, value: .null))
            open.append(.object(members))
        }
        return nil
    }

    private mutating func readTag() throws(CofferError) -> CollationKey.Tag {
        guard at < bytes.count, let tag = CollationKey.Tag(rawValue: bytes[at]) else { throw .damagedKey }
        at += 1
        return tag
    }

    private mutating func readString() throws(CofferError) -> String {
        var text: [UInt8] = []
        while true {
            var end = at
            while end < bytes.count, bytes[end] > CollationKey.escape { end += 1 }
            guard end < bytes.count else { throw .damagedKey }
            if text.isEmpty && bytes[end] == CollationKey.Tag.end.rawValue {
                // Without an escape it stands there as it is.
                let range = at..<end
                at = end + 1
                return try Self.string(bytes.span.extracting(range))
            }
            text += bytes[at..<end]
            at = end + 1
            if bytes[end] == CollationKey.Tag.end.rawValue { break }
            guard at < bytes.count, bytes[at] == 1 || bytes[at] == 2 else { throw .damagedKey }
            text.append(bytes[at] - 1)
            at += 1
        }
        return try Self.string(text.span)
    }

    private static func string(_ bytes: Span<UInt8>) throws(CofferError) -> String {
        let string = String(utf8: bytes)
        // What isn't UTF-8 was replaced by something that is.
        guard string.withBytes({ haveSameBytes($0, bytes) }) else { throw .damagedKey }
        return string
    }

    private mutating func readNumber() throws(CofferError) -> JSONNumber {
        guard bytes.count - at >= 10 else { throw .damagedKey }
        var (sortable, rest) = (UInt64(0), UInt16(0))
        for index in at..<at + 8 { sortable = sortable << 8 | UInt64(bytes[index]) }
        for index in at + 8..<at + 10 { rest = rest << 8 | UInt16(bytes[index]) }
        at += 10
        let double = Double(bitPattern: sortable >> 63 == 1 ? sortable ^ 1 << 63 : ~sortable)
        guard double.isFinite else { throw .damagedKey }
        if rest == 0 { return JSONNumber(double) }
        guard abs(double) <= 0x1p64 else { throw .damagedKey }
        let integer = Int128(double) + Int128(rest)
        if let signed = Int64(exactly: integer) { return JSONNumber(signed) }
        guard let unsigned = UInt64(exactly: integer) else { throw .damagedKey }
        return JSONNumber(unsigned)
    }
}

extension CofferError {
    fileprivate static var damagedKey: CofferError {
        CofferError(.damaged, "a key of an index is not what was written")
    }
}
