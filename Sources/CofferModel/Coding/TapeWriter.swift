internal import CofferSealing

/// Copies what an encoder gathered into canonical JSON.
struct TapeWriter {
    private var tape: EncodingTape
    /// The members at the top level whose keys start with `_`.
    private var reserved: [(key: ReservedKey, value: JSONValue)] = []
    /// The entries of the objects that are being written, sorted.
    private var ordered: [EncodingTape.Entry] = []

    private init(_ tape: consuming EncodingTape) {
        ordered.reserveCapacity(tape.entries.count)
        self.tape = tape
    }

    /// The canonical JSON of the document that is on `tape`, and its members at the top level whose keys start with `_`.
    static func document(
        on tape: consuming EncodingTape
    ) throws(CofferError) -> (text: [UInt8], reserved: [(key: ReservedKey, value: JSONValue)]) {
        if let failure = tape.failure { throw failure }
        guard tape.valueCount <= JSONLimits.valueCount else { throw .tooManyValues }
        let root = tape.nodes[EncodingTape.root]
        switch root.kind {
        case .object:
            var text: [UInt8] = []
            text.reserveCapacity(tape.bytes.count + tape.entries.count + 2 * tape.nodes.count)
            var writer = TapeWriter(tape)
            try writer.write(EncodingTape.root, to: &text)
            return (text, writer.reserved)
        case .text:
            // A value that wrote itself as a whole: a JSON object, or something else.
            let value = try CanonicalReader.value(tape.bytes.span.extracting(root.text))
            guard let object = value.objectValue else { throw .notAnObject }
            return try DocumentBody.parts(of: object)
        case .array, .undecided: throw .notAnObject
        }
    }

    private mutating func write(_ node: Int, to text: inout [UInt8]) throws(CofferError) {
        switch tape.nodes[node].kind {
        case .undecided: text.append(ascii: "{}")
        case .text: text.append(copying: tape.bytes.span.extracting(tape.nodes[node].text))
        case .array: try writeArray(node, to: &text)
        case .object: try writeObject(node, to: &text)
        }
    }

    @inline(__always)
    private mutating func write(_ entry: EncodingTape.Entry, to text: inout [UInt8]) throws(CofferError) {
        text.append(copying: tape.bytes.span.extracting(entry.text))
        if entry.node >= 0 { try write(entry.node, to: &text) }
    }

    private mutating func writeArray(_ node: Int, to text: inout [UInt8]) throws(CofferError) {
        text.append(UInt8(ascii: "["))
        var at = tape.nodes[node].first
        while at >= 0 {
            let entry = tape.entries[at]
            try write(entry, to: &text)
            at = entry.next
            if at >= 0 { text.append(UInt8(ascii: ",")) }
        }
        text.append(UInt8(ascii: "]"))
    }

    private mutating func writeObject(_ node: Int, to text: inout [UInt8]) throws(CofferError) {
        let entries = gather(node)
        text.append(UInt8(ascii: "{"))
        var isFirst = true
        for at in entries {
            let entry = ordered[at]
            if at + 1 < entries.upperBound, compare(entry, ordered[at + 1]) == 0 {
                // Of two values for the same key, the later one counts.
                tape.merge(entry.node, into: ordered[at + 1].node)
                continue
            }
            if node == EncodingTape.root, try takeReserved(entry, at: &text) { continue }
            if !isFirst { text.append(UInt8(ascii: ",")) }
            isFirst = false
            try write(entry, to: &text)
        }
        text.append(UInt8(ascii: "}"))
        ordered.removeLast(entries.count)
    }

    /// Puts the entries of an object at the end of ``ordered``, sorted, and says where they stand there.
    private mutating func gather(_ node: Int) -> Range<Int> {
        let first = ordered.count
        var (at, isSorted) = (tape.nodes[node].first, true)
        while at >= 0 {
            let entry = tape.entries[at]
            if isSorted, ordered.count > first, compare(ordered[ordered.count - 1], entry) > 0 { isSorted = false }
            ordered.append(entry)
            at = entry.next
        }
        if !isSorted {
            let (bytes, unescapedKeys) = (tape.bytes, tape.unescapedKeys)
            ordered.sortByKey(from: first, bytes.span, unescapedKeys.span)
        }
        return first..<ordered.count
    }

    @inline(__always)
    private func compare(_ left: EncodingTape.Entry, _ right: EncodingTape.Entry) -> Int {
        MemberKey.order(left.key, right.key, tape.bytes.span, tape.unescapedKeys.span)
    }

    /// Notes a member that says something of the document.
    ///
    /// - Returns: Whether it is none of the content, and so isn't written.
    private mutating func takeReserved(_ entry: EncodingTape.Entry, at text: inout [UInt8]) throws(CofferError) -> Bool
    {
        guard entry.key.prefix >> 56 == UInt64(UInt8(ascii: "_")) else { return false }
        guard !entry.key.isUnescaped, let key = ReservedKey(tape.bytes.span.extracting(entry.key.bytes)) else {
            throw .reservedKey
        }
        let start = text.count
        try write(entry, to: &text)
        // After the key, two quotation marks and the colon.
        let value = start + entry.key.bytes.count + 3
        reserved.append((key, try CanonicalReader.value(text.span.extracting(value..<text.count))))
        text.removeLast(text.count - start)
        return !key.isContent
    }
}
