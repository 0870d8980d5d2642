public import CofferSealing

extension DocumentPredicate {
    /// The predicate that an expression says, such as `type = "task" and (due < "2026-01-01" or not done = true)`.
    ///
    /// A comparison is a property's path (``PropertyPath``), `=`, `==`, `!=`, `<>`, `<`, `<=`, `>` or `>=`, and a JSON
    /// value; or a path and `in` with a list, `starts with` with a string, or `exists`. Strings stand in quotation marks, as
    /// in JSON, or between apostrophes, two of which stand for one. `not` binds tighter than `and`, that tighter than `or`;
    /// parentheses may nest a hundred deep. A path with spaces or signs in it stands in grave accents, two of which stand for
    /// one. Words are read in lower and upper case.
    ///
    /// - Throws: `invalidArgument` (400) with the byte where it is no such expression.
    public init(_ expression: String) throws(CofferError) {
        var parser = PredicateParser(expression)
        self.init(try parser.parse())
    }
}

/// Reads a predicate's text: see ``DocumentPredicate/init(_:)``.
private struct PredicateParser {
    private let text: [UInt8]
    private var at = 0
    private var depth = 0

    private static let depthLimit = 100

    init(_ text: String) { self.text = Array(text.utf8) }

    mutating func parse() throws(CofferError) -> DocumentPredicate.Node {
        let node = try parseAny()
        guard at == text.count else { throw expected("and, or, or the end") }
        return node
    }

    private func expected(_ what: String) -> CofferError {
        CofferError(.invalidArgument, "the expression should have \(what) at byte \(at)")
    }

    private mutating func parseAny() throws(CofferError) -> DocumentPredicate.Node {
        var nodes = [try parseAll()]
        while take(word: "or") { nodes.append(try parseAll()) }
        return nodes.count == 1 ? nodes[0] : .any(nodes)
    }

    private mutating func parseAll() throws(CofferError) -> DocumentPredicate.Node {
        var nodes = try parseNot().conjuncts
        while take(word: "and") { nodes += try parseNot().conjuncts }
        return nodes.count == 1 ? nodes[0] : .all(nodes)
    }

    private mutating func parseNot() throws(CofferError) -> DocumentPredicate.Node {
        var isNegated = false
        while take(word: "not") { isNegated.toggle() }
        let node = try parsePrimary()
        return isNegated ? .not(node) : node
    }

    private mutating func parsePrimary() throws(CofferError) -> DocumentPredicate.Node {
        guard take("(") else { return try parseComparison() }
        depth += 1
        guard depth <= Self.depthLimit else { throw expected("fewer parentheses") }
        let node = try parseAny()
        guard take(")") else { throw expected("a closing parenthesis") }
        depth -= 1
        return node
    }

    private mutating func parseComparison() throws(CofferError) -> DocumentPredicate.Node {
        let path = try parsePath()
        if take(word: "exists") { return .exists(path) }
        if take(word: "in", beforeList: true) {
            return .isOneOf(path, try parseList())
        }
        if take(word: "starts") {
            guard take(word: "with") else { throw expected("starts with") }
            let start = at
            guard case .string(let prefix) = try parseValue() else {
                at = start
                throw expected("a string")
            }
            return .hasPrefix(path, prefix)
        }
        for (sign, comparison) in Self.comparisons where take(sign) {
            return .comparison(path, comparison, try parseValue())
        }
        throw expected("a comparison")
    }

    /// Longer signs first.
    private static let comparisons: [(StaticString, DocumentPredicate.Comparison)] = [
        ("==", .equal), ("=", .equal), ("!=", .notEqual), ("<>", .notEqual), ("<=", .lessOrEqual), ("<", .less),
        (">=", .greaterOrEqual), (">", .greater),
    ]

    private mutating func parsePath() throws(CofferError) -> PropertyPath {
        skipSpace()
        if at < text.count, text[at] == UInt8(ascii: "`") {
            return PropertyPath(try parseQuoted(by: UInt8(ascii: "`")))
        }
        let start = at
        while at < text.count, !Self.endsPath(text[at]) {
            // What a backslash escapes belongs to the path whatever it is.
            at += text[at] == UInt8(ascii: "\\") && at + 1 < text.count ? 2 : 1
        }
        guard at > start else { throw expected("a property") }
        return PropertyPath(String(decoding: text[start..<at], as: UTF8.self))
    }

    private static func endsPath(_ byte: UInt8) -> Bool {
        byte <= 0x20 || "()=<>!,\"'`".utf8.contains(byte)
    }

    private mutating func parseValue() throws(CofferError) -> JSONValue {
        skipSpace()
        if at < text.count, text[at] == UInt8(ascii: "'") { return .string(try parseQuoted(by: UInt8(ascii: "'"))) }
        let start = at
        let end = endOfValue()
        guard end > start else { throw expected("a value") }
        do throws(CofferError) {
            let value = try JSONValue(json: text[start..<end])
            at = end
            return value
        } catch {
            throw expected("a JSON value")
        }
    }

    /// A list whose strings may stand between apostrophes.
    private mutating func parseList() throws(CofferError) -> [JSONValue] {
        guard take("[") else { throw expected("a list") }
        var values: [JSONValue] = []
        if take("]") { return values }
        while true {
            values.append(try parseValue())
            if take("]") { return values }
            guard take(",") else { throw expected("a comma, or the end of the list") }
        }
    }

    /// Where the JSON value ends that starts here, as far as that shows without reading it.
    private func endOfValue() -> Int {
        var (at, depth, isQuoted) = (at, 0, false)
        while at < text.count {
            let byte = text[at]
            if isQuoted {
                if byte == UInt8(ascii: "\\") { at += 1 } else if byte == UInt8(ascii: "\"") { isQuoted = false }
                if !isQuoted && depth == 0 { return at + 1 }
            } else if byte == UInt8(ascii: "\"") {
                isQuoted = true
            } else if byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{") {
                depth += 1
            } else if depth > 0 && (byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}")) {
                depth -= 1
                if depth == 0 { return at + 1 }
            } else if depth == 0 && (byte <= 0x20 || ")],".utf8.contains(byte)) {
                break
            }
            at += 1
        }
        return min(at, text.count)
    }

    /// A text between two of `mark`; two of them in it stand for one.
    private mutating func parseQuoted(by mark: UInt8) throws(CofferError) -> String {
        var content: [UInt8] = []
        at += 1
        while at < text.count {
            if text[at] == mark {
                at += 1
                guard at < text.count, text[at] == mark else { return String(decoding: content, as: UTF8.self) }
            }
            content.append(text[at])
            at += 1
        }
        throw expected("the end of a quotation")
    }

    private mutating func skipSpace() {
        while at < text.count, text[at] <= 0x20 { at += 1 }
    }

    /// Takes a sign, if it is the next.
    private mutating func take(_ sign: StaticString) -> Bool {
        skipSpace()
        guard text.span.hasBytes(of: sign, at: at) else { return false }
        at += sign.utf8CodeUnitCount
        return true
    }

    /// Takes a word of ASCII letters in lower or upper case, if it is the next.
    ///
    /// - Parameter beforeList: whether a list may follow right behind it.
    private mutating func take(word: String, beforeList: Bool = false) -> Bool {
        skipSpace()
        let end = at + word.utf8.count
        guard end <= text.count, zip(word.utf8, text[at..<end]).allSatisfy({ $0 == $1 | 0x20 }) else { return false }
        let isOver = end == text.count || Self.endsPath(text[end]) || beforeList && text[end] == UInt8(ascii: "[")
        guard isOver else { return false }
        at = end
        skipSpace()
        return true
    }
}
