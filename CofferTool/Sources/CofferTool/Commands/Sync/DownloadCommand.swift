#if Sync
internal import ArgumentParser
internal import Coffer
internal import CofferSync

struct DownloadCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Fetch contents of attachments that a pull left on the server.",
        usage: "coffer download <store> [<id> [<name>]] <url> [<options>]",
        discussion: """
            This fetches all contents that documents of the store name and the store lacks, those of one document, or \
            one attachment. A content counts once its digest was checked and it is on the disk. A content that the \
            server doesn't have doesn't stop the others: a line on standard output names it, and the command ends with \
            3, or with 1 if nothing came. ^C ends it with 130, and downloaded contents stay.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(
        help: ArgumentHelp(
            """
            The id of a document, and the name of one of its attachments, to fetch only that; and last the database on \
            the server, such as https://example.com/people.
            """, valueName: "id name url"))
    var place: [String]

    @OptionGroup var connection: ConnectionArguments

    @Option(
        name: .customLong("max-attachment"),
        help: ArgumentHelp("Leave larger contents on the server.", valueName: "bytes"))
    var attachmentByteLimit: Int?

    var textSources: [KeySource] {
        get throws(Failure) { try connection.namedSources() }
    }

    func run(_ console: Console) throws {
        guard (1...3).contains(place.count), let url = place.last else {
            throw Failure.usage("a document's id and an attachment's name may stand before the URL, and nothing else")
        }
        guard (attachmentByteLimit ?? 1) > 0 else { throw Failure.usage("--max-attachment must be more than 0") }
        let (id, name) = (place.count > 1 ? place[0] : nil, place.count > 2 ? place[1] : nil)
        let server = try connection.place(url)
        _ = try arguments.path()
        var options = try connection.options(url, arguments)
        options.attachmentByteLimit = attachmentByteLimit
        let pulling = options
        try arguments.withDatabase(readOnly: false) { database in
            let pull = try Replication.usable { try Replication(pull: server, into: database, options: pulling) }
            let wanted = try id.map { try pull.missingContents(ofDocumentWithID: $0, named: name) }
            let result: MissingContentResult
            do {
                result = try fetch(wanted, pull, console)
            } catch let error as SyncError {
                throw Failure(error, at: pull.remoteURL)
            } catch let error as Failure where error.exit == .cancelled {
                throw cancelled
            } catch is CancellationError {
                throw cancelled
            }
            try tell(result, pull, console)
        }
    }

    private func fetch(
        _ wanted: [MissingContent]?, _ pull: Replication, _ console: Console
    ) throws -> MissingContentResult {
        let meter = WorkMeter(console, isAsked: connection.progress)
        defer { meter.clear() }
        let count = try wanted?.count ?? pull.database.missingContentCount
        return try Interruptible.run {
            let show: @Sendable (Int) -> Void = { meter.show("download", $0, of: count, "contents") }
            if let wanted { return try await pull.download(wanted, progress: show) }
            return try await pull.downloadMissingContents(progress: show)
        }
    }

    private var cancelled: Failure {
        Failure(
            message: "cancelled; everything downloaded stays, and another download continues from there",
            code: "cancelled",
            status: 499, exit: .cancelled)
    }

    private func tell(_ result: MissingContentResult, _ pull: Replication, _ console: Console) throws {
        for failure in result.failures { try console.printResult(failure.line(console.isJSON)) }
        let left = try pull.database.missingContentCount
        if console.isJSON {
            var line = JSONLine(type: "download")
            line.add("path", arguments.store)
            line.add("url", pull.remoteURL)
            line.add("contents", result.downloadedCount)
            line.add("bytes", result.downloadedByteCount)
            line.add("failed", result.failedCount)
            line.add("missingContents", left)
            try console.printResult(line.finished)
        } else {
            let rest = left > 0 ? ", and \(left) not here" : ""
            try console.printResult("\(result.downloadedCount.counted("content"))\(rest)")
        }
        guard let first = result.failures.first else { return }
        try console.flush()
        throw Failure(
            message: "\(result.failedCount.counted("content")) did not come", code: "contentsRefused",
            status: first.status, exit: count(result) ? .partlyDone : .failed)
    }

    /// Whether anything came.
    private func count(_ result: MissingContentResult) -> Bool { result.downloadedCount > 0 }
}

extension MissingContentResult.Failure {
    var status: Int { (error as? SyncError)?.status ?? (error as? CofferError)?.status ?? 500 }

    /// A line about it.
    func line(_ isJSON: Bool) -> String {
        let reason =
            (error as? SyncError)?.description ?? (error as? CofferError)?.description ?? "an unknown error"
        guard isJSON else {
            return "refused: \(Console.printable(content.name)) of \(Console.printable(content.documentID)): "
                + Console.printable(reason)
        }
        var line = JSONLine(type: "failure")
        line.add("id", content.documentID)
        line.add("attachment", content.name)
        line.add("status", status)
        line.add("message", reason)
        line.add("triedAgain", false)
        return line.finished
    }
}

extension Replication {
    /// The replication that `make` makes.
    ///
    /// - Throws: ``Failure`` of usage for what can't be asked for.
    static func usable(_ make: () throws -> Replication) throws -> Replication {
        do {
            return try make()
        } catch let error as SyncError where error.status == 400 {
            throw Failure.usage(error.description)
        }
    }
}
#endif
