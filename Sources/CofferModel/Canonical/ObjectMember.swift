/// A member's key, as positions in a text: what it takes to put members in order without decoding them.
struct MemberKey {
    /// The key's first eight bytes as one number that sorts as the key does, with zeros where the key is shorter.
    let prefix: UInt64
    private let startAndSource: UInt32
    private let end: UInt32

    /// `bytes` is where the key's bytes stand: in the text, or, when escapes stand in it there, among the unescaped keys.
    @inline(__always)
    init(prefix: UInt64, bytes: Range<Int>, isUnescaped: Bool) {
        self.prefix = prefix
        startAndSource = UInt32(truncatingIfNeeded: bytes.lowerBound) << 1 | (isUnescaped ? 1 : 0)
        end = UInt32(truncatingIfNeeded: bytes.upperBound)
    }

    var bytes: Range<Int> { Int(startAndSource >> 1)..<Int(end) }
    var isUnescaped: Bool { startAndSource & 1 == 1 }

    /// The first eight bytes of a key in an order-preserving number.
    @inline(__always)
    static func prefix(of key: Span<UInt8>) -> UInt64 {
        if key.count >= 8, case let word = key.word(at: 0), word & topBits == 0 { return word.byteSwapped }
        var prefix: UInt64 = 0
        for at in 0..<min(key.count, 8) { prefix |= UInt64(utf16Rank(key[at])) << UInt64(56 - 8 * at) }
        return prefix
    }

    /// Less than, equal to or more than zero, as `left` sorts before, with or after `right` in canonical JSON.
    @inline(__always)
    static func order(
        _ left: MemberKey, _ right: MemberKey, _ text: Span<UInt8>, _ unescapedKeys: Span<UInt8>
    ) -> Int {
        if left.prefix != right.prefix { return left.prefix < right.prefix ? -1 : 1 }
        let leftKey = left.isUnescaped ? unescapedKeys.extracting(left.bytes) : text.extracting(left.bytes)
        let rightKey = right.isUnescaped ? unescapedKeys.extracting(right.bytes) : text.extracting(right.bytes)
        return compareAsUTF16(leftKey, rightKey)
    }
}

/// Something that is sorted by its key: a member as a text has it, or as an encoder gathers it.
protocol KeyedMember {
    var key: MemberKey { get }
}

/// A member of an object in a text.
struct ObjectMember: KeyedMember {
    let key: MemberKey
    /// Where the member starts, at its key's quotation mark.
    let start: UInt32
    /// Where its value ends.
    var end: UInt32

    @inline(__always)
    init(key: MemberKey, start: Int) {
        self.key = key
        self.start = UInt32(truncatingIfNeeded: start)
        end = self.start
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

extension Array where Element: KeyedMember {
    /// Puts the members from `first` on in the order of their keys; those with the same key stay as they stood.
    mutating func sortByKey(from first: Int, _ text: Span<UInt8>, _ unescapedKeys: Span<UInt8>) {
        guard count - first <= 32 else {
            // Sorting takes n log n comparisons, however the keys were chosen.
            var sorted = Array(self[first...])
            sorted.sort {
                let order = MemberKey.order($0.key, $1.key, text, unescapedKeys)
                return order < 0 || order == 0 && $0.key.bytes.lowerBound < $1.key.bytes.lowerBound
            }
            replaceSubrange(first..., with: sorted)
            return
        }
        // In a span, where moving an element is no more than that.
        var members = mutableSpan
        for at in stride(from: first + 1, to: members.count, by: 1) {
            let member = members[at]
            var place = at
            while place > first, MemberKey.order(member.key, members[place - 1].key, text, unescapedKeys) < 0 {
                members[place] = members[place - 1]
                place -= 1
            }
            members[place] = member
        }
    }
}
