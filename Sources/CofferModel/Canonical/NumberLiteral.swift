/// The number literal of RFC 8259 (section 6) that starts somewhere in a text.
struct NumberLiteral {
    private let start: Int
    /// Where it ends.
    let end: Int
    /// Whether it has neither fraction nor exponent.
    let isInteger: Bool

    /// Nil where no literal starts at `start`; then `failure` says where it goes wrong.
    @inline(__always)
    init?(in input: Span<UInt8>, at start: Int, failure: inout Int) {
        var at = start
        if at < input.count, input[at] == UInt8(ascii: "-") { at += 1 }
        let integerStart = at
        at = Self.skipDigits(in: input, from: at)
        // At least one digit, and no zero before another.
        guard at > integerStart, at == integerStart + 1 || input[integerStart] != UInt8(ascii: "0") else {
            failure = integerStart
            return nil
        }
        var isInteger = true
        if at < input.count, input[at] == UInt8(ascii: ".") {
            isInteger = false
            let fractionStart = at + 1
            at = Self.skipDigits(in: input, from: fractionStart)
            guard at > fractionStart else {
                failure = at
                return nil
            }
        }
        if at < input.count, input[at] | 0x20 == UInt8(ascii: "e") {
            isInteger = false
            at += 1
            if at < input.count, input[at] == UInt8(ascii: "+") || input[at] == UInt8(ascii: "-") { at += 1 }
            let exponentStart = at
            at = Self.skipDigits(in: input, from: exponentStart)
            guard at > exponentStart else {
                failure = at
                return nil
            }
        }
        self.start = start
        self.end = at
        self.isInteger = isInteger
    }

    /// Whether it stands as canonical JSON writes it, as can be told from its form; false where that takes the number.
    @inline(__always)
    func isPlain(in input: Span<UInt8>) -> Bool {
        if isInteger {
            // Up to 18 characters are within Int64; `-0` is the only one of them that is written otherwise.
            return end - start <= 18
                && !(end - start == 2 && input[start] == UInt8(ascii: "-") && input[end - 1] == UInt8(ascii: "0"))
        }
        return isPlainDecimal(in: input)
    }

    /// Whether this is a fraction of so few digits that it is the shortest for its `Double`: any two decimals of up to 15
    /// digits are two Doubles.
    private func isPlainDecimal(in input: Span<UInt8>) -> Bool {
        guard end - start <= 16, input[end - 1] != UInt8(ascii: "0") else { return false }
        var (at, zeros, isAfterPoint) = (start, 0, false)
        if input[at] == UInt8(ascii: "-") { at += 1 }
        // From 0.0000001 on an exponent is written.
        while at < end {
            let byte = input[at]
            if byte == UInt8(ascii: ".") {
                isAfterPoint = true
            } else if byte != UInt8(ascii: "0") {
                break
            } else if isAfterPoint {
                zeros += 1
            }
            at += 1
        }
        guard zeros <= 5 else { return false }
        while at < end {
            if !Self.isDigit(input[at]), input[at] != UInt8(ascii: ".") { return false }
            at += 1
        }
        return true
    }

    private static func skipDigits(in input: Span<UInt8>, from start: Int) -> Int {
        var at = start
        while at < input.count, isDigit(input[at]) { at += 1 }
        return at
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    /// The number: exactly, where it is an integer of 64 bits, and else the nearest `Double`. Nil where a literal that isn't
    /// zero is too large or too small for one.
    func value(in input: Span<UInt8>) -> JSONNumber? {
        if let value = shortValue(in: input) { return value }
        var (digits, exponent) = significand(in: input)
        if digits.isEmpty { return 0 }
        while digits.last == UInt8(ascii: "0") {
            digits.removeLast()
            exponent += 1
        }
        let isNegative = input[start] == UInt8(ascii: "-")
        if let integer = integer(digits, exponent, isNegative) { return integer }
        // 309 digits before the point are the most that a Double has; 323 zeros after it the most before it is zero.
        guard digits.count + exponent <= 309, digits.count + exponent >= -323 else { return nil }
        guard let magnitude = Double(String(utf8: digits.span) + "e" + String(exponent)) else { return nil }
        guard magnitude != 0, magnitude.isFinite else { return nil }
        return JSONNumber(isNegative ? -magnitude : magnitude)
    }

    /// The number, where it is short enough for one operation; nil if it isn't.
    private func shortValue(in input: Span<UInt8>) -> JSONNumber? {
        guard end - start <= 18 else { return nil }
        var (at, significand, exponent, isAfterPoint) = (start, 0 as Int64, 0, false)
        let isNegative = input[at] == UInt8(ascii: "-")
        if isNegative { at += 1 }
        while at < end {
            let digit = input[at] &- UInt8(ascii: "0")
            if digit < 10 {
                significand = significand * 10 + Int64(digit)  // 18 digits at most
                if isAfterPoint { exponent -= 1 }
            } else if input[at] == UInt8(ascii: ".") {
                isAfterPoint = true
            } else {
                exponent += writtenExponent(in: input, from: at + 1)
                break
            }
            at += 1
        }
        if isNegative { significand = -significand }
        if exponent == 0 || significand == 0 { return JSONNumber(significand) }
        // Where both are exact as Doubles, one operation rounds once; and what it gives is the integer, if it is one.
        guard significand.magnitude <= 1 << 53, exponent.magnitude <= 22 else { return nil }
        let power = Self.powersOfTen[Int(exponent.magnitude)]
        let value = exponent < 0 ? Double(significand) / power : Double(significand) * power
        return exponent < 0 || value.magnitude <= 0x1p53 ? JSONNumber(value) : nil
    }

    private static let powersOfTen = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20,
        1e21, 1e22,
    ]

    /// More digits than this never change which `Double` is nearest, but for whether there are any: halfway between two
    /// of them lies a number of at most 767 digits.
    private static let significantDigitLimit = 800

    /// The digits without leading zeros, and the power of ten of the last one.
    private func significand(in input: Span<UInt8>) -> (digits: [UInt8], exponent: Int) {
        var digits: [UInt8] = []
        var (at, exponent, isAfterPoint, isInexact) = (start, 0, false, false)
        if input[at] == UInt8(ascii: "-") { at += 1 }
        while at < end, input[at] | 0x20 != UInt8(ascii: "e") {
            let byte = input[at]
            at += 1
            if byte == UInt8(ascii: ".") {
                isAfterPoint = true
                continue
            }
            if digits.count >= Self.significantDigitLimit {
                isInexact = isInexact || byte != UInt8(ascii: "0")
                if !isAfterPoint { exponent += 1 }
                continue
            }
            if !digits.isEmpty || byte != UInt8(ascii: "0") { digits.append(byte) }
            if isAfterPoint { exponent -= 1 }
        }
        if isInexact {
            digits.append(UInt8(ascii: "1"))
            exponent -= 1
        }
        return (digits, exponent + writtenExponent(in: input, from: at + 1))
    }

    private func writtenExponent(in input: Span<UInt8>, from start: Int) -> Int {
        guard start < end else { return 0 }
        let isNegative = input[start] == UInt8(ascii: "-")
        var value = 0
        for at in start..<end where Self.isDigit(input[at]) {
            // More than any text is long, and far from overflowing.
            value = min(value * 10 + Int(input[at] - UInt8(ascii: "0")), 1_000_000_000_000)
        }
        return isNegative ? -value : value
    }

    private func integer(_ digits: [UInt8], _ exponent: Int, _ isNegative: Bool) -> JSONNumber? {
        guard exponent >= 0, digits.count + exponent <= 20 else { return nil }
        var value: UInt64 = 0
        for at in 0..<(digits.count + exponent) {
            let digit = at < digits.count ? UInt64(digits[at] - UInt8(ascii: "0")) : 0
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(digit)
            if overflow || carry { return nil }
            value = sum
        }
        guard isNegative else { return JSONNumber(value) }
        return value <= Int64.min.magnitude ? JSONNumber(Int64(truncatingIfNeeded: 0 &- value)) : nil
    }
}
