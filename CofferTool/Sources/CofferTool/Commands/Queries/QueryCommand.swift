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
