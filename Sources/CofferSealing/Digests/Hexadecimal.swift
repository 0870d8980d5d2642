/// `bytes` in lower-case hex, two digits for each. Not for keys: what it returns isn't wiped.
package func hexadecimal(_ bytes: [UInt8]) -> String {
    func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10 }
    return unsafe String(unsafeUninitializedCapacity: 2 * bytes.count) { output in
        for (index, byte) in bytes.enumerated() {
            unsafe output[2 * index] = digit(byte >> 4)
            unsafe output[2 * index + 1] = digit(byte & 15)
        }
        return 2 * bytes.count
    }
}

/// `value` in lower-case hex, with 16 digits.
package func hexadecimal(_ value: UInt64) -> String {
    hexadecimal((0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64($0))) })
}

extension UInt8 {
    /// The value of the hex digit, of either case, that this is in ASCII; nil for anything else.
    package var hexDigitValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Whether this is a hex digit as ``hexadecimal(_:)`` writes them.
    package var isLowerCaseHexDigit: Bool {
        hexDigitValue != nil && !(UInt8(ascii: "A")...UInt8(ascii: "F")).contains(self)
    }
}
