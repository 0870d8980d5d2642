internal import CofferSealing

/// Where the values of a canonical JSON text stand, found in one pass, so that decoding skips what nobody asks for.
struct BodyIndex {
    enum Kind: UInt8 {
        case null, bool, number, string
        /// A string with escapes.
        case escapedString
        case array
        /// Its members follow as key, value, key, value.
        case object
    }

    /// A value, or a member's key.
    struct Node {
        let kind: Kind
        /// Where its text starts and ends; for strings, without the quotation marks.
        let start: UInt32
        var end: UInt32
        /// The node that follows it and all that is in it.
        var next: UInt32
        /// How many elements or members it has.
        var count: UInt32 = 0

        var text: Range<Int> { Int(start)..<Int(end) }
    }

    let bytes: [UInt8]
    private(set) var nodes: [Node] = []

    /// - Throws: *damaged* (500), where `bytes` are not JSON that Coffer wrote.
    init(_ bytes: [UInt8]) throws(CofferError) {
        self.bytes = bytes
        nodes.reserveCapacity(bytes.count / 12 + 4)
        try index(bytes.span)
        // A null for what isn't there: see `missing`.
        add(.null, 0, 0)
    }

    /// A node that is null, for what isn't there.
    var missing: Int { nodes.count - 1 }

    private mutating func add(_ kind: Kind, _ start: Int, _ end: Int) {
        nodes.append(
            Node(
                kind: kind, start: UInt32(truncatingIfNeeded: start), end: UInt32(truncatingIfNeeded: end),
                next: UInt32(truncatingIfNeeded: nodes.count + 1)))
    }

    private mutating func index(_ text: Span<UInt8>) throws(CofferError) {
        var open: [Int] = []
        var at = 0
        while true {
            // A value starts here.
            guard at < text.count else { throw damaged(at) }
            switch text[at] {
            case UInt8(ascii: "\""): at = try addString(text, at)
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                let isObject = text[at] == UInt8(ascii: "{")
                open.append(nodes.count)
                guard open.count <= JSONLimits.depth else { throw damaged(at) }
                add(isObject ? .object : .array, at, at)
                at += 1
                guard at < text.count else { throw damaged(at) }
                if text[at] != (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    if isObject { at = try addKey(text, at) }
                    continue
                }
            case UInt8(ascii: "t"): at = try addLiteral("true", .bool, text, at)
            case UInt8(ascii: "f"): at = try addLiteral("false", .bool, text, at)
            case UInt8(ascii: "n"): at = try addLiteral("null", .null, text, at)
            default:
                var failure = at
                guard let literal = NumberLiteral(in: text, at: at, failure: &failure) else { throw damaged(at) }
                add(.number, at, literal.end)
                at = literal.end
            }
            // It ends, and with it perhaps the containers around it.
            var isNext = false
            while let container = open.last, !isNext {
                guard at < text.count else { throw damaged(at) }
                let isObject = nodes[container].kind == .object
                let isEmpty = nodes.count == container + 1
                if text[at] == UInt8(ascii: ","), !isEmpty {
                    nodes[container].count += 1
                    at += 1
                    if isObject { at = try addKey(text, at) }
                    isNext = true
                } else if text[at] == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    at += 1
                    if !isEmpty { nodes[container].count += 1 }
                    nodes[container].end = UInt32(truncatingIfNeeded: at)
                    nodes[container].next = UInt32(truncatingIfNeeded: nodes.count)
                    open.removeLast()
                } else {
                    throw damaged(at)
                }
            }
            if isNext { continue }
            guard at == text.count else { throw damaged(at) }
            return
        }
    }

    private mutating func addKey(_ text: Span<UInt8>, _ start: Int) throws(CofferError) -> Int {
        guard start < text.count, text[start] == UInt8(ascii: "\"") else { throw damaged(start) }
        let end = try addString(text, start)
        guard end < text.count, text[end] == UInt8(ascii: ":") else { throw damaged(end) }
        return end + 1
    }

    private mutating func addString(_ text: Span<UInt8>, _ start: Int) throws(CofferError) -> Int {
        var (at, kind) = (start + 1, Kind.string)
        while true {
            at = text.skipUnescaped(from: at)
            guard at < text.count, text[at] >= 0x20 else { throw damaged(at) }
            if text[at] == UInt8(ascii: "\"") { break }
            kind = .escapedString
            at += 2
        }
        add(kind, start + 1, at)
        return at + 1
    }

    private mutating func addLiteral(
        _ literal: StaticString, _ kind: Kind, _ text: Span<UInt8>, _ start: Int
    ) throws(CofferError) -> Int {
        guard text.hasBytes(of: literal, at: start) else { throw damaged(start) }
        let end = start + literal.utf8CodeUnitCount
        add(kind, start, end)
        return end
    }

    private func damaged(_ offset: Int) -> CofferError {
        CofferError(.damaged, "the stored bytes are not JSON at byte \(offset)")
    }

    // MARK: Reading nodes

    /// The string that a node is.
    func string(_ node: Int) -> String {
        let text = bytes.span.extracting(nodes[node].text)
        if nodes[node].kind == .string { return String(utf8: text) }
        var unescaped: [UInt8] = []
        unescaped.append(unescaping: text)
        return String(utf8: unescaped.span)
    }

    /// Less than, equal to or more than zero, as the key that a node is sorts before, with or after `key`.
    @inline(__always)
    func compareKey(_ node: Int, _ key: Span<UInt8>) -> Int {
        let text = bytes.span.extracting(nodes[node].text)
        if nodes[node].kind == .string { return compareAsUTF16(text, key) }
        var unescaped: [UInt8] = []
        unescaped.append(unescaping: text)
        return compareAsUTF16(unescaped.span, key)
    }

    /// Whether the key that a node is, is `key`.
    @inline(__always)
    func isKey(_ node: Int, _ key: Span<UInt8>) -> Bool {
        nodes[node].kind == .string
            ? haveSameBytes(bytes.span.extracting(nodes[node].text), key) : compareKey(node, key) == 0
    }

    /// The number that a node is.
    func number(_ node: Int) -> JSONNumber? {
        let text = bytes.span.extracting(nodes[node].text)
        var failure = 0
        return NumberLiteral(in: text, at: 0, failure: &failure)?.value(in: text)
    }

    /// The value that a node is, with all that is in it.
    func value(_ node: Int) throws(CofferError) -> JSONValue {
        switch nodes[node].kind {
        case .string, .escapedString: .string(string(node))
        case .null: .null
        default: try CanonicalReader.value(bytes.span.extracting(nodes[node].text))
        }
    }

    /// The keys and places that lead to a node.
    func path(to node: Int) -> [any CodingKey] {
        var path: [any CodingKey] = []
        var container = 0
        while container < node, node < missing {
            let isObject = nodes[container].kind == .object
            var (at, place) = (container + 1, 0)
            while at < nodes.count {
                let value = isObject ? at + 1 : at
                if node < Int(nodes[value].next) {
                    path.append(isObject ? JSONKey(string(at)) : IndexKey(place))
                    container = value
                    break
                }
                (at, place) = (Int(nodes[value].next), place + 1)
            }
        }
        return path
    }
}
