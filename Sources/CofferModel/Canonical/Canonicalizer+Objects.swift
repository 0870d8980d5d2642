internal import CofferSealing

extension Canonicalizer {
    /// Reads a member's key and the colon after it, and notes the member.
    ///
    /// - Returns: The position of the value.
    mutating func scanKey(
        _ input: Span<UInt8>, _ start: Int, _ current: inout Container?
    ) throws(CofferError) -> Int {
        guard start < input.count, input[start] == UInt8(ascii: "\"") else {
            throw .invalidJSON("something else than a key", at: start)
        }
        let memberStart = written(start)
        let end = try scanString(input, start)
        let member = noteKey(input, start + 1..<end - 1, memberStart)

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
            throw .invalidJSON("something else than a colon", at: at)
        }
        at = skipWhitespace(input, at + 1)
        if mode == .document, outer.isEmpty { try noteReserved(member, input, keyAt: start, valueAt: at) }
        return at
    }

    private mutating func noteKey(_ input: Span<UInt8>, _ key: Range<Int>, _ start: Int) -> ObjectMember {
        guard hasEscapes else {
            let prefix = ObjectMember.prefix(of: input.extracting(key), isASCII: isASCII)
            return ObjectMember(prefix: prefix, key: key, isUnescaped: false, start: start)
        }
        let unescapedStart = unescapedKeys.count
        unescapedKeys.append(unescaping: input.extracting(key))
        let unescaped = unescapedStart..<unescapedKeys.count
        let prefix = ObjectMember.prefix(of: unescapedKeys.span.extracting(unescaped), isASCII: false)
        return ObjectMember(prefix: prefix, key: unescaped, isUnescaped: true, start: start)
    }

    private mutating func noteReserved(
        _ member: ObjectMember, _ input: Span<UInt8>, keyAt: Int, valueAt: Int
    ) throws(CofferError) {
        guard member.prefix >> 56 == UInt64(UInt8(ascii: "_")) else { return }
        guard let key = reservedKey(of: member, input) else {
            throw .invalidJSON("a reserved key, which starts with _,", at: keyAt)
        }
        let value = written(valueAt)
        reserved.append(ReservedMember(key: key, start: Int(member.start), value: value..<value))
    }

    private func reservedKey(of member: ObjectMember, _ input: Span<UInt8>) -> ReservedKey? {
        let text = member.isUnescaped ? unescapedKeys.span.extracting(member.key) : input.extracting(member.key)
        for key in ReservedKey.allCases where key.text.utf8CodeUnitCount == text.count {
            if text.hasBytes(of: key.text, at: 0) { return key }
        }
        return nil
    }

    /// Checks that no two members of the object have the same key, and notes the object if it has to be put in order.
    mutating func close(_ container: Container, _ input: Span<UInt8>, endingAt end: Int) throws(CofferError) {
        let isDocument = mode == .document && outer.isEmpty
        let drops = isDocument && reserved.contains { !$0.key.isContent }
        if isDocument {
            // The members are in their original order still.
            for at in reserved.indices {
                guard let member = members.first(where: { Int($0.start) == reserved[at].start }) else { continue }
                reserved[at].value = reserved[at].value.lowerBound..<Int(member.end)
            }
        }
        if container.isInOrder, !drops {
            members.removeSubrange(container.firstMember...)
            return
        }
        sortMembers(from: container.firstMember, input)
        let firstKept = reorderedMembers.count
        for at in container.firstMember..<members.count {
            let member = members[at]
            if at > container.firstMember, order(members[at - 1], member, input) == 0 {
                throw .invalidJSON("two members with the same key in the object that ends", at: end - 1)
            }
            if drops, reserved.contains(where: { !$0.key.isContent && $0.start == Int(member.start) }) { continue }
            reorderedMembers.append(member)
        }
        members.removeSubrange(container.firstMember...)
        reordered.append(
            ReorderedObject(start: container.start, end: written(end), members: firstKept..<reorderedMembers.count))
    }

    private mutating func sortMembers(from first: Int, _ input: Span<UInt8>) {
        let count = members.count - first
        guard count <= 32 else {
            // Sorting takes n log n comparisons, however the keys were chosen.
            var sorted = Array(members[first...])
            sorted.sort { order($0, $1, input) < 0 }
            members.replaceSubrange(first..., with: sorted)
            return
        }
        for at in stride(from: first + 1, to: members.count, by: 1) {
            let member = members[at]
            var place = at
            while place > first, order(member, members[place - 1], input) < 0 {
                members[place] = members[place - 1]
                place -= 1
            }
            members[place] = member
        }
    }

    /// Less than, equal to or more than zero, as the key of `left` sorts before, with or after that of `right`.
    private func order(_ left: ObjectMember, _ right: ObjectMember, _ input: Span<UInt8>) -> Int {
        if left.prefix != right.prefix { return left.prefix < right.prefix ? -1 : 1 }
        let leftKey = left.isUnescaped ? unescapedKeys.span.extracting(left.key) : input.extracting(left.key)
        let rightKey = right.isUnescaped ? unescapedKeys.span.extracting(right.key) : input.extracting(right.key)
        return compareAsUTF16(leftKey, rightKey)
    }
}

extension [UInt8] {
    /// Appends the bytes of a string whose escapes are known to be valid.
    mutating func append(unescaping text: Span<UInt8>) {
        var (start, at) = (0, 0)
        while at < text.count {
            guard text[at] == UInt8(ascii: "\\"), let escape = try? Canonicalizer.unescape(text, at) else {
                at += 1
                continue
            }
            append(copying: text.extracting(start..<at))
            append(contentsOf: UTF8.encode(escape.scalar) ?? UTF8.encodedReplacementCharacter)
            (start, at) = (escape.end, escape.end)
        }
        append(copying: text.extracting(start..<text.count))
    }
}
