internal import CofferModel
internal import Coffer
internal import CofferSealing
internal import Synchronization

/// Fetches what is not here, from a checkpoint to the end. For one task.
///
/// Several things go on at a time: while one batch is saved, those after it are fetched, pages after them are read, and how far it
/// has come is recorded. What is recorded as done was saved before, in the order of the feed.
struct PullRun {
    let database: Database
    let remote: RemoteDatabase
    let options: ReplicationOptions
    let monitor: ReplicationMonitor
    private(set) var checkpoints: Checkpoints
    private let fetcher: RevisionFetcher

    init(
        _ database: Database, _ remote: RemoteDatabase, _ options: ReplicationOptions, _ monitor: ReplicationMonitor,
        _ checkpoints: Checkpoints
    ) {
        self.database = database
        self.remote = remote
        self.options = options
        self.monitor = monitor
        self.checkpoints = checkpoints
        fetcher = RevisionFetcher(database, remote, options)
    }

    /// - Parameters:
    ///   - start: where to begin.
    ///   - waits: whether it waits for a change first.
    /// - Returns: where it has come to.
    mutating func run(from start: FeedPosition, waits: Bool) async throws -> FeedPosition {
        let pages = WantedPages(database, remote, options, monitor, from: start, waits: waits)
        return try await take(from: start) { try await pages.next() }
    }

    /// Tries again what did not come across: all of it, or what is worth it before the next run.
    mutating func retry(all: Bool) async throws {
        guard let position = checkpoints.position else { return }
        if all, options.retriesRefused { checkpoints.retryRefused() }
        let due = checkpoints.takePostponed(all: all)
        guard !due.isEmpty else { return }
        var wanted: [RevisionRequest] = []
        let found = try database.missingRevisions(of: due.map { (id: $0.id, revisions: $0.revisions) })
        for (entry, missing) in zip(due, found) { wanted += try missing.get().requests(ofDocumentWithID: entry.id) }
        monitor.change { $0.totalCount += due.count }
        let pages = Lock<WantedPage?>(WantedPage(wanted: wanted, ids: due.map(\.id), last: position))
        _ = try await take(from: position) {
            guard let page = pages.withLock({ $0.take() }) else { return nil }
            return { page }
        }
    }

    /// Takes everything that pages want.
    ///
    /// - Returns: where the last page ends.
    private mutating func take(
        from start: FeedPosition, _ pages: @escaping @Sendable () async throws -> ReadAhead<WantedPage>.Rest?
    ) async throws -> FeedPosition {
        let fetcher = fetcher
        await fetcher.begin(pages)
        let batches = ReadAhead { try await fetcher.next() }
        do {
            var position = start
            while let batch = try await batches.next() {
                try Task.checkCancellation()
                switch batch {
                case .revisions(let prepared, let failures):
                    for failure in failures { note(failure) }
                    try await save(prepared)
                case .reached(let reached, let ids):
                    monitor.change { $0.completedCount += ids.count }
                    position = reached
                    checkpoints.settle(ids)
                    try await checkpoints.record(position)
                }
            }
            try await checkpoints.finish()
            return position
        } catch {
            await batches.end()
            await fetcher.end()
            // What came before counts.
            try? await checkpoints.finish()
            throw error
        }
    }

    private mutating func save(_ prepared: [PreparedRevision]) async throws {
        guard !prepared.isEmpty else { return }
        let (database, handler, source) = (database, options.conflictHandler, remote.url.text)
        let (writtenCount, failures) = try await database.inTransaction { () throws -> (Int, [DocumentFailure]) in
            var writtenCount = 0
            var failures: [DocumentFailure] = []
            for one in prepared {
                do {
                    let saved = try one.revision.save(in: database, contents: one.contents, from: source)
                    if !saved.wasKnown { writtenCount += 1 }
                    if let handler { try saved.resolveConflicts(handler) }
                } catch let error as CofferError where error.status >= 500 {
                    throw error
                } catch {
                    failures.append(
                        DocumentFailure(
                            documentID: one.revision.id, revisionID: one.revision.revisionID, error: error,
                            isTriedAgain: false))
                }
            }
            return (writtenCount, failures)
        }
        monitor.change { $0.writtenCount += writtenCount }
        for failure in failures { note(failure) }
    }

    private mutating func note(_ failure: DocumentFailure) {
        if failure.isTriedAgain, let revision = failure.revisionID, let error = failure.error as? SyncError {
            checkpoints.postpone(failure.documentID, revision, error)
        } else {
            checkpoints.refuse(failure)
        }
        monitor.fail(failure)
    }
}
