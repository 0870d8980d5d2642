internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// What a text index is over, and how it takes texts apart. Stands in its row as JSON.
struct TextDefinition: Sendable, Equatable {
    let paths: [PropertyPath]
    let ignoresAccents: Bool
    /// The name of what makes words' stems; nil if nothing does.
    let language: String?

    /// An index is over so many properties at most.
    static let pathLimit = IndexSchema.textFieldLimit

    /// Of the terms that texts are taken apart into: with another one, indexes are rebuilt.
    private static let version = 1

    init(paths: [PropertyPath], ignoresAccents: Bool, language: String?) {
        self.paths = paths
        self.ignoresAccents = ignoresAccents
        self.language = language
    }

    /// The definition that `json` states; nil where another version wrote it.
    init?(json: String) {
        guard case .object(let members)? = try? JSONValue(json: Array(json.utf8)),
            case .array(let paths)? = members["paths"], case .bool(let ignoresAccents)? = members["ignoresAccents"]
        else { return nil }
        self.paths = paths.compactMap { if case .string(let path) = $0 { PropertyPath(path) } else { nil } }
        self.ignoresAccents = ignoresAccents
        if case .string(let language)? = members["language"] { self.language = language } else { language = nil }
        guard self.json.utf8.elementsEqual(json.utf8) else { return nil }
    }

    var json: String {
        var members: JSONObject = [
            "version": .number(JSONNumber(Self.version)), "ignoresAccents": .bool(ignoresAccents),
            "paths": paths.map(\.description).jsonValue,
        ]
        if let language { members["language"] = .string(language) }
        return members.jsonValue.description
    }

    /// The texts of a document, for each path in its order: the string there, or strings in the list there.
    func texts(in properties: JSONObject, id: String) -> [[String]] {
        paths.map { path in path.values(in: properties, id: id).flatMap { $0.map(Self.strings) ?? [] } }
    }

    private static func strings(in value: JSONValue) -> [String] {
        switch value {
        case .string(let text): [text]
        case .array(let elements): elements.flatMap(strings)
        default: []
        }
    }
}

/// The terms of a document's texts, as an index knows them.
struct DocumentTerms {
    /// So many positions are left free between two strings of one list, so that no phrase reaches from one to the other.
    static let gap = 10

    /// Calls `visit` with each term of the texts of all paths.
    ///
    /// - Parameter texts: see ``TextDefinition/texts(in:id:)``.
    /// - Returns: how many positions they have.
    static func forEach<Failure: Error>(
        in texts: [[String]], _ analyzer: TextAnalyzer,
        _ visit: (_ term: Span<UInt8>, TermPlace, _ string: Int, Range<Int>) throws(Failure) -> Void
    ) throws(Failure) -> Int {
        var count = 0
        for (field, strings) in texts.enumerated() {
            var position = 0
            for (number, string) in strings.enumerated() {
                if number > 0 { position += gap }
                let bytes = Array(string.utf8)
                try analyzer.forEachTerm(in: bytes.span) { (term, place) throws(Failure) in
                    if place.isWithinLast { (position, count) = (position - 1, count - 1) }
                    try visit(term, TermPlace(field: field, position: position), number, place.range)
                    position += 1
                    count += 1
                }
            }
        }
        return count
    }
}
