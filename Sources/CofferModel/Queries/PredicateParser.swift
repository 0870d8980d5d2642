public import CofferSealing

extension DocumentPredicate {
    /// The predicate that an expression says, such as `type = "task" and (due < "2026-01-01" or not done = true)`.
    ///
    /// A comparison is a property's path (``PropertyPath``), `=`, `==`, `!=`, `<>`, `<`, `<=`, `>` or `>=`, and a JSON
    /// value; or a path and one of these:
    ///
    /// - `in` with a list; `between` with two values and `and`, both included; `exists`
    /// - `is missing`, `is null`, `is a string`, and so for `boolean`, `number`, `list`, `object`; with `not` behind `is`, what
    ///   isn't so
    /// - `contains`, `starts with` or `begins with`, `ends with`, and `like`, with a string. In that of `like`, `%` stands for
    ///   any text, `_` for one code point, and a backslash before either for itself. `ignoring case`, `ignoring accents` or
    ///   `ignoring case, accents` may follow
    /// - `has` with a value: a list with that element
    ///
    /// `any tags (it starts with "a")` says that an element of a list is so, `every` that each is; paths in the parentheses
    /// begin with `it`, the element.
    ///
    /// Strings stand in quotation marks, as in JSON, or between apostrophes, two of which stand for one. `not` binds tighter
    /// than `and`, that tighter than `or`; parentheses may nest a hundred deep. A path with spaces or signs in it stands in
    /// grave accents, two of which stand for one. Words are read in lower and upper case.
    ///
    /// - Throws: `invalidArgument` (400) with the byte where it is not such an expression.
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
    /// In how many lists' elements it is.
    private var elementDepth = 0

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
        if take("(") { return try parseRest() }
        if let path = try takeElements("any") { return .anyElement(path, try parseElement()) }
        if let path = try takeElements("every") { return .everyElement(path, try parseElement()) }
        return try parseComparison()
    }

    /// What stands behind an opening parenthesis, and the closing one.
    private mutating func parseRest() throws(CofferError) -> DocumentPredicate.Node {
        depth += 1
        guard depth <= Self.depthLimit else { throw expected("fewer parentheses") }
        let node = try parseAny()
        guard take(")") else { throw expected("a closing parenthesis") }
        depth -= 1
        return node
    }

    private mutating func parseElement() throws(CofferError) -> DocumentPredicate.Node {
        elementDepth += 1
        defer { elementDepth -= 1 }
        return try parseRest()
    }

    /// Takes a word, the path of a list and an opening parenthesis, if they are next; otherwise the word is a property.
    private mutating func takeElements(_ word: String) throws(CofferError) -> PropertyPath? {
        let start = at
        guard take(word: word), let path = try? parsePath(), take("(") else {
            at = start
            return nil
        }
        return path
    }

    private mutating func parseComparison() throws(CofferError) -> DocumentPredicate.Node {
        let path = try parsePath()
        if take(word: "exists") { return .exists(path) }
        if take(word: "is") { return try parseState(path) }
        if take(word: "in", beforeList: true) { return .isOneOf(path, try parseList()) }
        if take(word: "has", beforeList: true) {
            return .anyElement(path, .comparison(.itself, .equal, try parseValue()))
        }
        if take(word: "between") {
            let low = try parseValue()
            guard take(word: "and") else { throw expected("and") }
            let high = try parseValue()
            return .all([.comparison(path, .greaterOrEqual, low), .comparison(path, .lessOrEqual, high)])
        }
        if let node = try parseTextComparison(path) { return node }
        for (sign, comparison) in Self.comparisons where take(sign) {
            return .comparison(path, comparison, try parseValue())
        }
        throw expected("a comparison")
    }

    /// What follows `is`.
    private mutating func parseState(_ path: PropertyPath) throws(CofferError) -> DocumentPredicate.Node {
        let isNegated = take(word: "not")
        var node: DocumentPredicate.Node?
        if take(word: "missing") {
            node = .not(.exists(path))
        } else {
            _ = take(word: "a") || take(word: "an")
            for type in DocumentPredicate.ValueType.allCases where node == nil && take(word: type.rawValue) {
                node = .isType(path, type)
            }
        }
        switch node {
        case .not(.exists(let path))? where isNegated: return .exists(path)
        case let node?: return isNegated ? .not(node) : node
        case nil: throw expected("missing, or a type")
        }
    }

    private mutating func parseTextComparison(_ path: PropertyPath) throws(CofferError) -> DocumentPredicate.Node? {
        if take(word: "contains") {
            let (text, differences) = try parseText()
            return .contains(path, text, ignoring: differences)
        }
        if take(word: "like") {
            let start = at
            let (text, differences) = try parseText()
            let node = TextPattern.like(path, text, ignoring: differences)
            if case .text(_, let pattern) = node, pattern.isTooLong {
                at = start
                throw expected("a pattern of at most \(TextPattern.lengthLimit) code points")
            }
            return node
        }
        for word in ["starts", "begins", "ends"] where take(word: word) {
            guard take(word: "with") else { throw expected("\(word) with") }
            let (text, differences) = try parseText()
            return word == "ends"
                ? .hasSuffix(path, text, ignoring: differences) : .hasPrefix(path, text, ignoring: differences)
        }
        return nil
    }

    /// A string, and what of it is ignored.
    private mutating func parseText() throws(CofferError) -> (String, DocumentPredicate.TextDifferences) {
        skipSpace()
        let start = at
        guard case .string(let text) = try parseValue() else {
            at = start
            throw expected("a string")
        }
        var differences: DocumentPredicate.TextDifferences = []
        guard take(word: "ignoring") else { return (text, differences) }
        repeat {
            if take(word: "case") {
                differences.insert(.case)
            } else if take(word: "accents") {
                differences.insert(.accents)
            } else {
                throw expected("case or accents")
            }
        } while take(",")
        return (text, differences)
    }

    /// Longer signs first.
    private static let comparisons: [(StaticString, DocumentPredicate.Comparison)] = [
        ("==", .equal), ("=", .equal), ("!=", .notEqual), ("<>", .notEqual), ("<=", .lessOrEqual), ("<", .less),
        (">=", .greaterOrEqual), (">", .greater),
    ]

    private mutating func parsePath() throws(CofferError) -> PropertyPath {
        skipSpace()
        let start = at
        let path = try parseWholePath()
        guard elementDepth > 0 else { return path }
        guard let path = path.dropping(member: "it") else {
            at = start
            throw expected("it, the element,")
        }
        return path
    }

    private mutating func parseWholePath() throws(CofferError) -> PropertyPath {
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
