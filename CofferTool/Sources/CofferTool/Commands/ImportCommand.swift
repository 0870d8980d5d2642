internal import ArgumentParser
internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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

/// The files that an import reads: those that were named, and those that are in the folders that were named.
struct ImportFiles {
    struct File: Equatable {
        let path: String
        let byteCount: Int
    }

    private(set) var files: [File] = []

    /// The files in folders that are left alone, as their names do not say that they are JSON.
    private(set) var skipped: [String] = []

    /// How many bytes the files hold together.
    var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }

    private static let extensions: Set<String> = ["json", "ndjson", "jsonl"]

    init(_ paths: [String]) throws(Failure) {
        for path in paths {
            let status = try Self.status(of: path)
            if status.isFolder {
                try addFolder(path)
            } else {
                files.append(File(path: path, byteCount: status.byteCount))
            }
        }
    }

    /// Adds the files right in `folder`, ordered by the bytes of their names; hidden ones and other folders stay out.
    private mutating func addFolder(_ folder: String) throws(Failure) {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: folder)
        } catch {
            throw Failure(describing: error, subject: folder)
        }
        let count = files.count
        for name in names.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) where !name.hasPrefix(".") {
            let path = folder.hasSuffix("/") ? folder + name : folder + "/" + name
            let status = try Self.status(of: path)
            if status.isFolder || !Self.hasExtension(name) {
                skipped.append(path)
            } else {
                files.append(File(path: path, byteCount: status.byteCount))
            }
        }
        guard files.count > count else {
            throw Failure.usage("\(folder): no file in it ends in .json, .ndjson or .jsonl")
        }
    }

    private static func hasExtension(_ name: String) -> Bool {
        guard let dot = name.lastIndex(of: ".") else { return false }
        return extensions.contains(name[name.index(after: dot)...].lowercased())
    }

    private static func status(of path: String) throws(Failure) -> (isFolder: Bool, byteCount: Int) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw Failure.system(errno, path) }
        return (status.st_mode & S_IFMT == S_IFDIR, Int(status.st_size))
    }
}

/// Saves every record of some files, in the transaction of the caller.
struct RecordImport {
    let database: Database
    let id: RecordID
    /// Where the contents are that records name; nil if they must be in the database.
    let contents: ContentFolder?

    /// Returns how many documents were saved.
    func run(_ files: ImportFiles, _ progress: inout ProgressLine) throws -> Int {
        var documentCount = 0
        var earlierByteCount = 0
        for file in files.files {
            let contents = try InputFile.contents(of: file.path)
            do {
                let bytes = contents.span
                var scanner = try RecordScanner(bytes, idField: id.field)
                while let record = try scanner.next(bytes) {
                    try Interruption.check()
                    let id = try self.id.value(of: record, bytes)
                    let body = try self.id.body(of: record, bytes).reduce(into: Data()) { $0 += contents[$1] }
                    try save(body, id, line: record.line)
                    documentCount += 1
                    progress.update(
                        earlierByteCount + record.range.upperBound, of: files.byteCount, "\(documentCount) documents")
                }
            } catch let obstacle as JSONCursor.Obstacle {
                throw Failure.invalidInput(obstacle.message, in: file.path, line: obstacle.line)
            } catch let refusal as Refusal {
                let failure = refusal.failure
                throw failure.exit == .cancelled ? failure : failure.in(file.path, line: refusal.line)
            }
            earlierByteCount += contents.count
        }
        return documentCount
    }

    private func save(_ body: Data, _ id: String?, line: Int) throws {
        do {
            _ = try database.save(json: body, withID: id) { (reference) throws(Failure) in
                try contents?.content(reference)
            }
        } catch let error as CofferError {
            var failure = Failure(error)
            if error.code == .attachmentNotFound {
                failure.hint = "--attachments FOLDER names where export --attachments has put the contents"
            }
            throw Refusal(line: line, failure: failure)
        } catch let failure as Failure {
            throw Refusal(line: line, failure: failure)
        }
    }

    /// Why a record on that line was not saved.
    private struct Refusal: Error {
        let line: Int
        let failure: Failure
    }
}
