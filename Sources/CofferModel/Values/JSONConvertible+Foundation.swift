public import Foundation

extension Date: JSONConvertible {
    /// The time that an RFC 3339 string says, with any offset and any number of digits in the fraction; else nil.
    public init?(jsonValue: JSONValue) {
        guard let text = jsonValue.stringValue, let date = Date(rfc3339: text) else { return nil }
        self = date
    }
    /// An RFC 3339 string in UTC, such as `2025-11-21T15:43:52Z`, with as many digits of a second's fraction as it takes
    /// to read the same date back; nine at most, which is short of a `Double` only within 97 days of 2001. A date outside
    /// the years 0000 to 9999 can be held but not saved (400).
    public var jsonValue: JSONValue {
        rfc3339.map { .string($0) } ?? .number(JSONNumber(Double.nan))
    }
}

extension Data: JSONConvertible {
    /// The bytes that a base64 string (RFC 4648 section 4) says, or nil if the value is anything else.
    public init?(jsonValue: JSONValue) {
        guard let text = jsonValue.stringValue else { return nil }
        self.init(base64Encoded: text)
    }
    /// The bytes in base64 (RFC 4648 section 4), padded.
    public var jsonValue: JSONValue { .string(base64EncodedString()) }
}

extension URL: JSONConvertible {
    /// The URL that a string says, or nil if the value is anything else.
    public init?(jsonValue: JSONValue) {
        guard let text = jsonValue.stringValue else { return nil }
        self.init(string: text)
    }
    /// The URL as a string, absolute.
    public var jsonValue: JSONValue { .string(absoluteString) }
}

extension UUID: JSONConvertible {
    /// The UUID that a string says, or nil if the value is anything else.
    public init?(jsonValue: JSONValue) {
        guard let text = jsonValue.stringValue else { return nil }
        self.init(uuidString: text)
    }
    /// The UUID in upper-case hex with hyphens.
    public var jsonValue: JSONValue { .string(uuidString) }
}

extension Decimal: JSONConvertible {
    /// The decimal that a number's digits say, or a string of digits; else nil.
    public init?(jsonValue: JSONValue) {
        switch jsonValue {
        case .number(let number): self.init(string: number.description)
        case .string(let text):
            // Decimal(string:) reads as much as it likes and ignores the rest.
            self.init(string: text)
            guard description == text else { return nil }
        default: return nil
        }
    }
    /// A number, where a JSON number has every digit, and else a string of the digits. NaN can be held but not saved (400).
    public var jsonValue: JSONValue {
        let text = description
        if isNaN { return .number(JSONNumber(Double.nan)) }
        if let value = Int64(text) { return .number(JSONNumber(value)) }
        if let value = UInt64(text) { return .number(JSONNumber(value)) }
        if let value = Double(text) {
            let number = JSONNumber(value)
            if number.isFinite, Decimal(string: number.description) == self { return .number(number) }
        }
        return .string(text)
    }
}

/// Dates as RFC 3339 has them (section 5.6), in the proleptic Gregorian calendar, without a formatter: those know locales,
/// cost microseconds, and drop digits.
extension Date {
    private static let daysTo2001 = daysBefore(year: 2001, month: 1)

    /// The years 0000 to 9999, in seconds since 2001.
    private static let writable =
        Double(daysBefore(year: 0, month: 1) - daysTo2001) * 86_400..<Double(
            daysBefore(year: 10_000, month: 1) - daysTo2001) * 86_400

    /// The date in UTC, with as few digits in the fraction as say it; nil outside the years 0000 to 9999.
    var rfc3339: String? {
        let time = timeIntervalSinceReferenceDate
        guard Self.writable.contains(time) else { return nil }
        var second = Int(time.rounded(.down))
        let fraction = Self.fraction(of: time, after: second)
        // Nine digits may round up to the next second.
        if fraction.carries { second += 1 }
        guard Self.writable.contains(Double(second)) else { return nil }

        let (day, secondOfDay) = second.quotientAndModulus(by: 86_400)
        let (year, month, dayOfMonth) = Self.civil(day: day + Self.daysTo2001)
        var text: [UInt8] = []
        text.reserveCapacity(30)
        text.append(year, width: 4)
        text.append(UInt8(ascii: "-"))
        text.append(month, width: 2)
        text.append(UInt8(ascii: "-"))
        text.append(dayOfMonth, width: 2)
        text.append(UInt8(ascii: "T"))
        text.append(secondOfDay / 3600, width: 2)
        text.append(UInt8(ascii: ":"))
        text.append(secondOfDay / 60 % 60, width: 2)
        text.append(UInt8(ascii: ":"))
        text.append(secondOfDay % 60, width: 2)
        if fraction.width > 0 {
            text.append(UInt8(ascii: "."))
            text.append(fraction.digits, width: fraction.width)
        }
        text.append(UInt8(ascii: "Z"))
        return String(utf8: text.span)
    }

    /// The date that `text` says, or nil if it is not an RFC 3339 date.
    init?(rfc3339 text: String) {
        guard let time = text.withBytes({ Self.time(of: $0) }) else { return nil }
        self.init(timeIntervalSinceReferenceDate: time)
    }

    private static let powersOfTen = [
        1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000,
    ]

    /// How the reader puts second and fraction together; the writer tries it until it gets back what it had.
    private static func time(second: Int, digits: Int, width: Int) -> Double {
        Double(second) + Double(digits) / Double(powersOfTen[width])
    }

    /// The fewest digits that lead from `second` to `time`; with nine, the nearest.
    private static func fraction(of time: Double, after second: Int) -> (digits: Int, width: Int, carries: Bool) {
        let fraction = time - Double(second)
        for width in 0...8 {
            let digits = Int((fraction * Double(powersOfTen[width])).rounded())
            if Self.time(second: second, digits: digits, width: width) == time { return (digits, width, false) }
        }
        let digits = Int((fraction * 1e9).rounded())
        return digits < powersOfTen[9] ? (digits, 9, false) : (0, 0, true)
    }

    private static func time(of text: Span<UInt8>) -> Double? {
        var reader = DigitReader()
        guard
            let year = reader.number(4, in: text), reader.skip("-", in: text),
            let month = reader.number(2, in: text), (1...12).contains(month), reader.skip("-", in: text),
            let day = reader.number(2, in: text), day >= 1, reader.skip("T", in: text),
            let hour = reader.number(2, in: text), hour < 24, reader.skip(":", in: text),
            let minute = reader.number(2, in: text), minute < 60, reader.skip(":", in: text),
            let second = reader.number(2, in: text), second <= 60  // 60 is a leap second
        else { return nil }
        let firstOfMonth = daysBefore(year: year, month: month)
        let firstOfNext = month == 12 ? daysBefore(year: year + 1, month: 1) : daysBefore(year: year, month: month + 1)
        guard day <= firstOfNext - firstOfMonth else { return nil }

        var (digits, width) = (0, 0)
        if reader.skip(".", in: text) {
            guard let fraction = reader.fraction(in: text) else { return nil }
            (digits, width) = fraction
        }
        guard let offset = reader.offset(in: text), reader.at == text.count else { return nil }
        let days = firstOfMonth + day - 1 - daysTo2001
        return time(second: days * 86_400 + hour * 3600 + minute * 60 + second - offset, digits: digits, width: width)
    }

    /// Days from 0000-03-01 to the first of that month. Years are counted from March, so that a leap day ends one.
    private static func daysBefore(year: Int, month: Int) -> Int {
        let (year, month) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        let centuries = year.quotientAndModulus(by: 100).quotient
        return year * 365 + year.quotientAndModulus(by: 4).quotient - centuries
            + centuries.quotientAndModulus(by: 4).quotient + (month * 153 + 2) / 5
    }

    /// The year, month and day of month that `day` days after 0000-03-01 is.
    private static func civil(day: Int) -> (year: Int, month: Int, day: Int) {
        // 400 years have 146,097 days; within them a century has 36,524, four years 1,461 and a year 365, but for the last.
        let (era, dayOfEra) = day.quotientAndModulus(by: 146_097)
        let century = min(dayOfEra / 36_524, 3)
        let dayOfCentury = dayOfEra - century * 36_524
        let cycle = dayOfCentury / 1_461
        let dayOfCycle = dayOfCentury - cycle * 1_461
        let yearOfCycle = min(dayOfCycle / 365, 3)
        let dayOfYear = dayOfCycle - yearOfCycle * 365
        let month = (dayOfYear * 5 + 2) / 153
        let year = era * 400 + century * 100 + cycle * 4 + yearOfCycle
        let dayOfMonth = dayOfYear - (month * 153 + 2) / 5 + 1
        return month < 10 ? (year, month + 3, dayOfMonth) : (year + 1, month - 9, dayOfMonth)
    }
}

/// Reads digits and separators, one after another.
private struct DigitReader {
    private(set) var at = 0

    mutating func digit(in text: Span<UInt8>) -> Int? {
        guard at < text.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[at]) else { return nil }
        defer { at += 1 }
        return Int(text[at] - UInt8(ascii: "0"))
    }

    mutating func number(_ width: Int, in text: Span<UInt8>) -> Int? {
        var value = 0
        for _ in 0..<width {
            guard let digit = digit(in: text) else { return nil }
            value = value * 10 + digit
        }
        return value
    }

    mutating func skip(_ separator: Unicode.Scalar, in text: Span<UInt8>) -> Bool {
        let byte = UInt8(ascii: separator)
        guard at < text.count,
            text[at] == byte || byte == UInt8(ascii: "T") && text[at] == UInt8(ascii: "t")
                || byte == UInt8(ascii: "Z") && text[at] == UInt8(ascii: "z")
        else { return false }
        at += 1
        return true
    }

    /// The digits of a fraction, of which nine count.
    mutating func fraction(in text: Span<UInt8>) -> (digits: Int, width: Int)? {
        guard var value = digit(in: text) else { return nil }
        var width = 1
        while let digit = digit(in: text) {
            guard width < 9 else { continue }
            value = value * 10 + digit
            width += 1
        }
        return (value, width)
    }

    /// `Z`, or hours and minutes ahead of UTC, in seconds.
    mutating func offset(in text: Span<UInt8>) -> Int? {
        if skip("Z", in: text) { return 0 }
        let sign = skip("+", in: text) ? 1 : skip("-", in: text) ? -1 : 0
        guard sign != 0, let hour = number(2, in: text), hour < 24, skip(":", in: text),
            let minute = number(2, in: text), minute < 60
        else { return nil }
        return sign * (hour * 3600 + minute * 60)
    }
}

extension Int {
    /// Division that rounds down, so that the rest is never negative.
    fileprivate func quotientAndModulus(by divisor: Int) -> (quotient: Int, modulus: Int) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

extension [UInt8] {
    /// Appends `number` in decimal, padded with zeros.
    fileprivate mutating func append(_ number: Int, width: Int) {
        var power = 1
        for _ in 1..<width { power *= 10 }
        while power > 0 {
            append(UInt8(ascii: "0") + UInt8(number / power % 10))
            power /= 10
        }
    }
}
