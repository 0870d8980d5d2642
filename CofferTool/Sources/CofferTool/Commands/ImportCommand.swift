internal import ArgumentParser
internal import Coffer

struct ImportCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Save the records of JSON files as documents: all of them, or none.",
        discussion: """
            A file holds an array of objects, or one object whose only array holds them, or one object after the other on \
            lines of their own (NDJSON); its content says which. Of a folder, the files ending in .json, .ndjson or .jsonl \
            are read. The first bad record ends the import, and nothing of it stays.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "Files, or folders of files.")
    var paths: [String]

    @Option(
        help: ArgumentHelp(
            "The member that holds the id of a record: a string or an integer.",
            discussion: "Without it that is _id, and a record without an _id gets a new id.", valueName: "field"))
    var id: String?

    func run(_ console: Console) throws {
        let files = try ImportFiles(paths)
        for path in files.skipped { console.printNote("note: \(Console.printable(path)): skipped, not called .json") }
        let count = try arguments.withDatabase(readOnly: false) { database in
            Interruption.watch()
            var progress = ProgressLine()
            defer { progress.clear() }
            return try database.inTransaction {
                try RecordImport(database: database, id: id.map(RecordID.member) ?? .usual).run(files, &progress)
            }
        }
        if console.isJSON {
            var line = JSONLine(type: "import")
            line.add("documents", count)
            line.add("files", files.files.count)
            line.add("bytes", files.byteCount)
            try console.printResult(line.finished)
        } else {
            let fileCount = files.files.count
            try console.printResult(
                "\(count) document\(count == 1 ? "" : "s") from \(fileCount) file\(fileCount == 1 ? "" : "s")")
        }
    }
}
