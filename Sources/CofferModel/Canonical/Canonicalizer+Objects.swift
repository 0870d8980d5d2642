internal import CofferSealing

extension Canonicalizer {
    /// Reads a member's key and the colon after it, and notes the member.
    ///
    /// - Returns: The position of the value.
    mutating func scanKey(
        _ input: Span<UInt8>, _ start: Int, _ current: inout Container?
    ) throws(CofferError) -> Int {
        guard start < input.count, input[start] == UInt8(ascii: "\"") else {
            throw .invalidJSON("anything other than a key", at: start)
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
            throw .invalidJSON("anything other than a colon", at: at)
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
