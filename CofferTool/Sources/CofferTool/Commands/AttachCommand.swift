internal import ArgumentParser
internal import Coffer

struct AttachCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "attach",
        abstract: "Attach a file to a document.",
        usage: "coffer attach <store> <id> <name> <file> [<options>]",
        discussion: """
            The document's next revision has the file, which replaces an attachment of the same name. A missing \
            document is created, empty. The result is the new revision's id. A file of any length needs no more memory \
            than a short one.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document.")
    var id: String

    @Argument(help: "The name of the attachment.")
    var name: String

    @Argument(help: "The file to attach, or - for standard input.", completion: .file())
    var file: String

    @Option(
        name: .customLong("type"),
        help: ArgumentHelp("The media type, such as image/png. Coffer guesses none.", valueName: "mime"))
    var contentType: String?

    func run(_ console: Console) throws {
        if file == "-", try arguments.keySource()?.usesStandardInput == true {
            throw Failure.usage("standard input cannot be both the key and the attachment")
        }
        let input = file == "-" ? .standardInput : try OpenFile(file)
        let revision = try arguments.withDatabase(readOnly: false) { database in
            Interruption.watch()
            let progress = ProgressMeter(total: input.byteCount)
            defer { progress.clear() }
            let draft = try database.document(withID: id).newRevision()
            try draft.setAttachment(
                named: name, contentType: contentType, contentsOf: OpenFileStream(input, progress))
            try Interruption.check()
            return try draft.save()
        }
        guard console.isJSON else { return try console.printResult(revision.revisionID.description) }
        guard let attachment = try revision.attachment(named: name) else { return }
        var line = attachment.line(ofDocument: id)
        line.add("revision", revision.revisionID.description)
        try console.printResult(line.finished)
    }
}

extension Attachment {
    /// What is known of the attachment, as JSON. Its content is not touched.
    func line(ofDocument id: String) -> JSONLine {
        var line = JSONLine(type: "attachment")
        line.add("id", id)
        line.add("name", name)
        if let contentType { line.add("contentType", contentType) }
        line.add("digest", digest)
        line.add("length", length)
        return line
    }
}
