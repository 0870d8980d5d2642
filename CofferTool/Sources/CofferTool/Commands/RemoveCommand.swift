internal import ArgumentParser
internal import Coffer

struct RemoveCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Delete a document, or one of its attachments.",
        discussion: """
            Either makes a new revision, whose id is the result. The old content goes when space is reclaimed. If a \
            document has no attachment of that name, nothing happens.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document.")
    var id: String

    @Argument(help: "The name of an attachment. Only it is removed.")
    var attachment: String?

    func run(_ console: Console) throws {
        if let attachment { return try remove(attachment, console) }
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

    private func remove(_ name: String, _ console: Console) throws {
        let revision = try arguments.withDatabase(readOnly: false) { database -> SavedRevision? in
            let current = try database.existingRevision(ofDocument: id)
            guard try current.attachment(named: name) != nil else { return nil }
            let draft = try current.createRevision()
            draft.removeAttachment(named: name)
            return try draft.save()
        }
        if revision == nil {
            let subject = "attachment \(name) of document \(id)"
            console.printNote("\(Console.printable(subject)): it does not exist, and nothing was changed")
        }
        if console.isJSON {
            var line = JSONLine(type: "attachment")
            line.add("id", id)
            line.add("name", name)
            line.add("deleted", revision != nil)
            if let revision { line.add("revision", revision.revisionID.description) }
            try console.printResult(line.finished)
        } else if let revision {
            try console.printResult(revision.revisionID.description)
        }
    }
}
