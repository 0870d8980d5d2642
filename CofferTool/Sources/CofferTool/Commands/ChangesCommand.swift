internal import ArgumentParser
internal import Coffer

struct ChangesCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "List changed documents, in the order of their last changes.",
        usage: "coffer changes <store> [<options>]",
        discussion: """
            Each line has the sequence, the current revision, whether the document is deleted, and its id. Another run \
            with --since and the last sequence lists later changes.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Option(help: ArgumentHelp("Only changes after this sequence.", valueName: "sequence"))
    var since = 0

    @Option(help: ArgumentHelp("At most this many.", valueName: "count"))
    var limit: Int?

    func run(_ console: Console) throws {
        guard since >= 0, limit ?? 0 >= 0 else { throw Failure.usage("sequences and counts are not negative") }
        try arguments.withDatabase(readOnly: true) { database in
            var options = FeedOptions()
            options.limit = limit
            try database.changes(since: since, options: options).forEach { change in
                try console.printResult(console.isJSON ? json(change) : text(change))
            }
        }
    }

    private func text(_ change: ChangedDocument) -> String {
        let deletion = change.isDeletion ? "deleted  " : ""
        return "\(change.sequence)  \(change.revision.revisionID)  \(deletion)\(Console.printable(change.documentID))"
    }

    private func json(_ change: ChangedDocument) -> String {
        var line = JSONLine(type: "change")
        line.add("sequence", change.sequence)
        line.add("id", change.documentID)
        line.add("revision", change.revision.revisionID.description)
        line.add("deleted", change.isDeletion)
        return line.finished
    }
}
