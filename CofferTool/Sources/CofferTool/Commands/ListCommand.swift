internal import ArgumentParser
internal import Coffer

struct ListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List the ids of the documents, or the names of a document's attachments.",
        discussion: """
            Ids come in the order of their bytes, one on each line; an id or a name that does not fit there as a JSON string.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of a document, whose attachments are listed.")
    var id: String?

    func run(_ console: Console) throws {
        try arguments.withDatabase(readOnly: true) { database in
            if let id {
                for attachment in try database.existingRevision(ofDocument: id).attachments {
                    try console.printResult(
                        console.isJSON
                            ? attachment.line(ofDocument: id).finished : Console.printable(attachment.name))
                }
                return
            }
            var ids = try database.documentIDs()
            while let last = ids.last {
                for id in ids { try console.printResult(console.isJSON ? json(id) : Console.printable(id)) }
                ids = try database.documentIDs(after: last)
            }
        }
    }

    private func json(_ id: String) -> String {
        var line = JSONLine(type: "document")
        line.add("id", id)
        return line.finished
    }
}
