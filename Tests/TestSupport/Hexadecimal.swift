extension [UInt8] {
    /// The bytes that hex digits of either case say; nil for anything else.
    package init?(hex: some StringProtocol) {
        let digits = hex.compactMap(\.hexDigitValue)
        guard digits.count == hex.count, digits.count.isMultiple(of: 2) else { return nil }
        self = stride(from: 0, to: digits.count, by: 2).map { place in
            let (high, low) = (digits[place], digits[place + 1])
            return UInt8(high << 4 | low)
        }
    }

    /// Lower-case hex digits.
    package var hex: String { map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
}
