internal import ArgumentParser
internal import Coffer

struct RemoveCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Delete a document.",
        discussion:
            "The deletion is a revision of its own, which is the result. What was there before goes when space is reclaimed."
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document.")
    var id: String

    func run(_ console: Console) throws {
        let deletion = try arguments.withDatabase(readOnly: false) { database in
            try database.document(withID: id).delete()
        }
        if console.isJSON {
            var line = JSONLine(type: "document")
            line.add("id", id)
            line.add("revision", deletion.revisionID.description)
            line.add("deleted", true)
            try console.printResult(line.finished)
        } else {
            try console.printResult(deletion.revisionID.description)
        }
    }
}
