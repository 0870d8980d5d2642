internal import ArgumentParser
internal import Coffer

struct CompactCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "compact",
        abstract: "Drop what replaced and deleted revisions keep, and give the space back.",
        discussion: """
            The properties of revisions that were replaced go, and contents of attachments that no other revision uses. \
            Revisions that count or are in conflict keep everything. It works in short steps: ^C ends it after one of them.
            """
    )

    @OptionGroup var arguments: StoreArguments

    func run(_ console: Console) throws {
        Interruption.watch()
        let result = try arguments.withDatabase(readOnly: false) { database in
            try Interruptible.run { try await database.compact() }
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
