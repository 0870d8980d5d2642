internal import ArgumentParser
internal import Coffer

struct QueryCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "query",
        abstract: "Write the documents that match a predicate, as lines of JSON.",
        usage: "coffer query <store> [<options>]",
        discussion: """
            An expression compares properties with JSON values or strings between apostrophes: \
            "type = 'task' and (due < '2026-07-01' or not done = true)". There are =, !=, <, <=, >, >=, between 3 and 5, in with \
            a list, exists, is missing, is a string (or null, boolean, number, list, object), is not, and, or, not and \
            parentheses; for texts contains, starts with, ends with and like with % and _, each with ignoring case, accents \
            behind it or without; for lists has with an element, any tags (it = 'a') and every tags (it > 'a'). A property is a \
            path such as address.city or tags[0]; _id is the document's id. Values of another type than the property's are \
            never less or greater.

            A document's line is that of coffer export. The store is opened for reading only, so that an index that is not up \
            to date serves no query: coffer index update brings it there.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Option(
        name: .customLong("where"),
        help: ArgumentHelp("Only documents that match this predicate.", valueName: "expression"))
    var condition: String?

    @Option(
        help: ArgumentHelp(
            """
            The property to sort by, with ,desc behind it for descending order. Repeat the option to sort documents \
            that are equal in the properties before.
            """,
            valueName: "path"))
    var order: [String] = []

    @Option(help: ArgumentHelp("Skip this many.", valueName: "count"))
    var skip = 0

    @Option(help: ArgumentHelp("At most this many.", valueName: "count"))
    var limit: Int?

    @Flag(help: "Explain how the query would find documents, instead of running it.")
    var explain = false

    @OptionGroup var raw: RawArguments

    func run(_ console: Console) throws {
        guard skip >= 0, limit ?? 0 >= 0 else { throw Failure.usage("counts are not negative") }
        let query = try makeQuery()
        console.escapesResults = raw.escapes
        try arguments.withDatabase(readOnly: true) { database in
            if explain {
                let plan = try database.explain(query)
                try console.printResult(console.isJSON ? plan.json : plan.description)
                return
            }
            try database.documents(query).forEach { revision in
                let document = ExportedDocument(id: revision.documentID, json: try revision.json)
                try console.printResult(console.isJSON ? found(revision, document) : document.line)
            }
        }
    }

    private func makeQuery() throws -> DocumentQuery {
        var query = DocumentQuery()
        do {
            query.predicate = try condition.map { (text) throws(CofferError) in try DocumentPredicate(text) }
        } catch {
            throw Failure.usage("--where: \(error.detail ?? "it can't be read")", hint: "coffer query --help shows one")
        }
        query.order = order.map { text in
            text.hasSuffix(",desc")
                ? .descending(PropertyPath(String(text.dropLast(5))))
                : .ascending(PropertyPath(text.hasSuffix(",asc") ? String(text.dropLast(4)) : text))
        }
        (query.skip, query.limit) = (skip, limit)
        return query
    }

    private func found(_ revision: SavedRevision, _ document: ExportedDocument) -> String {
        var line = JSONLine(type: "document")
        line.add("id", revision.documentID)
        line.add("revision", revision.revisionID.description)
        line.add("sequence", revision.sequence)
        line.add("document", json: document.line)
        return line.finished
    }
}

extension QueryPlan {
    fileprivate var json: String {
        var line = JSONLine(type: "plan")
        if let index { line.add("index", index.name) }
        line.add("narrowing", narrowingCount)
        line.add("checksDocuments", checksDocuments)
        line.add("sortsInMemory", sortsInMemory)
        return line.finished
    }
}

struct SearchCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "search",
        abstract: "Find documents by the words of their texts, the best first.",
        usage: "coffer search <store> <name> <text> [<options>]",
        discussion: """
            Documents must have all words of the text, whatever their case. There are OR between words, - or NOT before a word \
            that must not be there, quotation marks around words that stand one after the other, * behind the beginning of a \
            word, NEAR/3 between words with at most three others between them, title: before what must stand in that \
            property, and parentheses. Quotation marks and parentheses that are not closed reach to the end.

            The index is one of coffer index add --text, and is brought up to date first. A line has the document's id and \
            a piece of its text around what was found.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The name of the text index.")
    var name: String

    @Argument(help: "What to look for.")
    var text: String

    @Option(
        name: .customLong("where"),
        help: ArgumentHelp("Only documents that match this predicate: see coffer query.", valueName: "expression"))
    var condition: String?

    @Option(help: ArgumentHelp("Skip this many.", valueName: "count"))
    var skip = 0

    @Option(help: ArgumentHelp("At most this many.", valueName: "count"))
    var limit = 20

    @Option(help: ArgumentHelp("The number of words around what was found.", valueName: "count"))
    var words = 12

    @OptionGroup var raw: RawArguments

    func run(_ console: Console) throws {
        guard skip >= 0, limit >= 0, words > 0 else { throw Failure.usage("counts are not negative") }
        let predicate: DocumentPredicate?
        do {
            predicate = try condition.map { (text) throws(CofferError) in try DocumentPredicate(text) }
        } catch {
            throw Failure.usage("--where: \(error.detail ?? "it can't be read")", hint: "coffer query --help shows one")
        }
        console.escapesResults = raw.escapes
        try arguments.withDatabase(readOnly: false) { database in
            guard let index = try database.textIndexes.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
                throw Failure(
                    message: "no text index is called \(Console.printable(name)) (404)",
                    hint: "coffer index add --text makes one", code: "indexNotFound", status: 404, exit: .failed)
            }
            let hits = database.search(
                name, for: SearchQuery(text), where: predicate, skip: skip, limit: limit)
            try hits.forEach { hit in
                if console.isJSON {
                    try console.printResult(json(hit))
                } else {
                    try console.printResult(line(hit, of: index))
                }
            }
        }
    }

    private func line(_ hit: SearchHit, of index: TextIndex) throws -> [(text: String, standsOut: Bool)] {
        // The property with the first match.
        let path = try hit.matches.first?.path ?? index.paths[0]
        let parts = try hit.snippetParts(of: path, words: words) ?? []
        return [("\(Console.printable(hit.documentID))  ", false)]
            + parts.map { part in
                let lines = part.text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
                return (lines.joined(separator: " "), part.isMatch)
            }
    }

    private func json(_ hit: SearchHit) throws -> String {
        var line = JSONLine(type: "hit")
        line.add("id", hit.documentID)
        line.add("revision", hit.revision.revisionID.description)
        line.add("score", json: String(hit.score))
        let matches = try hit.matches.map { match in
            "{\"path\":\(JSONLine.quoted(match.path.description)),\"string\":\(match.string),"
                + "\"start\":\(match.range.lowerBound),\"end\":\(match.range.upperBound)}"
        }
        line.add("matches", json: "[" + matches.joined(separator: ",") + "]")
        return line.finished
    }
}
