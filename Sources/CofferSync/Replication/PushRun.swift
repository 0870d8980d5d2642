internal import CofferModel
internal import Coffer

/// Sends what the server doesn't have, from a checkpoint to the end. For one task.
struct PushRun {
    let database: Database
    let remote: RemoteDatabase
    let options: ReplicationOptions
    let monitor: ReplicationMonitor
    var checkpoints: Checkpoints
    /// What held documents back that are to be tried again: nothing is recorded any more then.
    private(set) var heldBack: SyncError?

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
        var feed = FeedOptions()
        feed.includesAllLeaves = true
        feed.filter = options.filter
        feed.filterParameters = options.filterParameters
        let ids = options.documentIDs.map { Set($0.map(ByteKey.init)) }
        var position = start
        while true {
            try Task.checkCancellation()
            var batchFeed = feed
            batchFeed.limit = options.batchDocumentCount
            var reader = try FeedReader(database, since: position, batchFeed)
            let changed = try reader.nextBatch()
            if !changed.isEmpty {
                let wanted = changed.filter { document in ids.map { $0.contains(ByteKey(document.documentID)) } ?? true
                }
                monitor.change { $0.totalCount += wanted.count }
                if !wanted.isEmpty { try await send(wanted) }
                monitor.change { $0.completedCount += wanted.count }
            }
            let isOver = changed.isEmpty
            if reader.position > position {
                position = reader.position
                if heldBack == nil { try await checkpoints.record(FeedPosition(.number(JSONNumber(Int64(position))))) }
            }
            if isOver { return position }
        }
    }

    private mutating func send(_ documents: [ChangedDocument]) async throws {
        var question = RevisionsQuestion()
        for document in documents { question.documents.append((document.documentID, document.leafRevisionIDs)) }
        var batch = Batch()
        for (id, difference) in try await remote.difference(question) {
            let document = database.document(withID: id)
            for missing in difference.missing {
                try Task.checkCancellation()
                do {
                    // What was purged or compacted away meanwhile is nobody's any more.
                    guard let revision = try document.revision(withID: missing), try revision.propertiesAvailable else {
                        continue
                    }
                    let outgoing = try OutgoingRevision(revision)
                    let history = try revision.history.reversed().map(\.revisionID)
                    if let json = try Self.alone(outgoing, history, known: difference.possibleAncestors) {
                        if !batch.documents.isEmpty, batch.byteCount + json.count > options.batchByteCount {
                            try await flush(&batch)
                        }
                        batch.add(id, missing, json)
                    } else {
                        try await send(outgoing, history, known: difference.possibleAncestors)
                    }
                } catch let error as SyncError {
                    try note(error, id, missing)
                } catch let error as CofferError where Self.isAboutDocument(error) {
                    monitor.fail(
                        DocumentFailure(documentID: id, revisionID: missing, error: error, isTriedAgain: false))
                }
            }
        }
        try await flush(&batch)
    }

    /// Contents up to that many bytes in all stand in the JSON: a request for each of many small ones would cost more.
    private static let inlineByteLimit = 16 << 10

    /// The revision as JSON that says all of it; nil where contents have to follow, or stay where the server has them.
    private static func alone(
        _ revision: OutgoingRevision, _ history: [RevisionID], known: [RevisionID]
    ) throws -> [UInt8]? {
        let since = DatabaseService.commonGeneration(known, history)
        var contents: [ByteKey: [UInt8]] = [:]
        if !revision.contents.isEmpty {
            guard revision.contents.reduce(0, { $0 + $1.length }) <= inlineByteLimit,
                revision.contents.allSatisfy({ $0.generation > since })
            else { return nil }
            for content in revision.contents {
                guard let bytes = try revision.read(content, in: 0..<content.length) else { return nil }
                contents[ByteKey(content.name)] = bytes
            }
        }
        let json = revision.json(history: history) { content in
            contents[ByteKey(content.name)].map { .inline($0) } ?? .stub
        }
        return try JSONValue.object(json).canonicalJSON()
    }

    private struct Batch {
        var documents: [[UInt8]] = []
        var revisions: [(id: String, RevisionID)] = []
        var byteCount = 0

        mutating func add(_ id: String, _ revision: RevisionID, _ json: [UInt8]) {
            documents.append(json)
            revisions.append((id, revision))
            byteCount += json.count
        }
    }

    /// Sends what was gathered; one by one, where all together are too large.
    private mutating func flush(_ batch: inout Batch) async throws {
        let (documents, revisions) = (batch.documents, batch.revisions)
        batch = Batch()
        guard !documents.isEmpty else { return }
        do {
            for failure in try await remote.save(documents) {
                try note(failure.error, failure.id, failure.revision)
            }
        } catch let error as SyncError where error.status == 413 || error.status == 400 {
            for (json, (id, revision)) in zip(documents, revisions) {
                do {
                    for failure in try await remote.save([json]) {
                        try note(failure.error, failure.id, failure.revision)
                    }
                } catch let error as SyncError {
                    try note(error, id, revision)
                }
            }
        }
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
            // A blob that is too large for the server stays away. The document says what it is, all the same.
            guard let largest = revision.contents.filter(\.isBlob).map(\.length).max() else { throw error }
            let limit = min(largest, Self.blobByteLimit)
            try await remote.save(revision, history: history) { content in
                if content.isBlob, content.length >= limit { return .omitted }
                return content.generation > since ? .follows : .stub
            }
        }
    }

    /// Sync Gateway refuses more: 20 MB.
    private static let blobByteLimit = 20 << 20

    /// Whether an error of the database is about one document: the others can be sent.
    private static func isAboutDocument(_ error: CofferError) -> Bool {
        [.damaged, .revisionNotFound, .attachmentNotFound].contains(error.code)
    }

    /// Notes that a document was refused.
    ///
    /// - Throws: the error, where it is about more than this document.
    private mutating func note(_ error: SyncError, _ id: String, _ revision: RevisionID?) throws {
        if error.isAboutServer { throw error }
        if error.mayPass { heldBack = error }
        monitor.fail(
            DocumentFailure(documentID: id, revisionID: revision, error: error, isTriedAgain: error.mayPass))
    }
}
