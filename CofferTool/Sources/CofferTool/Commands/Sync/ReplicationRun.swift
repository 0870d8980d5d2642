#if Sync
internal import Coffer
internal import CofferSync

/// A replication as a command runs it: told of as it goes, and ended by ^C.
struct ReplicationRun {
    private let name: String
    private let remote: RemoteArguments
    private let replication: Replication

    /// - Parameter name: what the command is called.
    init(_ name: String, _ remote: RemoteArguments, _ database: Database, _ make: () throws -> Replication) throws {
        self.name = name
        self.remote = remote
        do {
            replication = try make()
        } catch let error as SyncError where error.status == 400 {
            throw Failure.usage(error.description)
        }
    }

    /// Runs it to its end.
    ///
    /// - Parameter store: what results call the store.
    func run(_ store: String, _ console: Console) throws {
        let status: ReplicationStatus
        do {
            status = try exchange(console)
        } catch is CancellationError {
            throw cancelled
        } catch let error as Failure where error.exit == .cancelled {
            throw cancelled
        } catch let error as SyncError {
            throw Failure(error, at: replication.remoteURL)
        }
        try console.printResult(console.isJSON ? json(status, store) : text(status))
        guard status.failedCount > 0 else { return }
        try console.flush()
        let first = replication.failures.first?.error
        throw Failure(
            message: "\(status.failedCount) of \(status.totalCount) documents did not come across",
            hint: "those that were refused for a reason that may pass are tried again by the next run",
            code: "documentsRefused", status: (first as? SyncError)?.status ?? (first as? CofferError)?.status ?? 500,
            exit: .partlyDone)
    }

    private var cancelled: Failure {
        Failure(
            message: "cancelled; what was exchanged stays, and another \(name) goes on from there", code: "cancelled",
            status: 499, exit: .cancelled)
    }

    private func exchange(_ console: Console) throws -> ReplicationStatus {
        let (replication, isJSON) = (replication, console.isJSON)
        let meter = WorkMeter(console, isAsked: remote.progress)
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
                    if isOffline != wasOffline { Self.note(status, meter, isJSON) }
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
            let result: Result<ReplicationStatus, any Error>
            do { result = .success(try await replication.run()) } catch { result = .failure(error) }
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
            let id = Console.printable(failure.documentID)
            try console.printResult("refused: \(id): \(Console.printable(reason ?? "an unknown error"))")
        }
        try console.flush()
    }

    private func text(_ status: ReplicationStatus) -> String {
        let count = status.completedCount - status.failedCount
        let refused = status.failedCount > 0 ? ", and \(status.failedCount) refused" : ""
        return "\(count) document\(count == 1 ? "" : "s")\(refused)"
    }

    private func json(_ status: ReplicationStatus, _ store: String) -> String {
        var line = JSONLine(type: name)
        line.add("path", store)
        line.add("url", replication.remoteURL)
        line.add("documents", status.completedCount - status.failedCount)
        line.add("failed", status.failedCount)
        return line.finished
    }
}
#endif
