internal import CofferModel
internal import Coffer

/// Sends what the server doesn't have, from a checkpoint to the end. For one task.
struct PushRun {
    let database: Database
    let remote: RemoteDatabase
    let options: ReplicationOptions
    let monitor: ReplicationMonitor
    private(set) var checkpoints: Checkpoints
    private var refusals = RefusalStreak()

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
        feed.limit = options.batchDocumentCount
        let ids = options.documentIDs.map { Set($0.map(ByteKey.init)) }
        var position = start
        while true {
            try Task.checkCancellation()
            var reader = try FeedReader(database, since: position, feed, passesOverFailedFilters: true)
            let changed = try reader.nextBatch()
            for (id, error) in reader.failedFilters {
                monitor.fail(DocumentFailure(documentID: id, revisionID: nil, error: error, isTriedAgain: false))
            }
            let wanted = changed.filter { document in ids.map { $0.contains(ByteKey(document.documentID)) } ?? true }
            monitor.change { $0.totalCount += wanted.count }
            try await send(wanted.map { ($0.documentID, $0.leafRevisionIDs) })
            monitor.change { $0.completedCount += wanted.count }
            if reader.position > position {
                position = reader.position
                try await checkpoints.record(FeedPosition(.number(JSONNumber(Int64(position)))))
            }
            if changed.isEmpty { return position }
        }
    }

    /// Tries again what did not come across: all of it, or what is worth it before the next run.
    mutating func retry(all: Bool) async throws {
        guard let position = checkpoints.position else { return }
        var rest = checkpoints.takePostponed(all: all)[...]
        guard !rest.isEmpty else { return }
        while !rest.isEmpty {
            try Task.checkCancellation()
            try await send(rest.prefix(options.batchDocumentCount).map { ($0.id, $0.revisions) })
            rest = rest.dropFirst(options.batchDocumentCount)
        }
        try await checkpoints.record(position)
    }

    private mutating func send(_ documents: [(id: String, revisions: [RevisionID])]) async throws {
        guard !documents.isEmpty else { return }
        var question = RevisionsQuestion()
        question.documents = documents
        var batch = Batch()
        for (id, difference) in try await remote.difference(question) {
            let document = database.document(withID: id)
            for missing in difference.missing {
                try Task.checkCancellation()
                var json: [UInt8]?
                var sent: OutgoingRevision?
                do {
                    // What was purged or compacted away meanwhile is nobody's any more.
                    guard let revision = try document.revision(withID: missing), try revision.propertiesAvailable else {
                        continue
                    }
                    let outgoing = try OutgoingRevision(revision)
                    sent = outgoing
                    let history = try revision.history.reversed().map(\.revisionID)
                    json = try Self.alone(outgoing, history, known: difference.possibleAncestors)
                    if json == nil { try await send(outgoing, history, known: difference.possibleAncestors) }
                } catch let error as SyncError {
                    let mayPass = error.mayPass || error.status == 401 || Self.isForWantOfContents(error, sent)
                    try note(error, id, missing, mayPass: mayPass)
                } catch let error as CofferError where Self.isAboutDocument(error) {
                    monitor.fail(
                        DocumentFailure(documentID: id, revisionID: missing, error: error, isTriedAgain: false))
                }
                guard let json else { continue }
                if !batch.entries.isEmpty, batch.byteCount + json.count > options.batchByteCount {
                    try await flush(&batch)
                }
                batch.add(Batch.Entry(id: id, revision: missing, json: json))
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
        struct Entry {
            var id: String
            var revision: RevisionID
            var json: [UInt8]
        }

        var entries: [Entry] = []
        var byteCount = 0

        mutating func add(_ entry: Entry) {
            entries.append(entry)
            byteCount += entry.json.count
        }
    }

    /// Sends what was gathered.
    private mutating func flush(_ batch: inout Batch) async throws {
        let entries = batch.entries
        batch = Batch()
        if !entries.isEmpty { try await save(entries[...]) }
    }

    /// Sends revisions together; in halves, where all together are refused.
    private mutating func save(_ entries: ArraySlice<Batch.Entry>) async throws {
        do {
            for failure in try await remote.save(entries.map(\.json)) {
                let revision = failure.revision ?? entries.first { $0.id == failure.id }?.revision
                try note(failure.error, failure.id, revision, mayPass: failure.error.mayPass)
            }
            refusals.end()
        } catch let error as SyncError where !error.isAboutServer {
            guard let entry = entries.first, entries.count == 1 else {
                let middle = entries.startIndex + entries.count / 2
                try await save(entries[..<middle])
                try await save(entries[middle...])
                return
            }
            try refusals.add(error)
            // These are about what was sent. Others may be said by what stands between, or by who doesn't know better.
            let isFinal = [400, 409, 412, 413, 415].contains(error.status)
            try note(error, entry.id, entry.revision, mayPass: !isFinal)
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

    /// Whether an error of the database is about one document: the others can be sent.
    private static func isAboutDocument(_ error: CofferError) -> Bool {
        [.damaged, .revisionNotFound, .attachmentNotFound].contains(error.code)
    }

    /// Notes that a document was refused.
    ///
    /// - Parameter mayPass: whether it is tried again.
    /// - Throws: the error, where it is about more than this document.
    private mutating func note(_ error: SyncError, _ id: String, _ revision: RevisionID?, mayPass: Bool) throws {
        if error.isAboutServer { throw error }
        let isTriedAgain = mayPass && revision != nil
        if isTriedAgain, let revision { checkpoints.postpone(id, revision, error) }
        monitor.fail(DocumentFailure(documentID: id, revisionID: revision, error: error, isTriedAgain: isTriedAgain))
    }
}
