internal import ArgumentParser
internal import Coffer

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
