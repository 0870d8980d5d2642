internal import ArgumentParser
internal import Coffer

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
