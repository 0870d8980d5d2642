internal import CofferModel
internal import Coffer

/// What one request for revisions brought, ready to be saved.
struct FetchedRevisions: Sendable {
    var prepared: [PreparedRevision] = []
    var failures: [FailedRevision] = []
    /// Where the page ends that these are the last of, and how many changes it has.
    var reached: (position: FeedPosition, rowCount: Int)?
}

/// Fetches the revisions that pages want, and their contents, a batch at a time. For one task at a time.
actor RevisionFetcher {
    private let remote: RemoteDatabase
    private let options: ReplicationOptions
    private var collector: ContentCollector
    private var refusals = RefusalStreak()
    /// The average of what came so far, to ask for about as much as a batch may have.
    private var averageByteCount = 1000
    private var knowsBulkGet = true

    private var pages: ReadAhead<WantedPage>?
    /// What of a page has not been asked for yet.
    private var rest: ArraySlice<RevisionRequest> = []
    /// Parts of a batch that was refused as a whole, the first one last.
    private var halves: [ArraySlice<RevisionRequest>] = []
    private var reached: (position: FeedPosition, rowCount: Int)?

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
        reached = nil
    }

    /// Waits until nothing is being read ahead.
    func end() async { await pages?.end() }

    /// The next batch; nil after the last of the last page.
    func next() async throws -> FetchedRevisions? {
        while true {
            try Task.checkCancellation()
            if let batch = halves.popLast() ?? nextBatch() {
                // A batch that is asked for again, in halves, brings nothing by itself.
                guard var fetched = try await fetch(batch) else { continue }
                if halves.isEmpty && rest.isEmpty { fetched.reached = reached.take() }
                return fetched
            }
            if let reached = reached.take() { return FetchedRevisions(reached: reached) }
            guard let page = try await pages?.next() else { return nil }
            rest = page.wanted[...]
            reached = (page.last, page.rowCount)
            if !page.failures.isEmpty { return FetchedRevisions(failures: page.failures) }
        }
    }

    private func nextBatch() -> ArraySlice<RevisionRequest>? {
        guard !rest.isEmpty else { return nil }
        let count = min(max(1, options.batchByteCount / averageByteCount), options.batchDocumentCount)
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// - Returns: nil where the server refused all together; then `halves` has them.
    private func fetch(_ requests: ArraySlice<RevisionRequest>) async throws -> FetchedRevisions? {
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
                return nil
            }
            try refusals.add(error)
            return FetchedRevisions(failures: [
                FailedRevision(id: request.id, revision: request.revision, error: error)
            ])
        }
        let (incoming, unanswered) = Self.match(answers, requests)
        var collector = collector
        let (prepared, withoutContents) = try await collector.collect(incoming)
        self.collector = collector
        let failures =
            unanswered
            + withoutContents.map {
                FailedRevision(id: $0.revision.id, revision: $0.revision.revisionID, error: $0.error)
            }
        return FetchedRevisions(prepared: prepared, failures: failures)
    }

    /// What the answers are to what was asked, which each of them has to be.
    private static func match(
        _ answers: [RevisionAnswer], _ requests: ArraySlice<RevisionRequest>
    ) -> (incoming: [IncomingRevision], failures: [FailedRevision]) {
        let asked = Dictionary(grouping: requests) { ByteKey($0.id) }
        var unanswered = asked
        var incoming: [IncomingRevision] = []
        var failures: [FailedRevision] = []
        for answer in answers {
            let id = ByteKey(answer.id)
            unanswered[id]?.removeAll(where: answer.settles)
            switch answer {
            case .failure(let id, let revision, let error):
                failures.append(
                    FailedRevision(id: id, revision: revision.flatMap(RevisionID.init), error: error))
            case .revision(let json):
                // Sync Gateway's way to say that the document left the channels that one may read.
                guard let request = asked[id]?.first, json["_removed"] != true else { continue }
                do {
                    incoming.append(try IncomingRevision(json))
                } catch {
                    failures.append(FailedRevision(id: request.id, revision: request.revision, error: error))
                }
            }
        }
        for request in requests where unanswered[ByteKey(request.id)]?.contains(request) == true {
            let error = SyncError.garbage(
                "the server does not say what became of it", of: "document \(request.id)")
            failures.append(FailedRevision(id: request.id, revision: request.revision, error: error))
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
