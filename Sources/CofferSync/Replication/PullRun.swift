internal import CofferModel
internal import Coffer

/// Fetches what is not here, from a checkpoint to the end. For one task.
struct PullRun {
    let database: Database
    let remote: RemoteDatabase
    let options: ReplicationOptions
    let monitor: ReplicationMonitor
    private(set) var checkpoints: Checkpoints
    private var refusals = RefusalStreak()
    /// The average of what came so far, to ask for about as much as a batch may have.
    private var averageByteCount = 1000
    private var knowsBulkGet = true
    private var collector: ContentCollector

    init(
        _ database: Database, _ remote: RemoteDatabase, _ options: ReplicationOptions, _ monitor: ReplicationMonitor,
        _ checkpoints: Checkpoints
    ) {
        self.database = database
        self.remote = remote
        self.options = options
        self.monitor = monitor
        self.checkpoints = checkpoints
        collector = ContentCollector(database, remote, options)
    }

    private static let pageRowCount = 500

    /// - Parameters:
    ///   - start: where to begin.
    ///   - waits: whether it waits for a change first.
    /// - Returns: where it has come to.
    mutating func run(from start: FeedPosition, waits: Bool) async throws -> FeedPosition {
        var query = ChangesQuery(limit: Self.pageRowCount)
        query.filter = options.channels == nil ? options.filter : "sync_gateway/bychannel"
        query.parameters = options.filterParameters
        query.parameters["channels"] =
            options.channels.map { .string($0.joined(separator: ",")) } ?? query.parameters["channels"]
        query.documentIDs = options.documentIDs
        query.waits = waits
        query.heartbeat = min(options.idleTimeout / 3, .seconds(30))
        var position = start
        while true {
            try Task.checkCancellation()
            let page = try await remote.changes(since: position, query)
            query.waits = false
            if !page.rows.isEmpty { monitor.change { $0.activity = .active } }
            try await take(page)
            position = page.last
            try await checkpoints.record(position)
            if page.rows.count < Self.pageRowCount { return position }
        }
    }

    /// Tries again what did not come across: all of it, or what is worth it before the next run.
    mutating func retry(all: Bool) async throws {
        guard let position = checkpoints.position else { return }
        let due = checkpoints.takePostponed(all: all)
        guard !due.isEmpty else { return }
        var wanted: [RevisionRequest] = []
        for entry in due { wanted += try missing(entry.revisions, of: entry.id) }
        try await fetchAll(wanted)
        try await checkpoints.record(position)
    }

    private mutating func take(_ page: ChangesPage) async throws {
        monitor.change { $0.totalCount += page.rows.count }
        var wanted: [RevisionRequest] = []
        for row in page.rows {
            if row.hasForeignRevisions {
                note(SyncError(400, of: "document \(row.id)", "a revision id that none can have here"), row.id, nil)
            }
            do throws(CofferError) {
                wanted += try missing(row.revisions, of: row.id)
            } catch {
                // An id that no document has here.
                guard error.status == 400 else { throw error }
                note(error, row.id, row.revisions.first)
            }
        }
        try await fetchAll(wanted)
        monitor.change { $0.completedCount += page.rows.count }
    }

    private func missing(_ revisions: [RevisionID], of id: String) throws(CofferError) -> [RevisionRequest] {
        guard !revisions.isEmpty else { return [] }
        return try database.missingRevisions(of: revisions, ofDocumentWithID: id).map {
            RevisionRequest(id: id, revision: $0)
        }
    }

    // MARK: Fetching

    private mutating func fetchAll(_ requests: [RevisionRequest]) async throws {
        var rest = requests[...]
        while !rest.isEmpty {
            try Task.checkCancellation()
            let count = min(max(1, options.batchByteCount / averageByteCount), options.batchDocumentCount)
            let batch = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
            try await fetch(batch)
        }
    }

    private mutating func fetch(_ requests: [RevisionRequest]) async throws {
        let answers: [RevisionAnswer]
        do {
            answers = try await answersInBulk(requests)
            refusals.end()
        } catch let error as SyncError where !error.isAboutServer && Self.mayBeAboutOne(error) {
            // Together they are too large, or one of them is what can't be read.
            guard let request = requests.first, requests.count == 1 else {
                if error.status == 413 {
                    // From here on fewer are asked for at once.
                    averageByteCount = max(averageByteCount, options.batchByteCount / (requests.count / 2))
                }
                try await fetch(Array(requests[..<(requests.count / 2)]))
                try await fetch(Array(requests[(requests.count / 2)...]))
                return
            }
            try refusals.add(error)
            note(error, request.id, request.revision)
            return
        }
        let asked = Dictionary(grouping: requests) { ByteKey($0.id) }
        var unanswered = asked
        var incoming: [IncomingRevision] = []
        for answer in answers {
            let id = ByteKey(answer.id)
            unanswered[id]?.removeAll(where: answer.settles)
            switch answer {
            case .failure(let id, let revision, let error):
                note(error, id, revision.flatMap(RevisionID.init))
            case .revision(let json):
                // Sync Gateway's way to say that the document left the channels that one may read.
                guard let request = asked[id]?.first, json["_removed"] != true else { continue }
                do {
                    incoming.append(try IncomingRevision(json))
                } catch {
                    note(error, request.id, request.revision)
                }
            }
        }
        for request in requests where unanswered[ByteKey(request.id)]?.contains(request) == true {
            note(
                SyncError.garbage("the server does not say what became of it", of: "document \(request.id)"),
                request.id, request.revision)
        }
        let (prepared, failures) = try await collector.collect(incoming)
        for (revision, error) in failures { note(error, revision.id, revision.revisionID) }
        try await save(prepared)
    }

    private static func mayBeAboutOne(_ error: SyncError) -> Bool {
        error.status == 413 || (error.status >= 500 && error.status != 503 && error.status != 504)
    }

    private mutating func answersInBulk(_ requests: [RevisionRequest]) async throws -> [RevisionAnswer] {
        if knowsBulkGet {
            do {
                let (answers, byteCount) = try await remote.revisions(requests)
                averageByteCount = max(1, (averageByteCount + byteCount / max(1, requests.count)) / 2)
                return answers
            } catch let error as SyncError where [400, 404, 405, 501].contains(error.status) {
                // CouchDB before 2.0 doesn't know how.
                knowsBulkGet = false
            }
        }
        var answers: [RevisionAnswer] = []
        for request in requests {
            do {
                answers.append(.revision(try await remote.revision(request)))
            } catch let error as SyncError where !error.isAboutServer {
                answers.append(.failure(id: request.id, revision: request.revision?.description, error))
            }
        }
        return answers
    }

    // MARK: Saving

    private mutating func save(_ prepared: [PreparedRevision]) async throws {
        guard !prepared.isEmpty else { return }
        let database = database
        let failures = try await database.inTransaction { () throws -> [DocumentFailure] in
            var failures: [DocumentFailure] = []
            for one in prepared {
                do {
                    try database.inTransaction { _ = try one.revision.save(in: database, contents: one.contents) }
                } catch let error as CofferError where error.status >= 500 {
                    throw error
                } catch {
                    failures.append(
                        DocumentFailure(
                            documentID: one.revision.id, revisionID: one.revision.revisionID, error: error,
                            isTriedAgain: false))
                }
            }
            return failures
        }
        for failure in failures { monitor.fail(failure) }
    }

    private mutating func note(_ error: any Error, _ id: String, _ revision: RevisionID?) {
        var isTriedAgain = false
        if let error = error as? SyncError, error.mayPass || error.status == 401, let revision {
            isTriedAgain = true
            checkpoints.postpone(id, revision, error)
        }
        monitor.fail(DocumentFailure(documentID: id, revisionID: revision, error: error, isTriedAgain: isTriedAgain))
    }
}
