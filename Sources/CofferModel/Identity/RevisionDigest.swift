/// The 16 bytes that make a revision id of Coffer's own.
package struct RevisionDigest: Sendable, Hashable, Comparable {
    /// The first and the second 8 bytes, each read as a big-endian number.
    package let high, low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The digest of these bytes, or nil if they are not 16.
    package init?(bytes: Span<UInt8>) {
        guard bytes.count == 16 else { return nil }
        high = bytes.word(at: 0).byteSwapped
        low = bytes.word(at: 8).byteSwapped
    }

    /// The 16 bytes.
    package var bytes: [UInt8] {
        (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64(56 - 8 * ($0 % 8))) }
    }

    /// By their bytes, which is the order of their hex digits, too.
    package static func < (left: RevisionDigest, right: RevisionDigest) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    /// The digest that 32 lower-case hex digits say, or nil if `text` is anything else.
    init?(hex text: Span<UInt8>) {
        guard text.count == 32 else { return nil }
        var words = (high: 0 as UInt64, low: 0 as UInt64)
        for at in 0..<32 {
            let digit: UInt8
            switch text[at] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = text[at] - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = text[at] - UInt8(ascii: "a") + 10
            default: return nil
            }
            if at < 16 {
                words.high = words.high << 4 | UInt64(digit)
            } else {
                words.low = words.low << 4 | UInt64(digit)
            }
        }
        (high, low) = words
    }

    /// 32 lower-case hex digits.
    var hex: String {
        var text: [UInt8] = []
        text.reserveCapacity(32)
        appendHex(to: &text)
        return String(utf8: text.span)
    }

    func appendHex(to text: inout [UInt8]) {
        for at in 0..<32 {
            let digit = UInt8(truncatingIfNeeded: (at < 16 ? high : low) >> UInt64(60 - 4 * (at % 16))) & 0xF
            text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }
}
