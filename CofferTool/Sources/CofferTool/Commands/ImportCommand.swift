internal import ArgumentParser
internal import Coffer

struct ImportCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import the records of JSON files, or any files, as documents, in one transaction.",
        usage: "coffer import <store> <paths> ... [<options>]",
        discussion: """
            A file holds an array of objects, one object whose only array holds them, or one object per line (NDJSON, \
            as coffer export writes it); its content decides. In a folder, coffer reads the files that end in .json, \
            .ndjson or .jsonl. The first bad record ends the import, and nothing of it stays. If records name contents \
            of attachments and blobs, --attachments says where these are.

            With --attach a file of any kind becomes its own document, with the file attached under its name. From a \
            folder all files are attached, also hidden ones and those in subfolders, and the path below the folder is \
            the document's id; a symbolic link, a pipe or a device in it ends the import.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "Files, or folders of files.", completion: .file())
    var paths: [String]

    @Option(
        help: ArgumentHelp(
            "The member that holds the id of a record: a string or an integer.",
            discussion: "The default is _id, and a record without an _id gets a new id.", valueName: "field"))
    var id: String?

    @Option(
        help: ArgumentHelp(
            "The folder of contents that export --attachments made. Each is checked as it is read.",
            valueName: "folder"),
        completion: .directory)
    var attachments: String?

    @Flag(help: "Attach the files to documents instead of reading records from them.")
    var attach = false

    func run(_ console: Console) throws {
        if attach { return try attachFiles(console) }
        let contents = try attachments.map { (path) throws(Failure) in try ContentFolder(path) }
        let files = try ImportFiles(paths)
        for path in files.skipped { console.printNote("\(Console.printable(path)): skipped, not called .json") }
        let count = try arguments.withDatabase(readOnly: false) { database in
            Interruption.watch()
            var progress = ProgressLine()
            defer { progress.clear() }
            return try database.inTransaction {
                try RecordImport(database: database, id: id.map(RecordID.member) ?? .usual, contents: contents)
                    .run(files, &progress)
            }
        }
        try printSummary(documentCount: count, fileCount: files.files.count, byteCount: files.byteCount, console)
    }

    private func attachFiles(_ console: Console) throws {
        guard id == nil else { throw Failure.usage("--attach and --id can't be used together") }
        guard attachments == nil else { throw Failure.usage("--attach and --attachments can't be used together") }
        let tree = try FileTree(paths, importedTo: arguments.store)
        try arguments.withDatabase(readOnly: false) { database in
            Interruption.watch()
            let progress = ProgressMeter(total: tree.byteCount)
            defer { progress.clear() }
            try database.inTransaction { try FileImport(database: database).run(tree, progress) }
        }
        let count = tree.files.count
        try printSummary(documentCount: count, fileCount: count, byteCount: tree.byteCount, console)
    }

    private func printSummary(documentCount: Int, fileCount: Int, byteCount: Int, _ console: Console) throws {
        if console.isJSON {
            var line = JSONLine(type: "import")
            line.add("documents", documentCount)
            line.add("files", fileCount)
            line.add("bytes", byteCount)
            try console.printResult(line.finished)
        } else {
            let documents = "\(documentCount) document\(documentCount == 1 ? "" : "s")"
            try console.printResult("\(documents) from \(fileCount) file\(fileCount == 1 ? "" : "s")")
        }
    }
}
