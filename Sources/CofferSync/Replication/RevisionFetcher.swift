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
    private let bulk: BulkRevisions
    private var collector: ContentCollector
    private var refusals = RefusalStreak()

    /// Parts of a batch that was refused as a whole, the first one last.
    private var halves: [ArraySlice<RevisionRequest>] = []
    /// What has come of a batch, without contents.
    private var incoming: ArraySlice<IncomingRevision> = []

    init(_ database: Database, _ remote: RemoteDatabase, _ options: ReplicationOptions) {
        bulk = BulkRevisions(remote, options)
        collector = ContentCollector(database, remote, options)
    }

    /// Begins with other pages; what is left of those before is forgotten.
    func begin(_ pages: @escaping @Sendable () async throws -> ReadAhead<WantedPage>.Rest?) async {
        halves = []
        incoming = []
        await bulk.begin(pages)
    }

    /// Waits until nothing is being read ahead.
    func end() async { await bulk.end() }

    /// What comes next; nil after the last page.
    func next() async throws -> FetchedRevisions? {
        while true {
            try Task.checkCancellation()
            if !incoming.isEmpty { return try await collectNext() }
            let failures: [DocumentFailure]
            if let half = halves.popLast() {
                failures = try take(try await bulk.answers(to: half, isAhead: false))
            } else {
                guard let next = try await bulk.next() else { return nil }
                if case .reached(let position, let ids) = next { return .reached(position: position, ids: ids) }
                failures = try take(next)
            }
            if !failures.isEmpty { return .revisions([], failures) }
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

    /// Takes what became of a batch. What has come is in `incoming`; what is asked for again, in `halves`.
    ///
    /// - Returns: what does not come.
    private func take(_ asked: AskedRevisions) throws -> [DocumentFailure] {
        switch asked {
        case .answered(let requests, let answers):
            refusals.end()
            let (incoming, failures) = Self.match(answers, requests)
            self.incoming = incoming[...]
            return failures
        case .refused(let requests, let error):
            // Together they are too large, or one of them is what can't be read.
            guard let request = requests.first, requests.count == 1 else {
                let middle = requests.startIndex + requests.count / 2
                halves += [requests[middle...], requests[..<middle]]
                return []
            }
            try refusals.add(error)
            return [DocumentFailure(fetching: request.id, request.revision, error)]
        case .tooMuch(let requests):
            halves.append(requests)
            return []
        case .failed(let failures): return failures
        case .reached: return []
        }
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
}
