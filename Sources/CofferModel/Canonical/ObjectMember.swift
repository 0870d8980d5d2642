/// A member of an object, as positions in texts: what it takes to put members in order without decoding them.
struct ObjectMember {
    /// The key's first eight bytes as one number that sorts as the key does, with zeros where the key is shorter.
    let prefix: UInt64
    private let keyStartAndSource: UInt32
    private let keyEnd: UInt32
    /// Where the member starts, at its key's quotation mark.
    let start: UInt32
    /// Where its value ends.
    var end: UInt32

    /// `key` is the position of the key's bytes: in the text itself, or, when escapes stand in it, among the unescaped keys.
    @inline(__always)
    init(prefix: UInt64, key: Range<Int>, isUnescaped: Bool, start: Int) {
        self.prefix = prefix
        keyStartAndSource = UInt32(truncatingIfNeeded: key.lowerBound) << 1 | (isUnescaped ? 1 : 0)
        keyEnd = UInt32(truncatingIfNeeded: key.upperBound)
        self.start = UInt32(truncatingIfNeeded: start)
        end = self.start
    }

    var key: Range<Int> { Int(keyStartAndSource >> 1)..<Int(keyEnd) }
    var isUnescaped: Bool { keyStartAndSource & 1 == 1 }

    /// The first eight bytes of a key in an order-preserving number.
    @inline(__always)
    static func prefix(of key: Span<UInt8>, isASCII: Bool) -> UInt64 {
        if isASCII, key.count >= 8 { return key.word(at: 0).byteSwapped }
        var prefix: UInt64 = 0
        for at in 0..<min(key.count, 8) { prefix |= UInt64(utf16Rank(key[at])) << UInt64(56 - 8 * at) }
        return prefix
    }
}

/// An object whose members have to be put in order, or left out, when its text is copied.
struct ReorderedObject {
    /// Where the object stands, brackets included.
    let start: Int
    let end: Int
    /// Its members in the order they are to have, in a list that all objects share.
    let members: Range<Int>
}

extension Span<UInt8> {
    /// The eight bytes from `position` on, the first one the least significant.
    @inline(__always)
    func word(at position: Int) -> UInt64 {
        // Unsafe only in that any type could be asked for: the position is checked.
        UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt64.self))
    }
}
