internal import CofferModel
internal import Coffer
internal import CofferSealing
internal import Synchronization

/// Sends what the server doesn't have, from a checkpoint to the end. For one task.
///
/// Two batches are on their way at a time, so that the server can read one while it saves the other, and the next is read
/// meanwhile. What is recorded as done was answered before, in the order of the feed.
struct PushRun {
    let database: Database
    let remote: RemoteDatabase
    let options: ReplicationOptions
    let monitor: ReplicationMonitor
    private(set) var checkpoints: Checkpoints
    private var refusals = RefusalStreak()
    /// What was sent and not looked at yet, the first one first.
    private var underWay: [UnderWay] = []

    private enum UnderWay {
        case together([OutgoingDocument], Task<[BulkFailure], any Error>)
        case reached(position: Int?, ids: [String])
    }

    init(
        _ database: Database, _ remote: RemoteDatabase, _ options: ReplicationOptions, _ monitor: ReplicationMonitor,
        _ checkpoints: Checkpoints
    ) {
        self.database = database
        self.remote = remote
        self.options = options
        self.monitor = monitor
        self.checkpoints = checkpoints
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
                    underWay.append(
                        .together(documents, Task { [remote] in try await remote.save(documents.map(\.json)) }))
                case .alone(let revision, let history, let known):
                    // It may take long, and what came before it is known by then.
                    try await settle(downTo: 0, &position)
                    try await save(revision, history, known: known)
                case .failure(let failure): refuse(failure)
                case .reached(let reached, let ids):
                    underWay.append(.reached(position: reached, ids: ids))
                }
                try await settle(downTo: 1, &position)
            }
            try await settle(downTo: 0, &position)
            return position
        } catch {
            await batches.end()
            for case .together(_, let answer) in underWay { answer.cancel() }
            for case .together(_, let answer) in underWay { _ = await answer.result }
            underWay = []
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
            if !Task.isCancelled { try await settle(downTo: 0, &position) }
            throw error
        }
    }

    /// Looks at what became of the first ones under way, until no more than `count` batches are, and notes how far it has come.
    private mutating func settle(downTo count: Int, _ position: inout Int) async throws {
        var batchCount = underWay.count { if case .together = $0 { true } else { false } }
        while let first = underWay.first {
            switch first {
            case .together(let documents, let answer):
                guard batchCount > count else { return }
                try await save(documents[...]) { try await answer.ownValue }
                batchCount -= 1
            case .reached(let reached, let ids):
                monitor.change { $0.completedCount += ids.count }
                checkpoints.settle(ids)
                if let reached, reached > position {
                    position = reached
                    try await checkpoints.record(FeedPosition(.number(JSONNumber(Int64(position)))))
                }
            }
            underWay.removeFirst()
        }
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
                let revision = failure.revision ?? entries.first { $0.id == failure.id }?.revision
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
            try refusals.add(error)
            // These are about what was sent. Others may be said by what stands between, or by who doesn't know better.
            let isFinal = [400, 409, 412, 413, 415].contains(error.status)
            try note(error, entry.id, entry.revision, mayPass: !isFinal)
        }
    }

    /// Sends a revision with contents that follow it.
    private mutating func save(
        _ revision: OutgoingRevision, _ history: [RevisionID], known: [RevisionID]
    ) async throws {
        let (id, revisionID) = (revision.revision.documentID, revision.revision.revisionID)
        do {
            try await send(revision, history, known: known)
            monitor.change { $0.writtenCount += 1 }
        } catch let error as SyncError {
            let mayPass = error.mayPass || error.status == 401 || Self.isForWantOfContents(error, revision)
            try note(error, id, revisionID, mayPass: mayPass)
        } catch let error as CofferError where OutgoingBatches.isAboutDocument(error) {
            refuse(DocumentFailure(documentID: id, revisionID: revisionID, error: error, isTriedAgain: false))
        }
    }

    /// Notes that a document doesn't go for good.
    private mutating func refuse(_ failure: DocumentFailure) {
        checkpoints.refuse(failure)
        monitor.fail(failure)
    }

    /// Sends a revision with its contents: those alone that are new since an ancestor that the server has.
    private func send(_ revision: OutgoingRevision, _ history: [RevisionID], known: [RevisionID]) async throws {
        let since = DatabaseService.commonGeneration(known, history)
        do {
            do {
                try await remote.save(revision, history: history) { $0.generation > since ? .follows : .stub }
            } catch let error as SyncError where [400, 412].contains(error.status) && since > 0 {
                // The server's ancestor is not what it was thought to be.
                try await remote.save(revision, history: history) { _ in .follows }
            }
        } catch let error as SyncError where error.status == 413 {
            try await saveWithoutLargeBlobs(revision, history, since, refusal: error)
        }
    }

    /// Blobs that are too large for the server stay away, the largest first, until it takes the rest. The document says what
    /// they are, all the same.
    private func saveWithoutLargeBlobs(
        _ revision: OutgoingRevision, _ history: [RevisionID], _ since: Int, refusal: SyncError
    ) async throws {
        var refusal = refusal
        let lengths = revision.contents.filter(\.isBlob).map { min($0.length, Self.blobByteLimit) }
        for limit in Set(lengths).sorted(by: >) {
            do {
                try await remote.save(revision, history: history) { content in
                    if content.isBlob, content.length >= limit { return .omitted }
                    return content.generation > since ? .follows : .stub
                }
                return
            } catch let error as SyncError where error.status == 413 {
                refusal = error
            }
        }
        throw refusal
    }

    /// Sync Gateway refuses more: 20 MB.
    private static let blobByteLimit = 20 << 20

    /// Whether a server refuses a revision since it doesn't have a content that is not here either, and may come later.
    private static func isForWantOfContents(_ error: SyncError, _ revision: OutgoingRevision?) -> Bool {
        guard [400, 412].contains(error.status), let revision else { return false }
        return !revision.contents.allSatisfy(revision.isAvailable)
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
