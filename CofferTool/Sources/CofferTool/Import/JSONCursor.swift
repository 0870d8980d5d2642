internal import Foundation

/// A place in the bytes of a JSON text that moves from value to value.
///
/// It finds where values begin and end and checks no more than that takes: brackets, strings, commas and colons on its
/// way. What is inside a value is checked by who stores it.
struct JSONCursor {
    /// What keeps the cursor from going on, and the line of it.
    struct Obstacle: Error, Equatable {
        let line: Int
        let message: String
    }

    /// A value, or the text of a string: which bytes, and the line on which they begin.
    struct Extent: Equatable {
        let range: Range<Int>
        let line: Int
    }

    /// The offset of the next byte to be read.
    private(set) var offset = 0

    /// The number of the line that ``offset`` is in, from 1.
    private(set) var line = 1

    /// A cursor before the first byte, or before a byte order mark.
    init(_ bytes: Span<UInt8>) {
        if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF { offset = 3 }
    }

    /// A cursor where `value` begins.
    init(at value: Extent) {
        offset = value.range.lowerBound
        line = value.line
    }

    /// The next byte, or nil at the end.
    func peek(_ bytes: Span<UInt8>) -> UInt8? { offset < bytes.count ? bytes[offset] : nil }

    /// An obstacle at this place.
    func obstacle(_ message: String) -> Obstacle { Obstacle(line: line, message: message) }

    mutating func skipWhitespace(_ bytes: Span<UInt8>) {
        while offset < bytes.count {
            switch bytes[offset] {
            case UInt8(ascii: "\n"): line += 1
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): break
            default: return
            }
            offset += 1
        }
    }

    /// Steps over `byte`, which must come next.
    mutating func skip(_ byte: Unicode.Scalar, _ bytes: Span<UInt8>) throws(Obstacle) {
        guard skipIfPresent(byte, bytes) else { throw obstacle("'\(byte)' is missing") }
    }

    /// Steps over `byte` if it comes next, and says whether it did.
    mutating func skipIfPresent(_ byte: Unicode.Scalar, _ bytes: Span<UInt8>) -> Bool {
        guard peek(bytes) == UInt8(ascii: byte) else { return false }
        offset += 1
        return true
    }

    /// Steps over a string. The extent is that of the text between the quotes, its escapes as they are.
    mutating func skipString(_ bytes: Span<UInt8>) throws(Obstacle) -> Extent {
        try skip("\"", bytes)
        let first = offset
        while offset < bytes.count {
            switch bytes[offset] {
            case UInt8(ascii: "\""):
                offset += 1
                return Extent(range: first..<(offset - 1), line: line)
            // A line that ends right behind it is found as such, so that lines are counted right.
            case UInt8(ascii: "\\"): offset += offset + 1 < bytes.count && bytes[offset + 1] < 0x20 ? 1 : 2
            case ..<0x20: throw obstacle("a control character in a string")
            default: offset += 1
            }
        }
        throw obstacle("a string does not end")
    }

    /// Steps over a value of any kind.
    mutating func skipValue(_ bytes: Span<UInt8>) throws(Obstacle) -> Extent {
        let (first, start) = (offset, line)
        var open: [UInt8] = []
        repeat {
            skipWhitespace(bytes)
            guard let next = peek(bytes) else { throw Obstacle(line: start, message: "a value does not end") }
            switch next {
            case UInt8(ascii: "\""): _ = try skipString(bytes)
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                // The closing bracket comes two after the opening one in ASCII, for both kinds.
                open.append(next + 2)
                offset += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                guard open.popLast() == next else { throw obstacle("a bracket closes nothing") }
                offset += 1
            case UInt8(ascii: ","), UInt8(ascii: ":"):
                guard !open.isEmpty else { throw obstacle("a value is missing") }
                offset += 1
            case ...0x20: throw obstacle("a control character")
            default: skipScalar(bytes)
            }
        } while !open.isEmpty
        return Extent(range: first..<offset, line: start)
    }

    /// Steps over what may be a number, `true`, `false` or `null`.
    private mutating func skipScalar(_ bytes: Span<UInt8>) {
        while offset < bytes.count {
            switch bytes[offset] {
            case ...0x20, UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "\""), UInt8(ascii: "["),
                UInt8(ascii: "]"),
                UInt8(ascii: "{"), UInt8(ascii: "}"):
                return
            default: offset += 1
            }
        }
    }

    /// Steps over an object and hands each of its members to `body`: the text of the key, and the value.
    mutating func skipObject(
        _ bytes: Span<UInt8>, _ body: (_ key: Extent, _ value: Extent) -> Void
    ) throws(Obstacle) {
        try skip("{", bytes)
        skipWhitespace(bytes)
        if skipIfPresent("}", bytes) { return }
        repeat {
            skipWhitespace(bytes)
            let key = try skipString(bytes)
            skipWhitespace(bytes)
            try skip(":", bytes)
            skipWhitespace(bytes)
            try body(key, skipValue(bytes))
            skipWhitespace(bytes)
        } while skipIfPresent(",", bytes)
        try skip("}", bytes)
    }
}

/// A string in the bytes of a JSON text: what stands between its quotes.
struct JSONString {
    private let extent: JSONCursor.Extent

    init(_ extent: JSONCursor.Extent) {
        self.extent = extent
    }

    /// Whether the string is `other`, byte for byte.
    func isEqual(to other: String, _ bytes: Span<UInt8>) -> Bool {
        var offset = extent.range.lowerBound
        for byte in other.utf8 {
            guard offset < extent.range.upperBound else { return false }
            if bytes[offset] == UInt8(ascii: "\\") {
                return value(bytes).map { $0.utf8.elementsEqual(other.utf8) } ?? false
            }
            guard bytes[offset] == byte else { return false }
            offset += 1
        }
        return offset == extent.range.upperBound
    }

    /// The string, or nil if its escapes or its UTF-8 are not valid.
    func value(_ bytes: Span<UInt8>) -> String? {
        var text: [UInt8] = []
        text.reserveCapacity(extent.range.count + 2)
        var hasEscapes = false
        for offset in extent.range {
            hasEscapes = hasEscapes || bytes[offset] == UInt8(ascii: "\\")
            text.append(bytes[offset])
        }
        guard hasEscapes else { return String(validating: text, as: UTF8.self) }
        let quoted = [UInt8(ascii: "\"")] + text + [UInt8(ascii: "\"")]
        return try? JSONDecoder().decode(String.self, from: Data(quoted))
    }
}
