extension [UInt8] {
    /// Appends a finite number as canonical JSON writes it: an integer of 64 bits in all its digits, and everything else as
    /// RFC 8785 (section 3.2.2.3), which is ECMAScript's Number::toString.
    mutating func append(number: JSONNumber) {
        switch number.kind {
        case .signed(let value):
            if value < 0 { append(UInt8(ascii: "-")) }
            append(decimal: value.magnitude)
        case .unsigned(let value): append(decimal: value)
        case .binary(let bits): append(ecmaScript: Double(bitPattern: bits))
        }
    }

    private mutating func append(decimal value: UInt64) {
        if value < 10 { return append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value)) }
        let start = count
        var rest = value
        while rest > 0 {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit))
            rest = quotient
        }
        var (low, high) = (start, count - 1)
        while low < high {
            swapAt(low, high)
            (low, high) = (low + 1, high - 1)
        }
    }

    /// ECMA-262, Number::toString. Its digits, the shortest that read back as the same number and of these the nearest, are
    /// those of Swift's `description`; only the layout differs.
    private mutating func append(ecmaScript value: Double) {
        if value == 0 { return append(UInt8(ascii: "0")) }
        if value < 0 { append(UInt8(ascii: "-")) }
        let digits = DecimalDigits(value.magnitude)
        let (count, point) = (digits.count, digits.point)
        if point >= count, point <= 21 {
            for at in 0..<count { append(digits[at]) }
            append(zeros: point - count)
        } else if point > 0, point <= 21 {
            for at in 0..<count {
                if at == point { append(UInt8(ascii: ".")) }
                append(digits[at])
            }
        } else if point > -6, point <= 0 {
            append(ascii: "0.")
            append(zeros: -point)
            for at in 0..<count { append(digits[at]) }
        } else {
            for at in 0..<count {
                if at == 1 { append(UInt8(ascii: ".")) }
                append(digits[at])
            }
            append(UInt8(ascii: "e"))
            append(UInt8(ascii: point > 0 ? "+" : "-"))
            append(decimal: UInt64((point - 1).magnitude))
        }
    }

    private mutating func append(zeros count: Int) {
        for _ in 0..<count { append(UInt8(ascii: "0")) }
    }
}

/// The shortest decimal digits of a positive finite `Double`, which is 0.`digits` × 10^`point`. At most 17 digits.
private struct DecimalDigits {
    /// The digits as one number, the first one the most significant.
    private let number: UInt64
    let count: Int
    let point: Int

    /// Takes the digits from Swift's description, such as `0.001`, `120.0` or `1.25e-07`.
    init(_ value: Double) {
        var (number, count) = (0 as UInt64, 0)
        var (zeros, point, exponent) = (0, 0, 0)
        var (isAfterPoint, isExponent, isExponentNegative) = (false, false, false)
        value.description.withBytes { text in
            for at in 0..<text.count {
                let byte = text[at]
                switch byte {
                case UInt8(ascii: "."): isAfterPoint = true
                case UInt8(ascii: "e"): isExponent = true
                case UInt8(ascii: "-"): isExponentNegative = true
                case UInt8(ascii: "+"): break
                default:
                    let digit = byte - UInt8(ascii: "0")
                    if isExponent {
                        exponent = exponent * 10 + Int(digit)
                    } else if digit == 0 {
                        // Leading zeros move the point, trailing ones count for nothing until a digit follows.
                        if count > 0 { zeros += 1 }
                        if count > 0, !isAfterPoint { point += 1 }
                        if count == 0, isAfterPoint { point -= 1 }
                    } else {
                        for _ in 0...zeros { number = number &* 10 }
                        number &+= UInt64(digit)
                        count += zeros + 1
                        zeros = 0
                        if !isAfterPoint { point += 1 }
                    }
                }
            }
        }
        self.number = number
        self.count = count
        self.point = point + (isExponentNegative ? -exponent : exponent)
    }

    subscript(index: Int) -> UInt8 {
        var rest = number
        for _ in 0..<(count - 1 - index) { rest /= 10 }
        return UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
    }
}
