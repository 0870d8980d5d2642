internal import ArgumentParser
internal import Coffer
internal import CofferCouchbaseLite
internal import CofferKeys
internal import Foundation

struct ImportCouchbaseCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "import-couchbase",
        abstract: "Import a store of Couchbase Lite 1.x as a new store.",
        usage: """
            coffer import-couchbase <path> <store> --key <source> [<options>]
            coffer import-couchbase <path> <store> --unencrypted [<options>]
            coffer import-couchbase <path> --check [<options>]
            """,
        discussion: """
            Imports documents with their revisions, conflicts, deletions, attachments and expirations, and local \
            documents, but not views and replication checkpoints. The source is only read; close it in every app \
            first. Problems go to standard output, one line for each document, revision or attachment that can't be \
            imported as it is; the command ends with 3 then, and everything else is imported. The new store gets its \
            name when it is whole; ^C leaves nothing.

            With --check, the whole source is read, attachments included, and no store is made.
            """
    )

    @Argument(
        help: ArgumentHelp(
            "The source: a NAME.cblite2 folder, or a NAME.cblite file with its attachments beside it.",
            valueName: "path"),
        completion: .file())
    var source: String

    @Argument(
        help: "The new store: the path of a folder called NAME.coffer, which must not exist. Not with --check.",
        completion: .directory)
    var store: String?

    @Option(
        help: ArgumentHelp(
            "Where the source's key comes from, as for --key: the password that the app used, or 32 bytes.",
            valueName: "source"))
    var sourceKey: String?

    @Option(
        help: ArgumentHelp(
            """
            Where the new store's key comes from: prompt, file:PATH, env:NAME, fd:N, stdin, cmd:COMMAND, \
            credential:NAME or keyring:NAME.
            """,
            discussion: StoreArguments.keyDiscussion, valueName: "source"))
    var key: String?

    @OptionGroup var new: NewStoreArguments

    @Flag(help: "Only read the source, and report what would be imported.")
    var check = false

    @Option(help: ArgumentHelp("The maximum number of problems to list. All are counted.", valueName: "count"))
    var problems = 1_000

    @Flag(help: "Report progress on standard error, even if it is not a terminal.")
    var progress = false

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    /// The same arguments as other commands about a store have.
    var arguments: StoreArguments {
        var arguments = StoreArguments()
        arguments.store = store ?? source
        arguments.key = key
        arguments.json = json
        return arguments
    }

    var stores: [String] { store.map { [$0] } ?? [] }

    var keySources: [KeySource] {
        get throws(Failure) {
            var sources = [try sourceKeySource()].compactMap(\.self)
            if !check, !new.unencrypted, let newKey = try arguments.keySource() {
                sources.append(newKey.asked(for: .new, of: try? arguments.path()))
            }
            return sources
        }
    }

    private func sourceKeySource() throws(Failure) -> KeySource? {
        try sourceKey.map { (text) throws(Failure) in try KeySource(text, of: "--source-key") }
    }

    func run(_ console: Console) throws {
        guard problems >= 0 else { throw Failure.usage("--problems must be 0 or more") }
        var options = CouchbaseLiteImportOptions()
        options.problemLimit = problems
        options.keyedNames = new.keyedNames
        let meter = WorkMeter(console, isAsked: progress)
        defer { meter.clear() }
        let report = try check ? checked(options, meter) : imported(options, meter, console)
        meter.clear()
        for problem in report.problems {
            try console.printResult(console.isJSON ? problem.json : Console.printable("problem: \(problem)"))
        }
        try console.printResult(console.isJSON ? report.json(source, check ? nil : store) : report.text(isCheck: check))
        guard report.isComplete else {
            try console.flush()
            let what = "\(report.problemCount) problem\(report.problemCount == 1 ? "" : "s")"
            throw Failure(
                message: "\(source): \(what); everything else \(check ? "can be" : "was") imported",
                code: "partlyImported", status: 500, exit: .partlyDone)
        }
    }

    private func checked(
        _ options: CouchbaseLiteImportOptions, _ meter: WorkMeter
    ) throws -> CouchbaseLiteImportReport {
        guard store == nil, key == nil, !new.unencrypted, !new.keyedNames, new.storage == nil else {
            throw Failure.usage("--check makes no store: leave out the new store and its options")
        }
        let key = try openingKey()
        let manager = try Manager(directory: FileManager.default.temporaryDirectory)
        return try reading { [url] in
            try await manager.checkCouchbaseLite(at: url, key: key, options: options) { meter.show($0) }
        }
    }

    private func imported(
        _ options: CouchbaseLiteImportOptions, _ meter: WorkMeter, _ console: Console
    ) throws -> CouchbaseLiteImportReport {
        guard store != nil else {
            throw Failure.usage("there is no new store", hint: "name one after the source, or use --check")
        }
        let arguments = arguments
        let path = try arguments.path()
        let manager = try Manager(directory: path.folder)
        guard !manager.databaseExists(named: path.databaseName) else {
            throw Failure(
                message: "\(arguments.store): it exists already", code: "databaseExists", status: 412, exit: .failed)
        }
        try path.checkFolder()
        if let storage = new.storage { manager.storageType = storage.type }
        guard try [sourceKeySource(), arguments.keySource()].count(where: { $0?.usesStandardInput == true }) < 2 else {
            throw Failure.usage("standard input cannot be two keys")
        }
        let key = try openingKey()
        let newKey = try new.options(arguments, console).encryptionKey
        return try reading { [url] in
            try await manager.importCouchbaseLite(
                at: url, named: path.databaseName, key: key, encryptionKey: newKey, options: options
            ) { meter.show($0) }
        }
    }

    private var url: URL { URL(filePath: source) }

    private func openingKey() throws -> SymmetricKey? {
        try sourceKeySource()?.key(for: "Key of \(Console.printable(url.lastPathComponent))")
    }

    private func reading(
        _ work: @escaping @Sendable () async throws -> CouchbaseLiteImportReport
    ) throws -> CouchbaseLiteImportReport {
        do {
            return try Interruptible.run(work)
        } catch let error as CofferError {
            var failure = Failure(error, of: source)
            if error.subject?.hasPrefix("Couchbase Lite store") == true {
                failure.hint =
                    switch error.code {
                    case .keyRequired: "--source-key names where its key comes from"
                    case .wrongKey: "if the key is 32 bytes, put hex+, base64+ or raw+ before its source"
                    default: nil
                    }
            }
            throw failure
        }
    }
}

extension WorkMeter {
    fileprivate func show(_ progress: CouchbaseLiteImportProgress) {
        show("import", progress.completedRevisionCount, of: progress.totalRevisionCount, "revisions")
    }
}

extension CouchbaseLiteImportProblem {
    fileprivate var json: String {
        var line = JSONLine(type: "problem")
        if let documentID { line.add("id", documentID) }
        if let revisionID { line.add("revision", revisionID) }
        if let attachmentName { line.add("attachment", attachmentName) }
        line.add("message", reason)
        return line.finished
    }
}

extension CouchbaseLiteImportReport {
    fileprivate func text(isCheck: Bool) -> String {
        var lines = [
            isCheck ? "would be imported" : "imported",
            "documents    \(documentCount), \(deletedDocumentCount) deleted, \(conflictCount) with a conflict",
            "revisions    \(revisionCount)",
            "attachments  \(attachmentCount), with \(contentCount) contents of \(contentByteCount) bytes",
            "local        \(localDocumentCount)",
            "expirations  \(expirationCount)",
        ]
        if missingContentCount > 0 { lines.append("missing      \(missingContentCount) contents") }
        let skipped = [
            (skippedViewCount, "views"), (skippedCheckpointCount, "checkpoints"),
            (skippedRevisionCount, "leftover revisions"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if !skipped.isEmpty { lines.append("left out     \(skipped.joined(separator: ", "))") }
        return lines.joined(separator: "\n")
    }

    fileprivate func json(_ source: String, _ store: String?) -> String {
        var line = JSONLine(type: "couchbaseImport")
        line.add("source", source)
        if let store { line.add("path", store) }
        line.add("complete", isComplete)
        line.add("schemaVersion", schemaVersion)
        line.add("sourceEncrypted", isSourceEncrypted)
        line.add("documents", documentCount)
        line.add("deletedDocuments", deletedDocumentCount)
        line.add("conflicts", conflictCount)
        line.add("revisions", revisionCount)
        line.add("attachments", attachmentCount)
        line.add("contents", contentCount)
        line.add("contentBytes", contentByteCount)
        line.add("missingContents", missingContentCount)
        line.add("localDocuments", localDocumentCount)
        line.add("expirations", expirationCount)
        line.add("skippedViews", skippedViewCount)
        line.add("skippedCheckpoints", skippedCheckpointCount)
        line.add("skippedRevisions", skippedRevisionCount)
        line.add("problems", problemCount)
        return line.finished
    }
}
