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
