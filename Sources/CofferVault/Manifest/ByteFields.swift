/// Reads big-endian fields one after another from bytes whose count the caller has checked.
struct FieldReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number {
        bytes(Number.bitWidth / 8).reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        precondition(rest.count >= count)
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}

/// Writes big-endian fields one after another.
struct FieldWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ number: some FixedWidthInteger) {
        for shift in stride(from: number.bitWidth - 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    mutating func append(_ more: [UInt8]) { bytes += more }

    /// Fills with zeros up to `count` bytes in all.
    mutating func pad(to count: Int) {
        precondition(bytes.count <= count)
        bytes += [UInt8](repeating: 0, count: count - bytes.count)
    }
}
