/// What a search looks for in texts.
///
/// ```swift
/// let typed = SearchQuery(#"caf* -noir "crème brûlée""#)
/// let built = SearchQuery.all(.prefix("caf"), .phrase("crème brûlée")).excluding("noir")
/// ```
///
/// A text that somebody types is never an error: see ``init(_:)``. Words are compared as the index folds them: without regard to
/// case, and to accents if it ignores those.
public struct SearchQuery: Sendable, Equatable {
    package indirect enum Node: Sendable, Equatable {
        /// Words one after the other: one word, or several where the text is one, such as `AB-12`.
        case phrase(String, isBeginning: Bool)
        /// Texts with at most so many words between each and the next, in any order.
        case near([String], distance: Int)
        case all([Node])
        case any([Node])
        /// What is not excluded by the second.
        case excluding(Node, Node)
        /// In one of the index's properties alone; where the index has no such property, what was typed means something else,
        /// if anything.
        case within(PropertyPath, Node, otherwise: Node?)
        /// What finds nothing: a query that names nothing to look for.
        case nothing
    }

    package let node: Node

    /// How many queries are within each other.
    package let depth: Int

    private init(_ node: Node, _ parts: [SearchQuery] = []) {
        self.node = node
        depth = 1 + (parts.map(\.depth).max() ?? 0)
    }

    /// A query as people type it:
    ///
    /// | written | finds texts that have |
    /// |---|---|
    /// | `robin berlin` | both words |
    /// | `robin OR berlin` | one of them, or both |
    /// | `robin -berlin`, `robin NOT berlin` | the first, and not the second |
    /// | `"robin berlin"` | the words one after the other |
    /// | `rob*` | a word that begins so; `"robin ber*"` works, too |
    /// | `robin NEAR/3 berlin` | both, with at most three words between them; `NEAR` alone is ten |
    /// | `title:robin` | the word in that property, one of the index's |
    /// | `(robin OR sparrow) berlin` | as in arithmetic |
    ///
    /// `OR`, `NOT` and `NEAR` are written in capitals. What makes no sense is taken for what it probably means: a quotation mark or
    /// a bracket that is not closed reaches to the end, an operator without a word beside it is ignored. A query that only
    /// excludes finds nothing.
    public init(_ text: String) {
        var parser = SearchQueryParser(text)
        node = parser.parse()
        depth = SearchQueryParser.depthLimit
    }

    /// Texts with all words of `text`, in any order. Nothing in it is an operator.
    public static func words(_ text: String) -> SearchQuery {
        let words = text.split(whereSeparator: \.isWhitespace).map { Node.phrase(String($0), isBeginning: false) }
        return SearchQuery(Node.joined(words, Node.all))
    }

    /// Texts with the words of `text` one after the other.
    public static func phrase(_ text: String) -> SearchQuery { SearchQuery(.phrase(text, isBeginning: false)) }

    /// Texts with a word that begins like `text`; of several words, the last may go on.
    public static func prefix(_ text: String) -> SearchQuery { SearchQuery(.phrase(text, isBeginning: true)) }

    /// Texts in which words or phrases stand close together, in any order.
    ///
    /// - Parameters:
    ///   - texts: words or phrases.
    ///   - distance: how many words stand between each and the next, at most. Default: 10.
    public static func near(_ texts: String..., distance: Int = defaultDistance) -> SearchQuery {
        SearchQuery(texts.isEmpty ? .nothing : .near(texts, distance: max(0, distance)))
    }

    /// How many words may stand between texts that are near each other, unless it is said: 10.
    public static let defaultDistance = 10

    /// Texts that all of these find.
    public static func all(_ queries: SearchQuery...) -> SearchQuery {
        SearchQuery(Node.joined(queries.map(\.node), Node.all), queries)
    }

    /// Texts that one of these finds.
    public static func any(_ queries: SearchQuery...) -> SearchQuery {
        SearchQuery(Node.joined(queries.map(\.node), Node.any), queries)
    }

    /// The same, without texts that `other` finds.
    public func excluding(_ other: SearchQuery) -> SearchQuery {
        SearchQuery(.excluding(node, other.node), [self, other])
    }

    /// The same in one of the index's properties alone.
    public func within(_ path: PropertyPath) -> SearchQuery {
        SearchQuery(.within(path, node, otherwise: nil), [self])
    }
}

extension SearchQuery: ExpressibleByStringInterpolation {
    /// What ``init(_:)`` makes of the text.
    public init(stringLiteral value: String) { self.init(value) }
}

extension SearchQuery.Node {
    /// One of several, or the only one.
    static func joined(_ nodes: [Self], _ join: ([Self]) -> Self) -> Self {
        switch nodes.count {
        case 0: .nothing
        case 1: nodes[0]
        default: join(nodes)
        }
    }
}
