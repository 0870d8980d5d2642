internal import CofferModel
public import CofferSealing
internal import CofferRecords

/// An index over the words of texts: see `createTextIndex(named:on:ignoresAccents:language:)`.
public struct TextIndex: Sendable, Equatable {
    /// Its name.
    public let name: String

    /// The properties whose texts it has.
    public let paths: [PropertyPath]

    /// Whether words are the same with and without accents.
    public let ignoresAccents: Bool

    /// The language whose words are reduced to their stems; nil if words are compared as they are.
    public let language: String?

    /// How many documents with a text it had when it was last brought up to date.
    public let documentCount: Int

    /// Whether documents were saved since.
    public let isStale: Bool

    init(_ row: IndexRow, in tables: borrowing Snapshot) throws(CofferError) {
        let definition = try TextDefinition(of: row, tables.subject)
        name = row.name
        paths = definition.paths
        ignoresAccents = definition.ignoresAccents
        language = definition.language
        documentCount = row.entryCount
        isStale = try !tables.isUpToDate(row)
    }
}

extension TextDefinition {
    /// What a row of `indexes` says.
    init(of row: IndexRow, _ subject: String) throws(CofferError) {
        guard let definition = TextDefinition(json: row.definition), !definition.paths.isEmpty else {
            throw CofferError(.damaged, of: subject, "the text index \(row.name) doesn't state what it is over")
        }
        self = definition
    }
}

extension Database {
    // MARK: Text indexes

    /// Declares an index over the words of texts, so that ``search(_:for:where:weights:skip:limit:)`` finds documents by them.
    ///
    /// It has the current revision of each document that is not deleted, and of it the strings at the given properties, and the
    /// strings in lists there. It is kept in the database, encrypted as it is, and survives a change of its key; searches bring
    /// it up to date. The text itself is not stored twice. A thousand words take about 6 KB, and
    /// twice that where there is a language.
    ///
    /// Words are found whatever their case. They end where letters and digits do, so that `user_name` and `AB-12` are two words
    /// each, and are found as a whole, too. In scripts without spaces, as Chinese and Thai, each two characters that stand side by
    /// side are found.
    ///
    /// - Parameters:
    ///   - name: 1 to 400 bytes. A text index of that name over other properties is replaced.
    ///   - paths: one property at least, and 64 at most.
    ///   - ignoresAccents: whether `creme` finds `crème`. Default: true.
    ///   - language: `"en"` finds all forms of English words by one of them; others are known by ``setStemmer(forLanguage:_:)``.
    ///     Default: nil, words are found as they are.
    /// - Returns: whether there wasn't one over these properties, in this way, by that name.
    /// - Throws: `invalidArgument` (400) for no properties or too many, a name or paths that are too long, and an unknown language;
    ///   `readOnly` (403), `busy` (503), `noSpace` (507).
    @discardableResult
    public func createTextIndex(
        named name: String, on paths: [PropertyPath], ignoresAccents: Bool = true, language: String? = nil
    ) throws(CofferError) -> Bool {
        guard (1...Int(TextDefinition.pathLimit)).contains(paths.count) else {
            throw CofferError(
                .invalidArgument, of: "text index \(name)", "it needs 1 to \(TextDefinition.pathLimit) properties")
        }
        let text = TextDefinition(paths: paths, ignoresAccents: ignoresAccents, language: language)
        let definition = IndexDefinition(named: name, text, try text.analyzer(storage.indexes))
        return try storage.declare(definition)
    }

    /// Gives text indexes of a language a function that makes the stem of a word, one of all its forms.
    ///
    /// As the functions of views, it is not stored: set it each time the database is opened, before such an index is created or
    /// searched. An index that was made with another function has other stems, so another function needs another name, such as
    /// `"de-2"`.
    ///
    /// - Parameters:
    ///   - language: any name but `"en"`, which is built in. 1 to 100 bytes.
    ///   - stem: is given words in lower case, without accents where these don't count, on any thread and within a transaction:
    ///     it may not use the database. Nil takes it away.
    /// - Throws: `invalidArgument` (400) for another language.
    public func setStemmer(
        forLanguage language: String, _ stem: (@Sendable (_ word: String) -> String)?
    ) throws(CofferError) {
        guard TextStemmer(language: language) == nil, (1...100).contains(language.utf8.count) else {
            throw CofferError(
                .invalidArgument, of: storage.subject,
                "a stemmer is for a language of 1 to 100 bytes that Coffer doesn't know")
        }
        storage.indexes.setStemmer(stem.map { TextStemmer($0) }, of: language)
    }

    /// Drops a text index.
    ///
    /// - Returns: whether there was one of that name.
    /// - Throws: `readOnly` (403), `busy` (503).
    @discardableResult
    public func deleteTextIndex(named name: String) throws(CofferError) -> Bool {
        try storage.deleteIndex(.text, name)
    }

    /// The text indexes, sorted by the bytes of their names.
    public var textIndexes: [TextIndex] {
        get throws(CofferError) {
            try storage.listIndexes(.text) { (row, tables) throws(CofferError) in try TextIndex(row, in: tables) }
        }
    }

    /// Brings a text index up to date, which searches do automatically.
    ///
    /// - Returns: how many documents were looked at.
    /// - Throws: `invalidArgument` (400) if there is no such index; `readOnly` (403), `busy` (503), `noSpace` (507), `damaged` (500).
    @discardableResult
    public func updateTextIndex(named name: String) throws(CofferError) -> Int {
        try bringTextIndexUpToDate(name).documentCount
    }

    /// Brings it up to date as it is declared, also where it is declared otherwise meanwhile.
    func bringTextIndexUpToDate(_ name: String) throws(CofferError) -> (row: IndexRow, documentCount: Int) {
        for _ in 0..<Self.attemptLimit {
            let definition = try textIndexDefinition(name)
            let result = try storage.healingIndexes { () throws(CofferError) in
                try storage.update(definition, making: false, in: self)
            }
            if let result { return result }
        }
        throw CofferError(.damaged, of: storage.subject, "a listed text index can't be found")
    }

    private func textIndexDefinition(_ name: String) throws(CofferError) -> IndexDefinition {
        let text = try storage.readIndexes { (tables) throws(CofferError) -> TextDefinition? in
            guard try tables.indexes.areUsable(), let row = try tables.indexes.index(.text, name) else { return nil }
            return try TextDefinition(of: row, storage.subject)
        }
        guard let text else { throw storage.missingTextIndex(name) }
        return IndexDefinition(named: name, text, try text.analyzer(storage.indexes))
    }
}

extension Storage {
    /// What is wrong where a text index isn't there.
    func missingTextIndex(_ name: String) -> CofferError {
        indexes.haveLostDefinitions
            ? CofferError(
                .damaged, of: subject, "the list of text indexes was damaged, and is lost: declare them again")
            : CofferError(.invalidArgument, of: subject, "no text index is called \(name)")
    }
}

extension TextDefinition {
    /// What takes its texts, and queries, apart.
    ///
    /// - Throws: `invalidArgument` (400) for a language that nobody knows.
    func analyzer(_ indexes: OpenIndexes) throws(CofferError) -> TextAnalyzer {
        guard let language else { return TextAnalyzer(ignoresAccents: ignoresAccents) }
        guard let stemmer = indexes.stemmer(of: language) else {
            throw CofferError(
                .invalidArgument, "words of the language \(language) can't be reduced to stems: it has no stemmer here")
        }
        return TextAnalyzer(ignoresAccents: ignoresAccents, stemmer: stemmer)
    }
}

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
