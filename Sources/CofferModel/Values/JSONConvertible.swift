/// A Swift type whose values can be JSON values, and so the properties of a document.
///
/// `Bool`, the integers, `Double`, `Float`, `String`, `Date`, `Data`, `URL`, `UUID`, `Decimal`, and arrays and
/// dictionaries of such are; so are ``JSONValue`` and ``JSONObject`` themselves.
public protocol JSONConvertible {
    /// The Swift value that `jsonValue` says, or nil if it is of another type or out of range.
    init?(jsonValue: JSONValue)

    /// The JSON value that this value is stored as.
    var jsonValue: JSONValue { get }
}

extension JSONValue: JSONConvertible {
    /// The value itself.
    public init?(jsonValue: JSONValue) { self = jsonValue }
    /// The value itself.
    public var jsonValue: JSONValue { self }
}

extension JSONObject: JSONConvertible {
    /// The object, or nil if the value is not an object.
    public init?(jsonValue: JSONValue) {
        guard let object = jsonValue.objectValue else { return nil }
        self = object
    }
    /// The object as a value.
    public var jsonValue: JSONValue { .object(self) }
}

extension JSONNumber: JSONConvertible {
    /// The number, or nil if the value is not a number.
    public init?(jsonValue: JSONValue) {
        guard let number = jsonValue.numberValue else { return nil }
        self = number
    }
    /// The number as a value.
    public var jsonValue: JSONValue { .number(self) }
}

extension Bool: JSONConvertible {
    /// The Boolean, or nil if the value is not a Boolean.
    public init?(jsonValue: JSONValue) {
        guard let value = jsonValue.boolValue else { return nil }
        self = value
    }
    /// `true` or `false`.
    public var jsonValue: JSONValue { .bool(self) }
}

extension String: JSONConvertible {
    /// The string, or nil if the value is not a string.
    public init?(jsonValue: JSONValue) {
        guard let value = jsonValue.stringValue else { return nil }
        self = value
    }
    /// The string as a value.
    public var jsonValue: JSONValue { .string(self) }
}

extension Double: JSONConvertible {
    /// The number, rounded to the nearest `Double` beyond 2^53; nil if the value is not a number.
    public init?(jsonValue: JSONValue) {
        guard let number = jsonValue.numberValue else { return nil }
        self = number.double
    }
    /// The number; NaN and the infinities can be held but not saved (400).
    public var jsonValue: JSONValue { .number(JSONNumber(self)) }
}

extension Float: JSONConvertible {
    /// The number, rounded to the nearest `Float`; nil if the value is not a number, or too large.
    public init?(jsonValue: JSONValue) {
        guard let number = jsonValue.numberValue else { return nil }
        self.init(number.double)
        if isInfinite, number.isFinite { return nil }
    }
    /// The number in as few digits as say it: `0.1` and not `0.10000000149011612`.
    public var jsonValue: JSONValue { .number(JSONNumber(shortestDouble)) }

    /// The `Double` that is written with this number's own digits.
    var shortestDouble: Double {
        // Rounding the digits to a Double and that to a Float could, in principle, miss by one.
        if let short = Double(description), Float(short) == self { short } else { Double(self) }
    }
}

/// An integer type: out of its range there is no value.
extension FixedWidthInteger {
    fileprivate init?(integer value: JSONValue) {
        guard let integer = value.numberValue?.integer(Self.self) else { return nil }
        self = integer
    }
}

extension Int: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(Int64(self))) }
}

extension Int8: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(Int64(self))) }
}

extension Int16: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(Int64(self))) }
}

extension Int32: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(Int64(self))) }
}

extension Int64: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(self)) }
}

extension UInt: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(UInt64(self))) }
}

extension UInt8: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(UInt64(self))) }
}

extension UInt16: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(UInt64(self))) }
}

extension UInt32: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(UInt64(self))) }
}

extension UInt64: JSONConvertible {
    /// The integer, or nil if the value is not an integer of this type.
    public init?(jsonValue: JSONValue) { self.init(integer: jsonValue) }
    /// The integer, exactly.
    public var jsonValue: JSONValue { .number(JSONNumber(self)) }
}

extension Array: JSONConvertible where Element: JSONConvertible {
    /// The list, or nil if the value is not a list or any element has another type.
    public init?(jsonValue: JSONValue) {
        guard let values = jsonValue.arrayValue else { return nil }
        self.init()
        reserveCapacity(values.count)
        for value in values {
            guard let element = Element(jsonValue: value) else { return nil }
            append(element)
        }
    }
    /// The list as a value.
    public var jsonValue: JSONValue { .array(map(\.jsonValue)) }
}

extension Dictionary: JSONConvertible where Key == String, Value: JSONConvertible {
    /// The members, or nil if the value is not an object, any member of another type, or two keys that Swift takes for
    /// the same string.
    public init?(jsonValue: JSONValue) {
        guard let object = jsonValue.objectValue else { return nil }
        self.init(minimumCapacity: object.count)
        for member in object.members {
            guard let value = Value(jsonValue: member.value) else { return nil }
            guard updateValue(value, forKey: member.key) == nil else { return nil }
        }
    }
    /// The members as an object, in no particular order.
    public var jsonValue: JSONValue { .object(JSONObject(uniqueKeysWithValues: map { ($0.key, $0.value.jsonValue) })) }
}
