extension Span<UInt8> {
    /// The eight bytes from `position` on, the first one the least significant.
    @inline(__always)
    func word(at position: Int) -> UInt64 {
        // Unsafe only in that any type could be asked for: the position is checked.
        UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt64.self))
    }

    /// The position of the first byte from `start` on that is a control character, `"`, `\` or not ASCII, or else the end.
    @inline(__always)
    func skipPlainASCII(from start: Int) -> Int {
        skip(from: start) { escapedBytes($0) | $0 & topBits }
    }

    /// The position of the first byte from `start` on that canonical JSON escapes, or else the end.
    @inline(__always)
    func skipUnescaped(from start: Int) -> Int {
        skip(from: start, escapedBytes)
    }

    /// Skips eight bytes at a time while `stops` finds none; the lowest bit it sets is the top bit of the byte to stop at.
    @inline(__always)
    private func skip(from start: Int, _ stops: (UInt64) -> UInt64) -> Int {
        var at = start
        while at + 8 <= count {
            let found = stops(word(at: at))
            if found != 0 { return at + found.trailingZeroBitCount / 8 }
            at += 8
        }
        guard at < count else { return at }
        let found = stops(lastBytes(from: at))
        return found == 0 ? count : at + found.trailingZeroBitCount / 8
    }

    /// The last one to seven bytes, and spaces after them.
    @inline(__always)
    private func lastBytes(from start: Int) -> UInt64 {
        let bitCount = UInt64(8 * (count - start))
        let spaces = (eachByte &* UInt64(UInt8(ascii: " "))) << bitCount
        if count >= 8 { return word(at: count - 8) >> (64 - bitCount) | spaces }
        var word = spaces
        for at in start..<count { word |= UInt64(self[at]) << UInt64(8 * (at - start)) }
        return word
    }
}

private let eachByte: UInt64 = 0x0101_0101_0101_0101
/// The bit of each of eight bytes that no byte of ASCII has.
let topBits: UInt64 = 0x8080_8080_8080_8080

/// Whose lowest set bit is the top bit of the first byte that is a control character, `"` or `\`. Bits above it may be set by
/// a borrow from below, and mean nothing.
@inline(__always)
private func escapedBytes(_ word: UInt64) -> UInt64 {
    let quote = word ^ (eachByte &* UInt64(UInt8(ascii: "\"")))
    let backslash = word ^ (eachByte &* UInt64(UInt8(ascii: "\\")))
    let isZero = ((quote &- eachByte) & ~quote) | ((backslash &- eachByte) & ~backslash)
    let isControl = (word &- (eachByte &* 0x20)) & ~word
    return (isZero | isControl) & topBits
}

extension [UInt8] {
    /// Appends one character as it stands in a string of canonical JSON: RFC 8785, section 3.2.2.2.
    mutating func append(escaping scalar: Unicode.Scalar) {
        guard scalar.isASCII else { return append(utf8: scalar) }
        let byte = UInt8(scalar.value)
        let short: UInt8
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): short = byte
        case 0x08: short = UInt8(ascii: "b")
        case 0x09: short = UInt8(ascii: "t")
        case 0x0A: short = UInt8(ascii: "n")
        case 0x0C: short = UInt8(ascii: "f")
        case 0x0D: short = UInt8(ascii: "r")
        case 0..<0x20:
            append(ascii: "\\u00")
            append(UInt8(ascii: "0") + byte >> 4)
            let low = byte & 0xF
            append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
            return
        default: return append(byte)
        }
        append(UInt8(ascii: "\\"))
        append(short)
    }

    /// Appends a string of canonical JSON, quotation marks included.
    mutating func append(quoting text: Span<UInt8>) {
        var at = text.skipUnescaped(from: 0)
        guard at < text.count else { return append(quotingPlain: text) }
        append(UInt8(ascii: "\""))
        var start = 0
        while true {
            append(copying: text.extracting(start..<at))
            guard at < text.count else { break }
            append(escaping: Unicode.Scalar(text[at]))
            start = at + 1
            at = text.skipUnescaped(from: start)
        }
        append(UInt8(ascii: "\""))
    }

    /// The same for a string in which nothing is escaped, as in most: room is made once for all of it.
    private mutating func append(quotingPlain text: Span<UInt8>) {
        append(addingCapacity: text.count + 2) { output in
            output.append(UInt8(ascii: "\""))
            output.append(copying: text)
            output.append(UInt8(ascii: "\""))
        }
    }

    /// Appends the bytes of a string whose escapes are known to be valid.
    mutating func append(unescaping text: Span<UInt8>) {
        var (start, at) = (0, 0)
        while at < text.count {
            guard text[at] == UInt8(ascii: "\\"), let escape = try? Canonicalizer.unescape(text, at) else {
                at += 1
                continue
            }
            append(copying: text.extracting(start..<at))
            append(utf8: escape.scalar)
            (start, at) = (escape.end, escape.end)
        }
        append(copying: text.extracting(start..<text.count))
    }

    private mutating func append(utf8 scalar: Unicode.Scalar) {
        append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    }
}
