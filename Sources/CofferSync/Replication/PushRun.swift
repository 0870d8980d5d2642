internal import CofferModel
internal import Coffer
internal import CofferSealing
internal import Synchronization

/// Sends what the server doesn't have, from a checkpoint to the end. For one task.
///
/// Several requests are on their way at a time, with about as many bytes as two batches may have, and the next batch is read
/// meanwhile. What is recorded as done was answered before, in the order of the feed.
struct PushRun {
    let database: Database
    let remote: RemoteDatabase
    let options: ReplicationOptions
    let monitor: ReplicationMonitor
    private(set) var checkpoints: Checkpoints
    private var refusals = RefusalStreak()
    /// What was sent and not looked at yet.
    private var underWay: SentRevisions

    init(
        _ database: Database, _ remote: RemoteDatabase, _ options: ReplicationOptions, _ monitor: ReplicationMonitor,
        _ checkpoints: Checkpoints
    ) {
        self.database = database
        self.remote = remote
        self.options = options
        self.monitor = monitor
        self.checkpoints = checkpoints
        underWay = SentRevisions(remote, options)
    }

    /// - Parameter start: where the last run of the same session has come to.
    /// - Returns: where it has come to.
    mutating func run(from start: Int) async throws -> Int {
        let pages = ChangedPages(database, options, monitor, from: start)
        return try await send(from: start) { try await pages.next() }
    }

    /// Tries again what did not come across: all of it, or what is worth it before the next run.
    mutating func retry(all: Bool) async throws {
        guard let position = checkpoints.position else { return }
        if all, options.retriesRefused { checkpoints.retryRefused() }
        let due = checkpoints.takePostponed(all: all)
        guard !due.isEmpty else { return }
        let count = options.batchDocumentCount
        let rest = Lock(due[...])
        monitor.change { $0.totalCount += due.count }
        _ = try await send(from: 0) {
            rest.withLock { rest in
                defer { rest = rest.dropFirst(count) }
                return rest.isEmpty ? nil : OutgoingPage(documents: rest.prefix(count).map { ($0.id, $0.revisions) })
            }
        }
        try await checkpoints.record(position)
        try await checkpoints.finish()
    }

    /// Sends everything of these pages.
    ///
    /// - Returns: where the last page ends.
    private mutating func send(
        from start: Int, _ pages: @escaping @Sendable () async throws -> OutgoingPage?
    ) async throws -> Int {
        let source = OutgoingBatches(database, remote, options, pages)
        let batches = ReadAhead { try await source.next() }
        var position = start
        do {
            while let batch = try await next(batches, &position) {
                try Task.checkCancellation()
                switch batch {
                case .together(let documents):
                    while !underWay.hasRoom(for: documents) { try await settleFirst(&position) }
                    underWay.send(documents)
                case .alone(let revision, let history, let known):
                    let upload = RevisionUpload(remote: remote, revision: revision, history: history, known: known)
                    while !underWay.hasRoom(for: upload) { try await settleFirst(&position) }
                    underWay.send(upload)
                case .failure(let failure): underWay.add(failure)
                case .reached(let reached, let ids): underWay.add(reached: reached, ids: ids)
                }
                while underWay.isFirstOver { try await settleFirst(&position) }
            }
            try await settleAll(&position)
            try await checkpoints.finish()
            return position
        } catch {
            await batches.end()
            await source.end()
            await underWay.end()
            // What was sent before counts.
            try? await checkpoints.finish()
            throw error
        }
    }

    /// The next batch. Where it can't be read, that may be so every time: what was sent is looked at all the same.
    private mutating func next(
        _ batches: ReadAhead<OutgoingBatch>, _ position: inout Int
    ) async throws -> OutgoingBatch? {
        do {
            return try await batches.next()
        } catch {
            if !Task.isCancelled { try await settleAll(&position) }
            throw error
        }
    }

    /// Looks at what became of everything that is under way.
    private mutating func settleAll(_ position: inout Int) async throws {
        while !underWay.isEmpty { try await settleFirst(&position) }
    }

    /// Looks at what became of what was sent first, and notes how far it has come.
    private mutating func settleFirst(_ position: inout Int) async throws {
        switch underWay.first {
        case .together(let documents, let answer): try await save(documents[...]) { try await answer.value }
        case .alone(let upload, let answer): try await note(upload) { try await answer.value }
        case .failure(let failure): refuse(failure)
        case .reached(let reached, let ids):
            monitor.change { $0.completedCount += ids.count }
            checkpoints.settle(ids)
            if let reached, reached > position {
                position = reached
                try await checkpoints.record(FeedPosition(.number(JSONNumber(Int64(position)))))
            }
        case nil: break
        }
        underWay.removeFirst()
    }

    /// Sends revisions together; in halves, where all together are refused.
    ///
    /// - Parameter answer: what the server says of them.
    private mutating func save(
        _ entries: ArraySlice<OutgoingDocument>, _ answer: () async throws -> [BulkFailure]
    ) async throws {
        do {
            let failures = try await answer()
            monitor.change { $0.writtenCount += max(0, entries.count - failures.count) }
            for failure in failures {
                let id = ByteKey(failure.id)
                let revision = failure.revision ?? entries.first { ByteKey($0.id) == id }?.revision
                try note(failure.error, failure.id, revision, mayPass: failure.error.mayPass)
            }
            refusals.end()
        } catch let error as SyncError where !error.isAboutServer {
            guard let entry = entries.first, entries.count == 1 else {
                let middle = entries.startIndex + entries.count / 2
                for half in [entries[..<middle], entries[middle...]] {
                    try await save(half) { [remote] in try await remote.save(half.map(\.json)) }
                }
                return
            }
            try refusals.add(error, byteCount: entry.json.count)
            // These are about what was sent. Others may be said by what stands between, or by who doesn't know better.
            let isFinal = [400, 409, 412, 413, 415].contains(error.status)
            try note(error, entry.id, entry.revision, mayPass: !isFinal)
        }
    }

    /// Notes what became of a revision with contents that follow it.
    ///
    /// - Parameter answer: throws what the server says of it.
    private mutating func note(_ upload: RevisionUpload, _ answer: () async throws -> Void) async throws {
        let (id, revisionID) = (upload.revision.revision.documentID, upload.revision.revision.revisionID)
        do {
            try await answer()
            monitor.change { $0.writtenCount += 1 }
        } catch let error as SyncError {
            let mayPass = error.mayPass || error.status == 401 || upload.isForWantOfContents(error)
            try note(error, id, revisionID, mayPass: mayPass)
        } catch let error as CofferError where error.isAboutOneDocument {
            refuse(DocumentFailure(documentID: id, revisionID: revisionID, error: error, isTriedAgain: false))
        }
    }

    /// Notes that a document doesn't go for good.
    private mutating func refuse(_ failure: DocumentFailure) {
        checkpoints.refuse(failure)
        monitor.fail(failure)
    }

    /// Notes that a document was refused.
    ///
    /// - Parameter mayPass: whether it is tried again.
    /// - Throws: the error, where it is about more than this document.
    private mutating func note(_ error: SyncError, _ id: String, _ revision: RevisionID?, mayPass: Bool) throws {
        if error.isAboutServer { throw error }
        let isTriedAgain = mayPass && revision != nil
        let failure = DocumentFailure(documentID: id, revisionID: revision, error: error, isTriedAgain: isTriedAgain)
        if isTriedAgain, let revision { checkpoints.postpone(id, revision, error) } else { checkpoints.refuse(failure) }
        monitor.fail(failure)
    }
}
