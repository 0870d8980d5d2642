/// Reads queries as people type them: see ``SearchQuery/init(_:)``.
///
/// Brackets are kept on a list, not on the thread's stack. Those that are nested deeper than ``depthLimit`` are ignored.
struct SearchQueryParser {
    private enum Token: Equatable {
        case text(String, isBeginning: Bool)
        case path(String)
        case open, close, or, not
        case near(Int)
    }

    private var tokens: [Token] = []

    /// Nobody types more brackets within each other.
    static let depthLimit = 100

    init(_ text: String) { tokens = Self.tokens(of: text) }

    // MARK: Tokens

    private static func tokens(of text: String) -> [Token] {
        var tokens: [Token] = []
        var rest = Substring(text)
        while let first = rest.first {
            if first.isWhitespace {
                rest.removeFirst()
            } else if let quote = quotes[first] {
                rest.removeFirst()
                let end = rest.firstIndex { quote.contains($0) }
                tokens.append(phrase(rest[..<(end ?? rest.endIndex)]))
                rest = end.map { rest[rest.index(after: $0)...] } ?? ""
                // The star may stand behind the quotation mark.
                if rest.first == "*" {
                    rest.removeFirst()
                    if case .text(let phrase, _)? = tokens.popLast() { tokens.append(.text(phrase, isBeginning: true)) }
                }
            } else if first == "(" || first == ")" {
                tokens.append(first == "(" ? .open : .close)
                rest.removeFirst()
            } else if first == "-" || first == "−" {
                rest.removeFirst()
                // A dash between spaces excludes nothing.
                if let next = rest.first, !next.isWhitespace { tokens.append(.not) }
            } else {
                let end =
                    rest.firstIndex { $0.isWhitespace || $0 == "(" || $0 == ")" || quotes[$0] != nil } ?? rest.endIndex
                tokens += word(rest[..<end], isQuoted: end < rest.endIndex && quotes[rest[end]] != nil)
                rest = rest[end...]
            }
        }
        return tokens
    }

    /// What opens a quotation, and what closes it.
    private static let quotes: [Character: Set<Character>] = [
        "\"": ["\""], "“": ["”", "“"], "„": ["“", "”"], "”": ["”"], "«": ["»"], "»": ["«"],
    ]

    private static func phrase(_ text: Substring) -> Token {
        text.last == "*" ? .text(String(text.dropLast()), isBeginning: true) : .text(String(text), isBeginning: false)
    }

    /// - Parameter isQuoted: whether a quotation follows, as in `title:"…"`.
    private static func word(_ text: Substring, isQuoted: Bool) -> [Token] {
        if text == "OR" || text == "|" { return [.or] }
        if text == "NOT" { return [.not] }
        // All words are looked for anyway.
        if text == "AND" || text == "&" { return [] }
        if text == "NEAR" { return [.near(SearchQuery.defaultDistance)] }
        if text.hasPrefix("NEAR/"), text.utf8.count > 5, text.utf8.dropFirst(5).allSatisfy({ $0 &- 0x30 < 10 }) {
            return [.near(Int(text.dropFirst(5)) ?? .max)]
        }
        if let colon = text.firstIndex(of: ":"), colon > text.startIndex {
            let rest = text[text.index(after: colon)...]
            if !rest.isEmpty { return [.path(String(text[..<colon])), phrase(rest)] }
            if isQuoted { return [.path(String(text[..<colon]))] }
        }
        return [phrase(text)]
    }

    // MARK: Queries

    /// What stands between two brackets, as far as it was read.
    private struct Level {
        /// What was read of the alternatives before, and of the one of now.
        var alternatives: [SearchQuery.Node] = []
        var wanted: [SearchQuery.Node] = []
        var excluded: [SearchQuery.Node] = []
        /// What the next operand is to be.
        var isExcluding = false
        var path: String?
        var distance: Int?
        /// Whether the last that was wanted is a text alone, which something may be near.
        var isLastText = false

        mutating func add(_ node: SearchQuery.Node, isText: Bool) {
            defer { (isExcluding, path, distance) = (false, nil, nil) }
            if let distance, isText, !isExcluding, path == nil, let joined = wanted.last?.near(node, distance) {
                wanted[wanted.count - 1] = joined
                return
            }
            guard node != .nothing else { return }
            let node =
                path.map { path in
                    // A time of day, or an address, has a colon, too.
                    .within(
                        PropertyPath(path), node,
                        otherwise: node.following(path) ?? .all([.phrase(path, isBeginning: false), node]))
                } ?? node
            if isExcluding { excluded.append(node) } else { wanted.append(node) }
            isLastText = isText && !isExcluding && path == nil
        }

        mutating func endAlternative() {
            defer { (wanted, excluded, isExcluding, path, distance, isLastText) = ([], [], false, nil, nil, false) }
            // What only excludes finds nothing.
            guard !wanted.isEmpty else { return }
            let all = SearchQuery.Node.joined(wanted, SearchQuery.Node.all)
            alternatives.append(
                excluded.isEmpty ? all : .excluding(all, .joined(excluded, SearchQuery.Node.any)))
        }

        mutating func end() -> SearchQuery.Node {
            endAlternative()
            return .joined(alternatives, SearchQuery.Node.any)
        }
    }

    mutating func parse() -> SearchQuery.Node {
        var levels = [Level()]
        var ignoredCount = 0
        for token in tokens {
            let top = levels.count - 1
            switch token {
            case .text(let text, let isBeginning):
                levels[top].add(.phrase(text, isBeginning: isBeginning), isText: !isBeginning)
            case .path(let path): levels[top].path = path
            case .not: levels[top].isExcluding.toggle()
            case .or: levels[top].endAlternative()
            case .near(let distance):
                if levels[top].isLastText { levels[top].distance = distance }
            case .open:
                if levels.count < Self.depthLimit { levels.append(Level()) } else { ignoredCount += 1 }
            case .close:
                guard ignoredCount == 0 else {
                    ignoredCount -= 1
                    continue
                }
                guard top > 0 else { continue }
                let node = levels[top].end()
                levels.removeLast()
                levels[top - 1].add(node, isText: false)
            }
        }
        while levels.count > 1 {
            let node = levels[levels.count - 1].end()
            levels.removeLast()
            levels[levels.count - 1].add(node, isText: false)
        }
        return levels[0].end()
    }
}

extension SearchQuery.Node {
    /// The text alone, with another before it.
    fileprivate func following(_ text: String) -> Self? {
        guard case .phrase(let rest, let isBeginning) = self else { return nil }
        return .phrase("\(text):\(rest)", isBeginning: isBeginning)
    }

    /// Both near each other; nil if this is not a text, or near others at another distance.
    fileprivate func near(_ other: Self, _ distance: Int) -> Self? {
        guard case .phrase(let text, false) = other else { return nil }
        switch self {
        case .phrase(let first, false): return .near([first, text], distance: distance)
        // More than any search takes: one after the other they would cost the square of their number.
        case .near(let texts, distance) where texts.count < 1_100: return .near(texts + [text], distance: distance)
        default: return nil
        }
    }
}
