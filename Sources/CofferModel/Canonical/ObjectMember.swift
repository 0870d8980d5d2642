internal import CofferSealing

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

extension Canonicalizer {
    /// Reads a member's key and the colon after it, and notes the member.
    ///
    /// - Returns: The position of the value.
    mutating func scanKey(
        _ input: Span<UInt8>, _ start: Int, _ current: inout Container?
    ) throws(CofferError) -> Int {
        guard start < input.count, input[start] == UInt8(ascii: "\"") else {
            throw .invalidJSON("no key", at: start)
        }
        let memberStart = written(start)
        let end = try scanString(input, start)
        let member = ObjectMember(key: noteKey(input, start + 1..<end - 1), start: memberStart)

        if var container = current {
            let last = members.count - 1
            if container.isInOrder, last >= container.firstMember, order(members[last], member, input) >= 0 {
                container.isInOrder = false
                current = container
            }
        }
        members.append(member)

        var at = skipWhitespace(input, end)
        guard at < input.count, input[at] == UInt8(ascii: ":") else {
            throw .invalidJSON("no colon", at: at)
        }
        at = skipWhitespace(input, at + 1)
        if mode != .value, outer.isEmpty { try noteReserved(member, input, keyAt: start, valueAt: at) }
        return at
    }

    private mutating func noteKey(_ input: Span<UInt8>, _ key: Range<Int>) -> MemberKey {
        guard hasEscapes else {
            let prefix = MemberKey.prefix(of: input.extracting(key))
            return MemberKey(prefix: prefix, bytes: key, isUnescaped: false)
        }
        let start = unescapedKeys.count
        unescapedKeys.append(unescaping: input.extracting(key))
        let unescaped = start..<unescapedKeys.count
        let prefix = MemberKey.prefix(of: unescapedKeys.span.extracting(unescaped))
        return MemberKey(prefix: prefix, bytes: unescaped, isUnescaped: true)
    }

    private mutating func noteReserved(
        _ member: ObjectMember, _ input: Span<UInt8>, keyAt: Int, valueAt: Int
    ) throws(CofferError) {
        guard member.key.prefix >> 56 == UInt64(UInt8(ascii: "_")) else { return }
        guard let key = reservedKey(member.key, input) else {
            throw .invalidJSON("a reserved key, which starts with _,", at: keyAt)
        }
        let value = written(valueAt)
        reserved.append(ReservedMember(key: key, start: Int(member.start), value: value..<value))
    }

    private func reservedKey(_ key: MemberKey, _ input: Span<UInt8>) -> ReservedKey? {
        let text = key.isUnescaped ? unescapedKeys.span.extracting(key.bytes) : input.extracting(key.bytes)
        return ReservedKey(text, isForeign: mode == .foreignDocument)
    }

    /// Checks that no two members of the object have the same key, and notes the object if it has to be put in order.
    mutating func close(_ container: Container, _ input: Span<UInt8>, endingAt end: Int) throws(CofferError) {
        let isDocument = mode != .value && outer.isEmpty
        let drops = isDocument && reserved.contains { !$0.key.isContent }
        if isDocument {
            // The members are in their original order still.
            for at in reserved.indices {
                guard let member = members.first(where: { Int($0.start) == reserved[at].start }) else { continue }
                reserved[at].value = reserved[at].value.lowerBound..<Int(member.end)
            }
        }
        if container.isInOrder, !drops {
            members.removeLast(members.count - container.firstMember)
            return
        }
        let unescaped = unescapedKeys
        members.sortByKey(from: container.firstMember, input, unescaped.span)
        let firstKept = reorderedMembers.count
        for at in container.firstMember..<members.count {
            let member = members[at]
            if at > container.firstMember, order(members[at - 1], member, input) == 0 {
                throw .invalidJSON("two members with the same key in the object that ends", at: end - 1)
            }
            if drops, reserved.contains(where: { !$0.key.isContent && $0.start == Int(member.start) }) { continue }
            reorderedMembers.append(member)
        }
        members.removeLast(members.count - container.firstMember)
        reordered.append(
            ReorderedObject(start: container.start, end: written(end), members: firstKept..<reorderedMembers.count))
    }

    /// Less than, equal to or more than zero, as the key of `left` sorts before, with or after that of `right`.
    @inline(__always)
    private func order(_ left: ObjectMember, _ right: ObjectMember, _ input: Span<UInt8>) -> Int {
        MemberKey.order(left.key, right.key, input, unescapedKeys.span)
    }
}
