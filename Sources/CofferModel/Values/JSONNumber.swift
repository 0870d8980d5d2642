/// A number as JSON has it: an exact integer of 64 bits, signed or not, or else a `Double`.
///
/// There is one value for each number, however it was written: `1`, `1.0` and `1e0` are equal, and so are `0` and `-0.0`.
/// A `Double` that is an integer from −2^63 up to, not including, 2^64 is that integer.
///
/// A number can hold what JSON can't, `Double.nan` and the infinities, so that assigning one to a property does not have
/// to throw; saving it is refused with 400 (`CofferError.Code.invalidJSON`).
public struct JSONNumber: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case signed(Int64)
        /// Above `Int64.max`.
        case unsigned(UInt64)
        /// The bit pattern of a `Double` that is none of the integers above. As bits, so that NaN is equal to itself.
        case binary(UInt64)
    }

    let kind: Kind

    /// The number that `value` is; not a number, or infinite, it can be held but not saved.
    public init(_ value: Double) {
        if let integer = Int64(exactly: value) {
            kind = .signed(integer)
        } else if let integer = UInt64(exactly: value) {
            kind = .unsigned(integer)
        } else {
            kind = .binary(value.bitPattern)
        }
    }

    /// The integer `value`, exactly.
    public init(_ value: Int64) { kind = .signed(value) }

    /// The integer `value`, exactly.
    public init(_ value: UInt64) {
        kind = Int64(exactly: value).map { .signed($0) } ?? .unsigned(value)
    }

    /// The integer `value`, exactly.
    public init(_ value: Int) { kind = .signed(Int64(value)) }

    /// The number as an integer of 64 bits, or nil if it is another number.
    public var int64: Int64? {
        if case .signed(let value) = kind { value } else { nil }
    }

    /// The number as an unsigned integer of 64 bits, or nil if it is another number.
    public var uint64: UInt64? {
        switch kind {
        case .signed(let value): UInt64(exactly: value)
        case .unsigned(let value): value
        case .binary: nil
        }
    }

    /// The number as a `Double`: the nearest one, for integers beyond 2^53.
    public var double: Double {
        switch kind {
        case .signed(let value): Double(value)
        case .unsigned(let value): Double(value)
        case .binary(let bits): Double(bitPattern: bits)
        }
    }

    /// Whether the number is one that JSON can hold: neither infinite nor NaN.
    public var isFinite: Bool { double.isFinite }

    /// The number as any integer type, or nil if that type does not have it.
    func integer<I: FixedWidthInteger>(_ type: I.Type = I.self) -> I? {
        switch kind {
        case .signed(let value): I(exactly: value)
        case .unsigned(let value): I(exactly: value)
        case .binary: nil
        }
    }
}

extension JSONNumber: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    /// The integer that a literal such as `42` says.
    public init(integerLiteral value: Int64) { self.init(value) }

    /// The number that a literal such as `0.5` says.
    public init(floatLiteral value: Double) { self.init(value) }
}

extension JSONNumber: CustomStringConvertible {
    /// The number as it stands in canonical JSON; `nan`, `inf` or `-inf` for what JSON can't hold.
    public var description: String {
        guard isFinite else { return double.description }
        var text: [UInt8] = []
        text.append(number: self)
        return String(utf8: text.span)
    }
}

extension JSONNumber: Codable {
    /// Reads an integer exactly, where `decoder` can, and else a `Double`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let value = try? container.decode(Int64.self) {
            self.init(value)
        } else if let value = try? container.decode(UInt64.self) {
            self.init(value)
        } else {
            self.init(try container.decode(Double.self))
        }
    }

    /// Writes an integer as an integer, and else a `Double`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch kind {
        case .signed(let value): try container.encode(value)
        case .unsigned(let value): try container.encode(value)
        case .binary: try container.encode(double)
        }
    }
}
