internal import CofferModel
internal import CofferSealing
internal import Synchronization
public import Coffer
#if Sync
public import Foundation
#else
internal import Foundation
#endif

/// Brings revisions from a database on a server into one here, or from here to there, with CouchDB, Sync Gateway, or a
/// ``Listener``.
///
/// ```swift
/// let pull = try Replication(pull: url, into: database)
/// try await pull.run()                                  // once, to its end
///
/// var options = ReplicationOptions()
/// options.isContinuous = true
/// let push = try Replication(push: database, to: url, options: options)
/// push.start()                                          // until it is stopped
/// for await status in push.statuses { show(status.completedCount, of: status.totalCount) }
/// ```
///
/// Revisions come across as they are, with their ids and histories: where two databases changed a document, both have the
/// conflict, and choose the same revision as the current one. What was exchanged is noted on both sides, and a later run
/// of the same replication goes on from there. Killed at any time, nothing is lost, and nothing is half there: a revision is
/// saved together with its attachments, whose digests were checked.
///
/// One document that is refused keeps no other from coming across: see ``failures``. Safe from any thread. It holds its
/// database, and goes on until it has come to its end or is stopped, even if nobody holds it.
public final class Replication: Sendable {
    /// Which way revisions go.
    public enum Direction: Sendable {
        /// From the server to here.
        case pull
        /// From here to the server.
        case push
    }

    /// The database here.
    public let database: Database

    /// The database there, without the password that its URL may have.
    public let remoteURL: String

    /// Which way revisions go.
    public let direction: Direction

    let options: ReplicationOptions
    let url: RemoteURL
    private let makeTransport: @Sendable () -> any HTTPTransport
    private let sleep: @Sendable (Duration) async throws -> Void
    private let monitor: ReplicationMonitor
    private let runs = Lock(Runs())

    private struct Runs {
        var latest: Task<Bool, Never>?
        /// Tells runs apart.
        var number = 0
    }
    private let downloads = Lock<DownloadSource?>(nil)

    /// - Throws: ``SyncError`` 400 for options that don't go together.
    package init(
        _ direction: Direction, _ database: Database, _ url: RemoteURL, _ options: ReplicationOptions,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        transport: @escaping @Sendable () -> any HTTPTransport
    ) throws(SyncError) {
        guard options.documentIDs == nil || (options.filter == nil && options.channels == nil) else {
            throw SyncError(400, "a filter does not go together with ids of documents")
        }
        guard options.channels == nil || options.filter == nil else {
            throw SyncError(400, "a filter does not go together with channels")
        }
        guard direction == .pull || options.channels == nil else { throw SyncError(400, "only a pull has channels") }
        guard direction == .push || !options.createsTarget else {
            throw SyncError(400, "a pull's target is here, and exists")
        }
        guard options.batchDocumentCount > 0, options.batchByteCount > 0, options.parallelDownloadCount > 0,
            options.retry.attemptCount > 0, (options.attachmentByteLimit ?? 1) > 0
        else { throw SyncError(400, "batches, downloads, attempts and limits are at least one") }
        self.direction = direction
        self.database = database
        self.url = url
        self.options = options
        self.sleep = sleep
        monitor = ReplicationMonitor(
            subject: direction == .pull ? "pull into database \(database.name)" : "push of database \(database.name)")
        remoteURL = url.text
        makeTransport = transport
    }

    /// Contents of more bytes are not fetched; nil if all are.
    var downloadByteLimit: Int? { options.attachmentByteLimit }

    /// What its downloads have in common, made when it is first asked for.
    var downloadSource: DownloadSource {
        downloads.withLock { source in
            if let source { return source }
            let made = DownloadSource(RemoteDatabase(url, makeTransport(), options, sleep: sleep))
            source = made
            return made
        }
    }

    // MARK: Looking

    /// What it is doing.
    public var status: ReplicationStatus { monitor.status }

    /// What it is doing, now and whenever that changes. A slow consumer gets only the latest. Ends with the
    /// replication's life.
    public var statuses: AsyncStream<ReplicationStatus> { monitor.statuses() }

    /// The documents that did not come across since it was started: the first 1,000.
    public var failures: [DocumentFailure] { monitor.failures }

    /// The documents that don't come across, as that is found out.
    public var failureStream: AsyncStream<DocumentFailure> { monitor.failureStream() }

    // MARK: Running

    /// Starts it, unless it is under way. One that is being stopped starts over once it has stopped.
    public func start() { _ = begin() }

    /// The task that is under way, or that begins here. Its value says whether it came to its end.
    private func begin() -> Task<Bool, Never> {
        runs.withLock { runs in
            let last = runs.latest
            if let last, !last.isCancelled { return last }
            runs.number += 1
            let number = runs.number
            monitor.restart()
            let begun = Task {
                if let last {
                    _ = await last.value
                    monitor.restart()
                }
                return await goOn(number)
            }
            runs.latest = begun
            return begun
        }
    }

    /// Stops it, and waits until it has let go of everything. What was exchanged stays.
    public func stop() async {
        let running = runs.withLock { $0.latest }
        running?.cancel()
        _ = await running?.value
    }

    /// Stops it and starts it again, with a new connection: for a network that has changed, say. What was exchanged stays; what
    /// was to be tried again later is tried at once.
    public func restart() async {
        await stop()
        start()
    }

    /// Runs it to its end: until everything was exchanged, or, where it is continuous, until it is stopped.
    ///
    /// - Returns: what it did. Documents that were refused are counted there, and are not errors.
    /// - Throws: what it was stopped by: a ``SyncError``, with the server's status, or 503 and 504 where it can't be reached;
    ///   a `CofferError`; `CancellationError` where the task was cancelled, which stops it, and where somebody else stopped it
    ///   before it had exchanged everything.
    @discardableResult
    public func run() async throws -> ReplicationStatus {
        let running = begin()
        let isOver = await withTaskCancellationHandler {
            await running.value
        } onCancel: {
            running.cancel()
        }
        try Task.checkCancellation()
        let status = status
        if let error = status.error { throw error }
        guard isOver || options.isContinuous else { throw CancellationError() }
        return status
    }

    /// - Returns: whether it came to its end, well or not, and was not stopped before.
    private func goOn(_ number: Int) async -> Bool {
        var isOver = true
        let start = ContinuousClock.now
        CofferLog.write(.info, .sync, monitor.subject, "started")
        let remote = RemoteDatabase(url, makeTransport(), options, sleep: sleep)
        var failureCount = 0
        while !Task.isCancelled {
            do {
                try await exchange(with: remote) { failureCount = 0 }
                break
            } catch  where Task.isCancelled || error is CancellationError {
                isOver = false
                break
            } catch {
                let mayPass = (error as? SyncError)?.mayPass ?? ((error as? CofferError)?.code == .busy)
                monitor.change { $0.error = error }
                guard options.isContinuous, mayPass else {
                    CofferLog.write(.error, .sync, monitor.subject, "given up", LogMessage.details(ofSync: error))
                    break
                }
                failureCount += 1
                monitor.change { $0.activity = .offline }
                CofferLog.write(
                    .warning, .sync, monitor.subject, "offline, and tried again", LogMessage.details(ofSync: error))
                try? await sleep(options.retry.pause(after: failureCount, chance: Double.random(in: 0...1)))
            }
        }
        if Task.isCancelled { isOver = false }
        await remote.close()
        let status = monitor.status
        CofferLog.write(
            .info, .sync, monitor.subject, isOver ? "ended" : "stopped",
            [
                "documents": String(status.completedCount), "failed": String(status.failedCount),
                "milliseconds": (.now - start).inMilliseconds,
            ])
        // A caller that sees that it has stopped may start it again at once.
        runs.withLock { runs in
            if runs.number == number { runs.latest = nil }
            monitor.change { $0.activity = .stopped }
        }
        return isOver
    }

    /// One session: from the checkpoint to the end, and on from there where it is continuous.
    ///
    /// - Parameter progress: told when everything there was has been exchanged.
    private func exchange(with remote: RemoteDatabase, progress: () -> Void) async throws {
        monitor.change { status in
            status.activity = .active
            // What an earlier session counted and did not get to is counted again.
            status.totalCount = status.completedCount
        }
        if try await !remote.exists() {
            guard options.createsTarget else { throw SyncError(404, "there is no such database on the server") }
            try await remote.create()
        }
        let checkpoints = try await Checkpoints(
            database, remote, isPull: direction == .pull, id: try checkpointID())
        monitor.change { $0.error = nil }
        switch direction {
        case .pull: try await pull(remote, checkpoints, progress)
        case .push: try await push(remote, checkpoints, progress)
        }
    }

    private func pull(_ remote: RemoteDatabase, _ checkpoints: Checkpoints, _ progress: () -> Void) async throws {
        var run = PullRun(database, remote, options, monitor, checkpoints)
        var position = checkpoints.position ?? .start
        try await run.retry(all: true)
        var waits = false
        var attemptCount = 0
        while true {
            position = try await run.run(from: position, waits: waits)
            if let error = run.checkpoints.heldBack { throw error }
            progress()
            guard options.isContinuous else { return }
            monitor.change { $0.activity = .idle }
            waits = !run.checkpoints.postponed.hasDue
            if waits {
                attemptCount = 0
            } else {
                attemptCount += 1
                try await sleep(options.retry.pause(after: attemptCount, chance: Double.random(in: 0...1)))
                try await run.retry(all: false)
            }
        }
    }

    private func push(_ remote: RemoteDatabase, _ checkpoints: Checkpoints, _ progress: () -> Void) async throws {
        // Before anything is read, so that nothing is missed.
        var changes = database.changes.makeAsyncIterator()
        var run = PushRun(database, remote, options, monitor, checkpoints)
        var position = checkpoints.position.flatMap { Int(jsonValue: $0.value) } ?? 0
        try await run.retry(all: true)
        var attemptCount = 0
        while true {
            position = try await run.run(from: position)
            if let error = run.checkpoints.heldBack { throw error }
            progress()
            guard options.isContinuous else { return }
            monitor.change { $0.activity = .idle }
            if run.checkpoints.postponed.hasDue {
                attemptCount += 1
                try await sleep(options.retry.pause(after: attemptCount, chance: Double.random(in: 0...1)))
                try await run.retry(all: false)
                continue
            }
            attemptCount = 0
            repeat {
                guard await changes.next() != nil else {
                    try Task.checkCancellation()
                    throw SyncError(400, "the database was closed")
                }
            } while try database.lastSequenceNumber <= position
            monitor.change { $0.activity = .active }
        }
    }
}

#if Sync
extension Replication {
    /// Prepares to fetch what a server's database has into one here.
    ///
    /// - Parameters:
    ///   - url: of the database on the server, such as `https://robin:s3cret@example.com/people`.
    ///   - database: where revisions go. It has to be open for writing.
    ///   - options: see there.
    /// - Throws: ``SyncError`` 400 for a URL that is not a database's, for options that don't go together, and for
    ///   invalid certificates.
    public convenience init(
        pull url: URL, into database: Database, options: ReplicationOptions = ReplicationOptions()
    ) throws(SyncError) {
        try self.init(.pull, database, url, options)
    }

    /// Prepares to send what a database here has to a server.
    ///
    /// - Parameters:
    ///   - database: where revisions come from. It has to be open for writing, since it keeps how far it has come.
    ///   - url: of the database on the server.
    ///   - options: see there.
    /// - Throws: ``SyncError`` 400 for a URL that is not a database's, for options that don't go together, and for
    ///   invalid certificates.
    public convenience init(
        push database: Database, to url: URL, options: ReplicationOptions = ReplicationOptions()
    ) throws(SyncError) {
        try self.init(.push, database, url, options)
    }

    private convenience init(
        _ direction: Direction, _ database: Database, _ url: URL, _ options: ReplicationOptions
    ) throws(SyncError) {
        let remote = try RemoteURL(url)
        try self.init(
            direction, database, remote, options, transport: try NetworkTransport.maker(remote.origin, options))
    }
}
#endif
