#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

// Strings and keys are compared as UTF-8 bytes: Swift's `==` takes composed and decomposed forms for the same string,
// which JSON, SQLite and every other implementation do not.

extension String {
    /// Lends the UTF-8 bytes, which are never copied for a native string.
    @inline(__always)
    func withBytes<R>(_ body: (Span<UInt8>) -> R) -> R {
        var text = self
        return text.withUTF8 { unsafe body($0.span) }
    }

    /// The text of `bytes`, which are known to be UTF-8.
    @inline(__always)
    init(utf8 bytes: Span<UInt8>) {
        self = unsafe bytes.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }
}

/// Whether both are the same bytes in UTF-8.
func haveSameBytes(_ left: String, _ right: String) -> Bool {
    left.withBytes { left in right.withBytes { right in haveSameBytes(left, right) } }
}

@inline(__always)
func haveSameBytes(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    left.count == right.count && compareBytes(left, right) == 0
}

extension Span<UInt8> {
    /// Whether the ASCII of `literal` stands at `position`.
    @inline(__always)
    func hasBytes(of literal: StaticString, at position: Int) -> Bool {
        let end = position + literal.utf8CodeUnitCount
        guard end <= count else { return false }
        let bytes = extracting(position..<end)
        return literal.withUTF8Buffer { unsafe haveSameBytes($0.span, bytes) }
    }
}

/// Less than, equal to or more than zero, as `left` sorts before, with or after `right`; a prefix sorts first.
package func compareBytes(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
    let count = min(left.count, right.count)
    let order = unsafe left.withUnsafeBufferPointer { left in
        unsafe right.withUnsafeBufferPointer { right in
            // An empty buffer may have no address.
            guard let left = left.baseAddress, let right = right.baseAddress else { return 0 }
            return Int(unsafe memcmp(left, right, count))
        }
    }
    return order != 0 ? order : left.count - right.count
}

/// Less than, equal to or more than zero, as the UTF-8 `left` sorts before, with or after `right` by UTF-16 code units:
/// the order of keys in RFC 8785 (section 3.2.3).
func compareAsUTF16(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
    let count = min(left.count, right.count)
    var at = 0
    while at < count {
        let (l, r) = (left[at], right[at])
        if l != r { return Int(utf16Rank(l)) - Int(utf16Rank(r)) }
        at += 1
    }
    return left.count - right.count
}

/// UTF-8 sorts by code point. UTF-16 differs only in that everything from U+10000 on (lead bytes F0–F4), being written in
/// surrogates, comes before U+E000–U+FFFF (lead bytes EE and EF). No continuation byte has these values.
@inline(__always)
func utf16Rank(_ byte: UInt8) -> UInt8 { byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte }

/// A string that is hashed and compared as its bytes.
struct ByteString: Hashable, Sendable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (left: ByteString, right: ByteString) -> Bool { haveSameBytes(left.text, right.text) }

    func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

extension String {
    func hashBytes(into hasher: inout Hasher) {
        withBytes { bytes in
            unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
            // No byte of UTF-8, so that it ends the string.
            hasher.combine(0xFF as UInt8)
        }
    }
}

extension [UInt8] {
    /// Appends a copy of `bytes`.
    @inline(__always)
    mutating func append(copying bytes: Span<UInt8>) {
        unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }

    /// Appends the ASCII of a literal.
    @inline(__always)
    mutating func append(ascii text: StaticString) {
        text.withUTF8Buffer { unsafe append(contentsOf: $0) }
    }
}

extension OutputSpan<UInt8> {
    /// Appends a copy of `bytes`, for which there must be room.
    @inline(__always)
    mutating func append(copying bytes: Span<UInt8>) {
        precondition(bytes.count <= freeCapacity, "no room for \(bytes.count) bytes")
        unsafe withUnsafeMutableBufferPointer { output, count in
            unsafe bytes.withUnsafeBufferPointer { bytes in
                // An empty buffer may have no address.
                guard let start = bytes.baseAddress, let room = output.baseAddress else { return }
                unsafe (room + count).initialize(from: start, count: bytes.count)
            }
            count += bytes.count
        }
    }
}

/// Whether the ASCII of `literal` stands anywhere in `text`.
func containsBytes(of literal: StaticString, in text: Span<UInt8>) -> Bool {
    let first = unsafe Int32(literal.utf8Start.pointee)
    return unsafe text.withUnsafeBytes { bytes in
        guard let start = bytes.baseAddress else { return false }
        var at = 0
        while at < bytes.count, let found = unsafe memchr(start + at, first, bytes.count - at) {
            at = unsafe start.distance(to: found)
            if text.hasBytes(of: literal, at: at) { return true }
            at += 1
        }
        return false
    }
}

/// A string that is compared by its bytes: two that Swift takes to be the same may name two things.
package struct ByteKey: Hashable, Sendable {
    private let bytes: [UInt8]
    package init(_ text: String) { bytes = Array(text.utf8) }
}
