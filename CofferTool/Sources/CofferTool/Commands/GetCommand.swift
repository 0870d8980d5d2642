internal import ArgumentParser
internal import Coffer

struct GetCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Write a document as one line of JSON, its _id first.",
        discussion: "_attachments describes the attachments; cat writes their content."
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document.")
    var id: String

    @OptionGroup var raw: RawArguments

    func run(_ console: Console) throws {
        console.escapesResults = raw.escapes
        try arguments.withDatabase(readOnly: true) { database in
            let revision = try database.existingRevision(ofDocument: id)
            let document = try ExportedDocument(id: id, json: revision.json)
            guard console.isJSON else { return try console.printResult(document.line) }
            var line = JSONLine(type: "document")
            line.add("id", id)
            line.add("revision", revision.revisionID.description)
            line.add("document", json: document.line)
            try console.printResult(line.finished)
        }
    }
}
