internal import ArgumentParser
internal import Coffer

struct LogCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "List the revisions of a document, branch by branch, the newest first.",
        discussion: """
            The branch of the winning revision comes first. Each line has the revision's id, and says whether it is a \
            deletion, in conflict with the winning revision, or without properties since the store was compacted.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the document, deleted or not.")
    var id: String

    func run(_ console: Console) throws {
        try arguments.withDatabase(readOnly: true) { database in
            let leaves = try database.document(withID: id).leafRevisions
            guard let winner = leaves.first else { throw Failure.documentNotFound(id) }
            var listed: Set<String> = []
            for leaf in leaves {
                // The oldest first, and the leaf last.
                for revision in try leaf.history.reversed() {
                    // From here on the branch is one that was listed.
                    guard listed.insert(revision.revisionID.description).inserted else { break }
                    let isLeaf = revision.revisionID == leaf.revisionID
                    try print(
                        revision, isCurrent: revision.revisionID == winner.revisionID,
                        isConflict: isLeaf && !leaf.isDeletion && leaf.revisionID != winner.revisionID, console)
                }
            }
        }
    }

    private func print(_ revision: SavedRevision, isCurrent: Bool, isConflict: Bool, _ console: Console) throws {
        let hasProperties = try revision.propertiesAvailable
        if console.isJSON {
            var line = JSONLine(type: "revision")
            line.add("id", id)
            line.add("revision", revision.revisionID.description)
            if let parent = try revision.parentRevisionID { line.add("parent", parent.description) }
            line.add("sequence", revision.sequence)
            line.add("current", isCurrent)
            line.add("deleted", revision.isDeletion)
            line.add("conflict", isConflict)
            line.add("available", hasProperties)
            return try console.printResult(line.finished)
        }
        var notes: [String] = []
        if isCurrent { notes.append("current") }
        if revision.isDeletion { notes.append("deleted") }
        if isConflict { notes.append("conflict") }
        if !hasProperties { notes.append("compacted") }
        try console.printResult(([revision.revisionID.description] + notes).joined(separator: "  "))
    }
}

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
