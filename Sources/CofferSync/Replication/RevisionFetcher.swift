internal import CofferModel
internal import Coffer

/// What a pull does next, in the order of the feed.
enum FetchedRevisions: Sendable {
    /// Those that are ready to be saved, and those that don't come.
    case revisions([PreparedRevision], [DocumentFailure])
    /// All of a page has been given, which ends there and has changes of these documents.
    case reached(position: FeedPosition, ids: [String])
}

/// Fetches the revisions that pages want, and their contents, a batch at a time. For one task at a time.
actor RevisionFetcher {
    private let remote: RemoteDatabase
    private let options: ReplicationOptions
    private var collector: ContentCollector
    private var refusals = RefusalStreak()
    /// The average of what came so far, to ask for about as much as a batch may have.
    private var averageByteCount = 10_000
    private var knowsBulkGet = true

    private var pages: ReadAhead<WantedPage>?
    /// What of a page has not been asked for yet.
    private var rest: ArraySlice<RevisionRequest> = []
    /// Parts of a batch that was refused as a whole, the first one last.
    private var halves: [ArraySlice<RevisionRequest>] = []
    private var reached: FetchedRevisions?
    /// What has come of a batch, without contents.
    private var incoming: ArraySlice<IncomingRevision> = []

    init(_ database: Database, _ remote: RemoteDatabase, _ options: ReplicationOptions) {
        self.remote = remote
        self.options = options
        collector = ContentCollector(database, remote, options)
    }

    /// Begins with other pages; what is left of those before is forgotten.
    func begin(_ pages: @escaping @Sendable () async throws -> WantedPage?) {
        self.pages = ReadAhead(pages)
        rest = []
        halves = []
        incoming = []
        reached = nil
    }

    /// Waits until nothing is being read ahead.
    func end() async { await pages?.end() }

    /// What comes next; nil after the last page.
    func next() async throws -> FetchedRevisions? {
        while true {
            try Task.checkCancellation()
            if !incoming.isEmpty { return try await collectNext() }
            if let batch = halves.popLast() ?? nextBatch() {
                let failures = try await fetch(batch)
                if !failures.isEmpty { return .revisions([], failures) }
            } else if let reached = reached.take() {
                return reached
            } else {
                guard let page = try await pages?.next() else { return nil }
                rest = page.wanted[...]
                reached = .reached(position: page.last, ids: page.ids)
                if !page.failures.isEmpty { return .revisions([], page.failures) }
            }
        }
    }

    /// So many bytes of contents, or those of one revision, are fetched before the revisions are saved, as far as the server
    /// says how long they are.
    private static let contentByteLimit = 16 << 20

    /// Fetches the contents of the next revisions that have come.
    private func collectNext() async throws -> FetchedRevisions {
        var byteCount = 0
        let fitting = incoming.prefix { revision in
            byteCount = revision.contents.reduce(byteCount) { $0.addingSaturated($1.length ?? 0) }
            return byteCount <= Self.contentByteLimit
        }
        let part = fitting.isEmpty ? incoming.prefix(1) : fitting
        incoming = incoming.dropFirst(part.count)
        var collector = collector
        let (prepared, failures) = try await collector.collect(Array(part))
        self.collector = collector
        return .revisions(prepared, failures)
    }

    private func nextBatch() -> ArraySlice<RevisionRequest>? {
        guard !rest.isEmpty else { return nil }
        let count = min(max(1, options.batchByteCount / averageByteCount), options.batchDocumentCount)
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// Asks for revisions. What comes is in `incoming`; what is refused as a whole, in `halves`.
    ///
    /// - Returns: what does not come.
    private func fetch(_ requests: ArraySlice<RevisionRequest>) async throws -> [DocumentFailure] {
        let answers: [RevisionAnswer]
        do {
            answers = try await answersInBulk(Array(requests))
            refusals.end()
        } catch let error as SyncError where !error.isAboutServer && Self.mayBeAboutOne(error) {
            // Together they are too large, or one of them is what can't be read.
            guard let request = requests.first, requests.count == 1 else {
                let middle = requests.startIndex + requests.count / 2
                if error.status == 413 {
                    // From here on fewer are asked for at once.
                    averageByteCount = max(averageByteCount, options.batchByteCount / (requests.count / 2))
                }
                halves += [requests[middle...], requests[..<middle]]
                return []
            }
            try refusals.add(error)
            return [DocumentFailure(fetching: request.id, request.revision, error)]
        }
        let (incoming, failures) = Self.match(answers, requests)
        self.incoming = incoming[...]
        return failures
    }

    /// What the answers are to what was asked, which each of them has to be.
    private static func match(
        _ answers: [RevisionAnswer], _ requests: ArraySlice<RevisionRequest>
    ) -> (incoming: [IncomingRevision], failures: [DocumentFailure]) {
        let asked = Dictionary(grouping: requests) { ByteKey($0.id) }
        var unanswered = asked
        var incoming: [IncomingRevision] = []
        var failures: [DocumentFailure] = []
        for answer in answers {
            let id = ByteKey(answer.id)
            unanswered[id]?.removeAll(where: answer.settles)
            switch answer {
            case .failure(let id, let revision, let error):
                // It is of a later one that was not asked for: that is what became of the others.
                if error.status == 400, asked[ByteKey(id)]?.contains(where: answer.settles) == false {
                    unanswered[ByteKey(id)] = nil
                }
                failures.append(DocumentFailure(fetching: id, revision.flatMap(RevisionID.init), error))
            case .revision(let json):
                // Sync Gateway's way to say that the document left the channels that one may read.
                guard let request = asked[id]?.first, json["_removed"] != true else { continue }
                do {
                    incoming.append(try IncomingRevision(json))
                } catch {
                    failures.append(DocumentFailure(fetching: request.id, request.revision, error))
                }
            }
        }
        for request in requests where unanswered[ByteKey(request.id)]?.contains(request) == true {
            let error = SyncError.garbage(
                "the server does not say what became of it", of: "document \(request.id)")
            failures.append(DocumentFailure(fetching: request.id, request.revision, error))
        }
        return (incoming, failures)
    }

    private static func mayBeAboutOne(_ error: SyncError) -> Bool {
        error.status == 413 || (error.status >= 500 && error.status != 503 && error.status != 504)
    }

    private func answersInBulk(_ requests: [RevisionRequest]) async throws -> [RevisionAnswer] {
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
}
