public import CofferModel
internal import CofferSealing

/// A document that a search found.
public struct SearchHit: Sendable {
    /// The document's current revision.
    public let revision: SavedRevision

    /// How well it fits: more is better. To be compared within one search alone.
    public let score: Double

    private let query: SearchQuery
    private let definition: TextDefinition
    private let analyzer: TextAnalyzer

    init(
        _ revision: SavedRevision, score: Double, _ query: SearchQuery, _ definition: TextDefinition,
        _ analyzer: TextAnalyzer
    ) {
        self.revision = revision
        self.score = score
        self.query = query
        self.definition = definition
        self.analyzer = analyzer
    }

    /// The document's id.
    public var documentID: String { revision.documentID }

    /// A place in a document's texts that a query looks for: a word, or a phrase.
    public struct Match: Sendable, Equatable {
        /// The property.
        public let path: PropertyPath

        /// Which string it is where the property has a list of them, from 0 on; otherwise 0.
        public let string: Int

        /// The bytes of the string's UTF-8. They begin and end between characters.
        public let range: Range<Int>
    }

    /// What the query looks for in the document, in the order of the index's properties and of the text.
    ///
    /// - Throws: `damaged` and `closed` (500).
    public var matches: [Match] {
        get throws(CofferError) {
            let texts = try texts
            return texts.enumerated().flatMap { field, text in
                text.highlights.map { Match(path: definition.paths[field], string: $0.string, range: $0.range) }
            }
        }
    }

    /// A part of a snippet.
    public struct SnippetPart: Sendable, Equatable {
        /// Its text, as it is in the document, or with `…` for what is left out.
        public let text: String

        /// Whether the query looks for it.
        public let isMatch: Bool
    }

    /// A piece of a text around what the query looks for, as a person reads it, in parts that are matches or stand between them.
    ///
    /// - Parameters:
    ///   - path: one of the index's properties. In a list, the string with most of it.
    ///   - words: how many words it has, from 1 to 1,000. Default: 12.
    /// - Returns: the text from one word to another, with `…` where it goes on; its beginning if nothing in it is looked for; nil
    ///   without a text.
    /// - Throws: `invalidArgument` (400) for another property; `damaged` and `closed` (500).
    public func snippetParts(of path: PropertyPath, words: Int = 12) throws(CofferError) -> [SnippetPart]? {
        guard let field = definition.paths.firstIndex(of: path) else {
            throw CofferError(.invalidArgument, "the text index is not over the property \(path)")
        }
        return try texts[field].snippet(wordCount: min(max(1, words), 1_000))
    }

    /// The parts of ``snippetParts(of:words:)`` in one text.
    ///
    /// - Parameters:
    ///   - path: one of the index's properties.
    ///   - words: how many words it has, from 1 to 1,000. Default: 12.
    ///   - highlight: makes what stands for a match from its text. Default: nothing is changed.
    /// - Returns: the text; nil without one.
    /// - Throws: as ``snippetParts(of:words:)``.
    public func snippet(
        of path: PropertyPath, words: Int = 12, _ highlight: (String) -> String = { $0 }
    ) throws(CofferError) -> String? {
        try snippetParts(of: path, words: words)?.map { $0.isMatch ? highlight($0.text) : $0.text }.joined()
    }

    private var texts: [SearchedText] {
        get throws(CofferError) {
            let strings = definition.texts(in: try revision.properties, id: documentID)
            return strings.enumerated().map { field, strings in
                let phrases = query.node.phrases(in: field, of: definition, analyzer)
                return SearchedText(strings, phrases, analyzer)
            }
        }
    }
}

extension SearchQuery.Node {
    /// What of the query is looked for in one of the index's properties.
    fileprivate func phrases(in field: Int, of definition: TextDefinition, _ analyzer: TextAnalyzer) -> [[SearchTerm]] {
        switch self {
        case .nothing: []
        case .phrase(let text, let isBeginning): [SearchTerm.terms(of: text, isBeginning: isBeginning, analyzer)]
        case .near(let texts, _): texts.map { SearchTerm.terms(of: $0, isBeginning: false, analyzer) }
        case .all(let nodes), .any(let nodes): nodes.flatMap { $0.phrases(in: field, of: definition, analyzer) }
        case .excluding(let wanted, _): wanted.phrases(in: field, of: definition, analyzer)
        case .within(let path, let node, let otherwise):
            switch definition.paths.firstIndex(of: path) {
            case field: node.phrases(in: field, of: definition, analyzer)
            case nil: otherwise?.phrases(in: field, of: definition, analyzer) ?? []
            default: []
            }
        }
    }
}
