internal import ArgumentParser
internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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

struct PutCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Save a document.",
        discussion: "An existing document gets its next revision. The result is the new revision's id."
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document.")
    var id: String

    @Argument(help: "A file with one JSON object. The default, also with -, is standard input.", completion: .file())
    var file = "-"

    func run(_ console: Console) throws {
        let json = try contents()
        let revision = try arguments.withDatabase(readOnly: false) { database in
            try database.inTransaction {
                let current = try database.document(withID: id).currentRevisionID
                return try database.save(json: json, withID: id, replacing: current)
            }
        }
        if console.isJSON {
            var line = JSONLine(type: "document")
            line.add("id", id)
            line.add("revision", revision.revisionID.description)
            try console.printResult(line.finished)
        } else {
            try console.printResult(revision.revisionID.description)
        }
    }

    private func contents() throws(Failure) -> Data {
        guard file == "-" else { return try InputFile.contents(of: file) }
        if try arguments.keySource()?.usesStandardInput == true {
            throw Failure.usage("standard input cannot be both the key and the document")
        }
        return try InputFile.contents(of: STDIN_FILENO, named: "standard input")
    }
}

struct RemoveCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Delete a document, or one of its attachments.",
        discussion: """
            Either makes a new revision, whose id is the result. The old content goes when space is reclaimed. If a \
            document has no attachment of that name, nothing happens. Of a document in conflict only the winning \
            revision is deleted: another one is the document then, as a note says.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document.")
    var id: String

    @Argument(help: "The name of an attachment. Only it is removed.")
    var attachment: String?

    func run(_ console: Console) throws {
        if let attachment { return try remove(attachment, console) }
        let (deletion, next) = try arguments.withDatabase(readOnly: false) { database in
            try database.inTransaction {
                (
                    try database.document(withID: id).delete(),
                    try database.document(withID: id).currentRevision?.revisionID
                )
            }
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
        if let next { console.printNote("the document was in conflict, and is still there as revision \(next)") }
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

struct ListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List the ids of the documents, the names of a document's attachments, or the stores in a folder.",
        usage: "coffer ls <store> [<id>] [<options>]",
        discussion: """
            Ids come in the order of their bytes, one per line; an id or a name that doesn't fit on a line is written \
            as a JSON string.

            For a folder that is not a store, the command lists the paths of the stores in it, as coffer rotate and \
            coffer audit find them: folders called NAME.coffer. That takes no key, and opens nothing.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of a document, whose attachments are listed.")
    var id: String?

    @Option(help: ArgumentHelp("At most this many documents.", valueName: "count"))
    var limit: Int?

    @Flag(help: "Also look into subfolders of a folder of stores. Links and names that begin with a dot are skipped.")
    var recursive = false

    /// Whether a folder of stores is named. If it isn't there, a key or a document says that a store was meant.
    private var isOfFolder: Bool {
        guard (try? arguments.path()) == nil else { return false }
        let meansStore = id != nil || limit != nil || arguments.key != nil
        return Folder.isThere(arguments.store) || (Folder.isMissing(arguments.store) && !meansStore)
    }

    var stores: [String] { isOfFolder ? [] : [arguments.store] }

    func run(_ console: Console) throws {
        guard !isOfFolder else {
            guard id == nil, limit == nil, arguments.key == nil else {
                throw Failure.usage(
                    "\(arguments.store): a folder of stores has no documents", hint: "name one of the stores in it")
            }
            return try listStores(console)
        }
        guard !recursive else { throw Failure.usage("--recursive is for a folder of stores") }
        guard id == nil || limit == nil else { throw Failure.usage("--limit is for the documents of a store") }
        guard limit ?? 0 >= 0 else { throw Failure.usage("counts are not negative") }
        try arguments.withDatabase(readOnly: true) { database in
            if let id {
                for attachment in try database.existingRevision(ofDocument: id).attachments {
                    try console.printResult(
                        console.isJSON
                            ? attachment.line(ofDocument: id).finished : Console.printable(attachment.name))
                }
                return
            }
            var (last, remaining) = (String?.none, limit ?? .max)
            while remaining > 0 {
                let ids = try database.documentIDs(after: last, limit: min(remaining, 10_000))
                for id in ids { try console.printResult(console.isJSON ? json(id) : Console.printable(id)) }
                guard !ids.isEmpty else { break }
                (last, remaining) = (ids.last, remaining - ids.count)
            }
        }
    }

    private func listStores(_ console: Console) throws(Failure) {
        let list = try StoreList(arguments.store, isRecursive: recursive)
        for path in list.paths {
            var line = JSONLine(type: "store")
            line.add("path", path)
            try console.printResult(console.isJSON ? line.finished : Console.printable(path))
        }
        try console.flush()
        if list.isEmpty { list.notePassedOver(console) }
        for folder in list.unreadable { console.printFailure(folder.failure) }
        guard let first = list.unreadable.first?.failure else { return }
        throw Failure(
            message: "\(list.unreadable.count.counted("folder")) could not be read", code: first.code,
            status: first.status, exit: list.paths.isEmpty ? first.exit : .partlyDone)
    }

    private func json(_ id: String) -> String {
        var line = JSONLine(type: "document")
        line.add("id", id)
        return line.finished
    }
}

extension Database {
    /// The winning revision of a document; a failure if it doesn't exist or is deleted.
    func existingRevision(ofDocument id: String) throws -> SavedRevision {
        guard let revision = try document(withID: id).currentRevision else {
            throw Failure.documentNotFound(id)
        }
        return revision
    }
}

extension Failure {
    static func documentNotFound(_ id: String) -> Failure {
        Failure(
            message: "document \(id): document not found (404)", code: "documentNotFound", status: 404, exit: .failed)
    }
}
