internal import ArgumentParser
internal import Coffer

struct CompactCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "compact",
        abstract: "Drop the content of replaced and deleted revisions, and free their space.",
        discussion: """
            This drops the properties of replaced revisions, and contents of attachments that no other revision uses. \
            Winning and conflicting revisions keep everything. The command works in short steps: ^C ends it after one \
            of them.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Option(
        help: ArgumentHelp(
            """
            From now on keep this many revisions of each branch, and prune older ones at once: 20 in a new store. The \
            last revision that a server had stays, with all later ones.
            """, valueName: "revisions"))
    var depth: Int?

    func run(_ console: Console) throws {
        if let depth, depth < 1 { throw Failure.usage("--depth is 1 or more: the current revision is always kept") }
        Interruption.watch()
        let result = try arguments.withMaintainedStore(readOnly: false) { store in
            if let depth { try store.setMaxRevTreeDepth(depth) }
            return try Interruptible.run { try await store.compacted() }
        }
        try console.printResult(console.isJSON ? result.json : result.text)
    }
}

extension CompactionResult {
    fileprivate var text: String {
        """
        revisions    \(revisionCount)
        attachments  \(attachmentCount), of \(attachmentByteCount) bytes
        database     \(databaseByteCount) bytes shorter
        """
    }

    fileprivate var json: String {
        var line = JSONLine(type: "compaction")
        line.add("revisions", revisionCount)
        line.add("attachments", attachmentCount)
        line.add("attachmentBytes", attachmentByteCount)
        line.add("databaseBytes", databaseByteCount)
        return line.finished
    }
}
