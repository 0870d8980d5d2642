package import CofferSealing

/// A JSON value as bytes that sort as values do, and that say the value again.
///
/// null, false, true, numbers, strings, arrays, objects. Numbers by what they are worth, each exactly; strings by code
/// points, which is the order of their bytes in UTF-8; arrays element by element, and one that another begins with before
/// that; objects member by member, key before value, their members sorted by key. docs/FORMAT.md has the bytes.
package struct CollationKey: Sendable, Hashable {
    /// The bytes. None is a proper prefix of another's.
    package let bytes: [UInt8]

    /// - Throws: `invalidJSON` (400) for a number that isn't finite, and for more depth than JSON may have;
    ///   `invalidAttachment` (400) for a blob that was not saved.
    package init(_ value: JSONValue) throws(CofferError) {
        var bytes: [UInt8] = []
        try Self.append(value, to: &bytes)
        self.bytes = bytes
    }

    /// A key of several values, one after another; nil stands for one that isn't there, and sorts before all others.
    package init(of values: [JSONValue?]) throws(CofferError) {
        var bytes: [UInt8] = []
        for value in values {
            if let value { try Self.append(value, to: &bytes) } else { bytes.append(Tag.absent.rawValue) }
        }
        self.bytes = bytes
    }

    /// What each value's bytes begin with.
    enum Tag: UInt8 {
        /// The end of an array or object.
        case end = 0x00
        case absent = 0x08
        case null = 0x10
        case `false` = 0x20
        case `true` = 0x21
        case number = 0x30
        case string = 0x40
        case array = 0x50
        case object = 0x60
    }

    /// More than any byte that a value's bytes begin with, and that a string may go on with: a bound above all that begin
    /// with what stands before it.
    package static let aboveAll: UInt8 = 0xFF

    // MARK: Writing

    /// A container that is being written.
    private enum Container {
        case array(ArraySlice<JSONValue>)
        case object(ArraySlice<JSONObject.Member>)
    }

    private static func append(_ value: JSONValue, to bytes: inout [UInt8]) throws(CofferError) {
        var open: [Container] = []
        var value = value
        while true {
            switch value {
            case .null: bytes.append(Tag.null.rawValue)
            case .bool(let flag): bytes.append((flag ? Tag.true : Tag.false).rawValue)
            case .number(let number): try append(number, to: &bytes)
            case .string(let string):
                bytes.append(Tag.string.rawValue)
                append(string, to: &bytes)
            case .array(let elements):
                bytes.append(Tag.array.rawValue)
                open.append(.array(elements[...]))
            case .object(let object):
                bytes.append(Tag.object.rawValue)
                open.append(.object(sorted(object)[...]))
            case .blob(let blob):
                guard let reference = blob.reference else { throw .unsavedBlob }
                bytes.append(Tag.object.rawValue)
                open.append(.object(sorted(reference.object)[...]))
            }
            guard open.count <= JSONLimits.depth else { throw .tooDeep }
            guard let next = next(&open, &bytes) else { return }
            value = next
        }
    }

    /// The next value within the innermost container that has one left; nil when all have ended.
    private static func next(_ open: inout [Container], _ bytes: inout [UInt8]) -> JSONValue? {
        while let container = open.popLast() {
            switch container {
            case .array(var elements):
                if let element = elements.popFirst() {
                    open.append(.array(elements))
                    return element
                }
            case .object(var members):
                if let member = members.popFirst() {
                    open.append(.object(members))
                    bytes.append(Tag.string.rawValue)
                    append(member.key, to: &bytes)
                    return member.value
                }
            }
            bytes.append(Tag.end.rawValue)
        }
        return nil
    }

    private static func sorted(_ object: JSONObject) -> [JSONObject.Member] {
        object.members.sorted { left, right in
            left.key.withBytes { left in right.key.withBytes { right in compareBytes(left, right) } } < 0
        }
    }

    /// What stands for U+0000 and U+0001 in a string, with one more byte: a zero alone ends it.
    static let escape: UInt8 = 0x01

    private static func append(_ string: String, to bytes: inout [UInt8]) {
        string.withBytes { text in
            var start = 0
            while let low = (start..<text.count).first(where: { text[$0] <= escape }) {
                bytes.append(copying: text.extracting(start..<low))
                bytes.append(escape)
                bytes.append(text[low] + 1)
                start = low + 1
            }
            bytes.append(copying: text.extracting(start...))
        }
        bytes.append(Tag.end.rawValue)
    }

    /// The largest `Double` that is not above the number, then how much above that it is: 0 but for integers from 2^53 on.
    private static func append(_ number: JSONNumber, to bytes: inout [UInt8]) throws(CofferError) {
        guard number.isFinite else { throw .notFinite }
        var (double, rest) = (number.double, UInt16(0))
        if let integer = number.int64.map({ Int128($0) }) ?? number.uint64.map({ Int128($0) }) {
            if Int128(double) > integer { double = double.nextDown }
            rest = UInt16(truncatingIfNeeded: integer - Int128(double))
        }
        let bits = double.bitPattern
        // Negative numbers sort backwards by their bits, and before the others.
        let sortable = bits >> 63 == 1 ? ~bits : bits | 1 << 63
        bytes.append(Tag.number.rawValue)
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: sortable >> UInt64(shift)))
        }
        bytes.append(UInt8(truncatingIfNeeded: rest >> 8))
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }
}

extension CollationKey {
    /// The least bytes that are above all keys which begin like this one.
    ///
    /// At level 1 those are, for a string, the strings that begin with it, and for an array the arrays that begin with its
    /// elements. At level 2 an array's last element may be a string of which only the beginning is meant, and so on. Other
    /// values begin nothing but themselves.
    package static func upperBound(ofPrefix value: JSONValue, level: Int) throws(CofferError) -> [UInt8] {
        let bytes = try CollationKey(value).bytes
        return bytes.dropLast(openCount(value, level: level)) + [aboveAll]
    }

    /// How many bytes that end something are dropped from the end of the value's, for others to go on there.
    private static func openCount(_ value: JSONValue, level: Int) -> Int {
        var (value, level, count) = (value, level, 0)
        while level > 0 {
            switch value {
            case .string: return count + 1
            case .array(let elements):
                count += 1
                guard let last = elements.last, level > 1 else { return count }
                value = last
                level -= 1
            default: return count
            }
        }
        return count
    }
}
