internal import CofferSealing

extension Canonicalizer {
    /// Reads the string whose quotation mark is at `start`.
    ///
    /// - Returns: The position after its closing quotation mark.
    mutating func scanString(_ input: Span<UInt8>, _ start: Int) throws(CofferError) -> Int {
        hasEscapes = false
        var at = start + 1
        while true {
            at = input.skipPlainASCII(from: at)
            guard at < input.count else { throw .invalidJSON("the end inside a string", at: at) }
            let byte = input[at]
            if byte == UInt8(ascii: "\"") { return at + 1 }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                at = try scanEscape(input, at)
            } else if byte < 0x20 {
                throw .invalidJSON("a control character in a string", at: at)
            } else {
                repeat {
                    at = try Self.scanUTF8(input, at)
                } while at < input.count && input[at] >= 0x80
            }
        }
    }

    /// Checks one character beyond ASCII: The Unicode Standard, table 3-7.
    @inline(__always)
    private static func scanUTF8(_ input: Span<UInt8>, _ start: Int) throws(CofferError) -> Int {
        let lead = input[start]
        var second: ClosedRange<UInt8> = 0x80...0xBF
        let count: Int
        switch lead {
        case 0xC2...0xDF: count = 2
        case 0xE0: (count, second) = (3, 0xA0...0xBF)
        case 0xED: (count, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: count = 3
        case 0xF0: (count, second) = (4, 0x90...0xBF)
        case 0xF4: (count, second) = (4, 0x80...0x8F)
        case 0xF1...0xF3: count = 4
        default: throw .invalidJSON("invalid UTF-8", at: start)
        }
        guard start + count <= input.count, second.contains(input[start + 1]) else {
            throw .invalidJSON("invalid UTF-8", at: start)
        }
        for at in (start + 2)..<(start + max(count, 2)) where input[at] & 0xC0 != 0x80 {
            throw .invalidJSON("invalid UTF-8", at: start)
        }
        return start + count
    }

    /// Reads the escape whose backslash is at `start`, and writes it as RFC 8785 (section 3.2.2.2) does.
    private mutating func scanEscape(_ input: Span<UInt8>, _ start: Int) throws(CofferError) -> Int {
        let (scalar, end) = try Self.unescape(input, start)
        var text: [UInt8] = []
        text.append(escaping: scalar)
        if !haveSameBytes(text.span, input.extracting(start..<end)) {
            skip(input, from: start, to: end)
            output.append(contentsOf: text)
        }
        return end
    }

    /// The character that the escape at `start` stands for, and where it ends.
    static func unescape(_ input: Span<UInt8>, _ start: Int) throws(CofferError) -> (scalar: Unicode.Scalar, end: Int) {
        guard start + 1 < input.count else { throw .invalidJSON("the end inside a string", at: start + 1) }
        let simple: Unicode.Scalar
        switch input[start + 1] {
        case UInt8(ascii: "\""): simple = "\""
        case UInt8(ascii: "\\"): simple = "\\"
        case UInt8(ascii: "/"): simple = "/"
        case UInt8(ascii: "b"): simple = "\u{8}"
        case UInt8(ascii: "f"): simple = "\u{C}"
        case UInt8(ascii: "n"): simple = "\n"
        case UInt8(ascii: "r"): simple = "\r"
        case UInt8(ascii: "t"): simple = "\t"
        case UInt8(ascii: "u"):
            let unit = try hexUnit(input, start + 2)
            if let scalar = Unicode.Scalar(unit) { return (scalar, start + 6) }
            // A surrogate: only a high one with a low one after it is a character.
            guard unit < 0xDC00, start + 8 <= input.count, input[start + 6] == UInt8(ascii: "\\"),
                input[start + 7] == UInt8(ascii: "u")
            else { throw .invalidJSON("a lone surrogate", at: start) }
            let low = try hexUnit(input, start + 8)
            guard (0xDC00...0xDFFF).contains(low) else { throw .invalidJSON("a lone surrogate", at: start) }
            let code = 0x1_0000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(low) - 0xDC00)
            guard let scalar = Unicode.Scalar(code) else { throw .invalidJSON("a lone surrogate", at: start) }
            return (scalar, start + 12)
        default: throw .invalidJSON("an unknown escape", at: start)
        }
        return (simple, start + 2)
    }

    private static func hexUnit(_ input: Span<UInt8>, _ start: Int) throws(CofferError) -> UInt16 {
        guard start + 4 <= input.count else { throw .invalidJSON("the end inside an escape", at: input.count) }
        var unit: UInt16 = 0
        for at in start..<(start + 4) {
            let byte = input[at]
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): unit = unit << 4 | UInt16(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): unit = unit << 4 | UInt16(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): unit = unit << 4 | UInt16(byte - UInt8(ascii: "A") + 10)
            default: throw .invalidJSON("no hex digit", at: at)
            }
        }
        return unit
    }
}
