#if Sync
internal import Coffer
internal import CofferSync

/// A replication as a command runs it: told of as it goes, and ended by ^C.
struct ReplicationRun {
    private let name: String
    private let remote: ExchangeArguments
    private let replication: Replication

    /// What came of it.
    private struct Outcome: Sendable {
        var status: ReplicationStatus
        /// Contents that were left out before; nil if they were not asked for.
        var contents: MissingContentResult?
    }

    /// - Parameter name: what the command is called.
    init(_ name: String, _ remote: ExchangeArguments, _ database: Database, _ make: () throws -> Replication) throws {
        self.name = name
        self.remote = remote
        replication = try Replication.usable(make)
    }

    /// Runs it to its end, or only lists what was refused, where that is asked for.
    ///
    /// - Parameters:
    ///   - store: what results call the store.
    ///   - fetchesContents: whether it fetches contents, too, that earlier pulls left out. Default: false.
    func run(_ store: String, fetchesContents: Bool = false, _ console: Console) throws {
        guard !remote.failed else { return try list(console) }
        let outcome: Outcome
        do {
            outcome = try exchange(console, fetchesContents)
        } catch is CancellationError {
            throw cancelled
        } catch let error as Failure where error.exit == .cancelled {
            throw cancelled
        } catch let error as SyncError {
            throw Failure(error, at: replication.remoteURL)
        }
        let status = outcome.status
        // Documents that were refused in an earlier run and are still not settled.
        let told = Set(replication.failures.map { "\($0.revisionID?.description ?? "") \($0.documentID)" })
        let earlier = try replication.refusedDocuments().filter {
            !told.contains("\($0.revisionID?.description ?? "") \($0.documentID)")
        }
        for failure in earlier { try Self.print(failure, console.isJSON) }
        let failedCount = status.failedCount + earlier.count
        try console.printResult(try console.isJSON ? json(outcome, failedCount, store) : text(outcome, failedCount))
        guard failedCount > 0 else { return }
        try console.flush()
        let total = earlier.isEmpty ? " of \(status.totalCount)" : ""
        throw refusal(
            replication.failures.first ?? earlier.first, "\(failedCount)\(total) documents did not come across")
    }

    /// Lists what was refused for good and is not settled.
    private func list(_ console: Console) throws {
        let refused = try replication.refusedDocuments()
        for failure in refused { try Self.print(failure, console.isJSON) }
        try console.flush()
        guard let first = refused.first else { return }
        throw refusal(first, "\(refused.count) documents have not come across")
    }

    private func refusal(_ first: DocumentFailure?, _ message: String) -> Failure {
        Failure(
            message: message,
            hint: "the next run retries those refused for a temporary reason; retry others with "
                + "--retry-failed",
            code: "documentsRefused",
            status: (first?.error as? SyncError)?.status
                ?? (first?.error as? CofferError)?.status ?? 500,
            exit: .partlyDone)
    }

    private var cancelled: Failure {
        Failure(
            message: "cancelled; everything exchanged stays, and another \(name) continues from there",
            code: "cancelled",
            status: 499, exit: .cancelled)
    }

    private func exchange(_ console: Console, _ fetchesContents: Bool) throws -> Outcome {
        let (replication, isJSON) = (replication, console.isJSON)
        let (ids, isContinuous) = (remote.documentIDs.isEmpty ? nil : remote.documentIDs, remote.continuous)
        let meter = WorkMeter(console, isAsked: remote.connection.progress)
        defer { meter.clear() }
        // Before it begins, so that nothing is missed.
        let (statuses, failures) = (replication.statuses, replication.failureStream)
        let name = name
        return try Interruptible.run {
            let showing = Task {
                var wasOffline = false
                for await status in statuses {
                    meter.show(status, name)
                    let isOffline = status.activity == .offline
                    // One that has ended while it waited has met nobody.
                    if isOffline != wasOffline, status.activity != .stopped { Self.note(status, meter, isJSON) }
                    wasOffline = isOffline
                }
            }
            let telling = Task {
                var count = 0
                for await failure in failures {
                    meter.clear()
                    try Self.print(failure, isJSON)
                    count += 1
                }
                return count
            }
            let result: Result<Outcome, any Error>
            do {
                var contents: MissingContentResult?
                // One that goes on for ever would never come to it.
                if fetchesContents, isContinuous {
                    contents = try await replication.downloadMissingContents(ofDocumentsWithIDs: ids)
                }
                let status = try await replication.run()
                if fetchesContents, !isContinuous {
                    contents = try await replication.downloadMissingContents(ofDocumentsWithIDs: ids)
                }
                result = .success(Outcome(status: status, contents: contents))
            } catch { result = .failure(error) }
            showing.cancel()
            telling.cancel()
            await showing.value
            // Those that were not told of in time.
            for failure in replication.failures.dropFirst(try await telling.value) { try Self.print(failure, isJSON) }
            return try result.get()
        }
    }

    // MARK: Words

    /// Tells that the server is gone, or there again.
    private static func note(_ status: ReplicationStatus, _ meter: WorkMeter, _ isJSON: Bool) {
        meter.clear()
        let reason = status.error.map { ", since \($0)" } ?? ""
        Console(isJSON: isJSON).printNote(
            status.activity == .offline ? "waiting for the server\(reason)" : "the server is there again")
    }

    private static func print(_ failure: DocumentFailure, _ isJSON: Bool) throws {
        let console = Console(isJSON: isJSON)
        let reason = (failure.error as? SyncError)?.description ?? (failure.error as? CofferError)?.description
        if isJSON {
            var line = JSONLine(type: "failure")
            line.add("id", failure.documentID)
            if let revision = failure.revisionID { line.add("revision", revision.description) }
            line.add("status", (failure.error as? SyncError)?.status ?? (failure.error as? CofferError)?.status ?? 500)
            line.add("message", reason ?? "an unknown error")
            line.add("triedAgain", failure.isTriedAgain)
            try console.printResult(line.finished)
        } else {
            let id = Console.printable(shortened(failure.documentID))
            try console.printResult("refused: \(id): \(Console.printable(reason ?? "an unknown error"))")
        }
        try console.flush()
    }

    /// Ids of other databases may have thousands of bytes, which nobody reads.
    private static func shortened(_ id: String) -> String { id.utf8.count > 200 ? id.prefix(100) + "…" : id }

    private func text(_ outcome: Outcome, _ failedCount: Int) throws -> String {
        let count = max(0, outcome.status.completedCount - outcome.status.failedCount)
        var text = count.counted("document")
        if let fetchedCount = outcome.contents?.downloadedCount, fetchedCount > 0 {
            text += ", and \(fetchedCount.counted("content")) that earlier pulls left out"
        }
        if failedCount > 0 { text += ", and \(failedCount) refused" }
        let left = replication.direction == .pull ? try replication.database.missingContentCount : 0
        if left > 0 { text += "; \(left.counted("content")) not here" }
        return text
    }

    private func json(_ outcome: Outcome, _ failedCount: Int, _ store: String) throws -> String {
        var line = JSONLine(type: name)
        line.add("path", store)
        line.add("url", replication.remoteURL)
        line.add("documents", max(0, outcome.status.completedCount - outcome.status.failedCount))
        line.add("failed", failedCount)
        if replication.direction == .pull {
            line.add("contents", outcome.contents?.downloadedCount ?? 0)
            line.add("missingContents", try replication.database.missingContentCount)
        }
        return line.finished
    }
}
#endif
