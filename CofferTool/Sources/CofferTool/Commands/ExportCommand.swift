internal import ArgumentParser
internal import Coffer
@_spi(Tool) internal import CofferMaintenance

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

struct ExportCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write all documents as lines of unencrypted JSON.",
        usage: "coffer export <store> [<file>] [<options>]",
        discussion: """
            Each document is one line, its _id first, in the order of the ids' bytes. Deleted documents, earlier \
            revisions and conflicting ones that are not the winning revision are left out. The export is a snapshot: \
            nobody writes meanwhile. coffer import makes the same documents from it.

            With --attachments the content of each attachment and blob becomes a file, named by its SHA-1, once for \
            all documents that use it. Without it, the lines describe the contents, and standard error says how many \
            were left out.

            The output is not encrypted. It goes to files that only you can read, and overwrites none. Any failure, \
            also damage, removes all of them again.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(
        help: "The file, which must not exist. The default, also with -, is standard output.", completion: .file())
    var file = "-"

    @Option(
        help: ArgumentHelp(
            "A folder for the contents of attachments and blobs. It must be new or empty.",
            valueName: "folder"),
        completion: .directory)
    var attachments: String?

    @OptionGroup var raw: RawArguments

    func run(_ console: Console) throws {
        try checkPlaces()
        Interruption.watch()
        let (summary, byteCount) = try arguments.withMaintainedStore(readOnly: true) { store in
            let folder = try attachments.map { (path) throws(Failure) in try ContentFolder(new: path) }
            do {
                var output = try file == "-" ? ExportFile(escapes: raw.escapes) : ExportFile(file)
                var export = DocumentExport(try source(of: store, console), contentsTo: folder)
                try export.run(to: &output)
                try output.finish()
                return (export.summary, output.byteCount)
            } catch {
                folder?.remove()
                throw error
            }
        }
        try report(summary, byteCount, console)
    }

    private func source(of store: any MaintainedStore, _ console: Console) throws -> any ExportSource {
        if let database = store as? Database { return OpenStoreExport(database) }
        guard let database = store as? DatabaseInUse else { preconditionFailure("it is open here or elsewhere") }
        console.printNote(
            "another process has it open: the export is not a snapshot; each document is exported as it is when its turn comes"
        )
        return StoreInUseExport(database)
    }

    /// Throws where the files would be in the store itself.
    private func checkPlaces() throws(Failure) {
        guard let store = FileIdentity(path: arguments.store) else { return }
        for path in [file == "-" ? nil : file, attachments].compactMap(\.self) {
            // Of what does not exist yet, the folder counts that it will be in.
            for place in [path, Folder.parent(of: path)] where store.contains(folder: place) {
                throw Failure.usage("\(path): it is inside the store")
            }
        }
    }

    private func report(_ summary: DocumentExport.Summary, _ byteCount: Int, _ console: Console) throws {
        func note(_ count: Int, _ one: String, _ many: String) {
            if count > 0 { console.printNote(count == 1 ? "1 \(one)" : "\(count) \(many)") }
        }
        if file != "-" { try console.printResult(console.isJSON ? json(summary, byteCount) : text(summary)) }
        note(
            summary.omittedCount, "attachment or blob was left out: --attachments exports it too",
            "attachments and blobs were left out: --attachments exports them too")
        note(
            summary.conflictCount, "document has a conflict, and its winning revision was exported",
            "documents have conflicts, and their winning revisions were exported")
        guard summary.missingCount > 0 else { return }
        try console.flush()
        throw Failure(
            message: "\(summary.missingCount) of the contents are not in the store, so the export lacks them (404)",
            code: "attachmentNotFound", status: 404, exit: .partlyDone)
    }

    private func text(_ summary: DocumentExport.Summary) -> String {
        let documents = "\(summary.documentCount) document\(summary.documentCount == 1 ? "" : "s")"
        guard attachments != nil else { return documents }
        let contents = "\(summary.contentCount) content\(summary.contentCount == 1 ? "" : "s")"
        return "\(documents), \(contents) of \(summary.contentByteCount) bytes"
    }

    private func json(_ summary: DocumentExport.Summary, _ byteCount: Int) -> String {
        var line = JSONLine(type: "export")
        line.add("documents", summary.documentCount)
        line.add("bytes", byteCount)
        line.add("contents", summary.contentCount)
        line.add("contentBytes", summary.contentByteCount)
        line.add("leftOut", summary.omittedCount)
        line.add("conflicts", summary.conflictCount)
        return line.finished
    }
}
