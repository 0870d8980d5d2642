internal import CofferModel
internal import CofferSealing
internal import Synchronization
internal import Coffer

/// What became of a batch of revisions that were asked for, and what stands between batches, in the order of the feed.
enum AskedRevisions: Sendable {
    case answered(ArraySlice<RevisionRequest>, [RevisionAnswer])
    /// All together are refused, by an error that may be about one of them.
    case refused(ArraySlice<RevisionRequest>, SyncError)
    /// They are more than may come before it is their turn.
    case tooMuch(ArraySlice<RevisionRequest>)
    /// Those that can't be asked for.
    case failed([DocumentFailure])
    /// All of a page was asked for, which ends there and has changes of these documents.
    case reached(position: FeedPosition, ids: [String])
}

/// Asks for the revisions that pages want, several batches at a time.
///
/// Those that are on their way have together about as many bytes as one batch may have. So the smaller documents are, and the
/// further away the server is, the more requests there are at a time, and memory holds no more than before.
actor BulkRevisions {
    private let remote: RemoteDatabase
    private let options: ReplicationOptions
    private let window: RequestWindow
    /// The average of what came so far, to ask for about as much as a batch may have; nil before anything has come.
    private var averageByteCount: Int?
    private var knowsBulkGet = true
    private nonisolated let countUnderWay = Atomic(1)

    private var pages: ReadAhead<WantedPage>?
    private var batches: ReadAhead<AskedRevisions>?
    /// What of a page has not been asked for yet.
    private var rest: ArraySlice<RevisionRequest> = []
    private var reached: AskedRevisions?

    init(_ remote: RemoteDatabase, _ options: ReplicationOptions) {
        self.remote = remote
        self.options = options
        window = RequestWindow(patience: options.idleTimeout)
    }

    /// Begins with other pages; what is left of those before is forgotten.
    func begin(_ pages: @escaping @Sendable () async throws -> ReadAhead<WantedPage>.Rest?) {
        self.pages = ReadAhead(upTo: { Self.pageCountAhead }, beginning: pages)
        rest = []
        reached = nil
        batches = ReadAhead(
            upTo: { [self] in countUnderWay.load(ordering: .relaxed) }, beginning: { [self] in try await ask() })
    }

    /// So many pages are read ahead. Where each begins is known only when the one before it is here.
    private static let pageCountAhead = 3

    /// What comes next; nil after the last page.
    func next() async throws -> AskedRevisions? { try await batches?.next() }

    /// Waits until nothing is being read ahead.
    func end() async {
        await batches?.end()
        await pages?.end()
    }

    private func ask() async throws -> ReadAhead<AskedRevisions>.Rest? {
        while true {
            if !rest.isEmpty {
                let batch = rest.prefix(batchCount)
                rest = rest.dropFirst(batch.count)
                let isAhead = countUnderWay.load(ordering: .relaxed) > 1
                return { [self] in try await answers(to: batch, isAhead: isAhead) }
            }
            if let reached = reached.take() { return { reached } }
            guard let page = try await pages?.next() else { return nil }
            rest = page.wanted[...]
            reached = .reached(position: page.last, ids: page.ids)
            if !page.failures.isEmpty { return { .failed(page.failures) } }
        }
    }

    /// Before anything has come.
    private static let likelyByteCount = 10_000

    private var batchCount: Int {
        min(max(1, options.batchByteCount / (averageByteCount ?? Self.likelyByteCount)), options.batchDocumentCount)
    }

    private func noteAverage(_ byteCount: Int) {
        averageByteCount = max(1, byteCount)
        let fitting = options.batchByteCount / (max(1, byteCount) * batchCount)
        countUnderWay.store(max(1, min(fitting, window.count)), ordering: .relaxed)
    }

    /// Asks for revisions.
    ///
    /// - Parameter isAhead: whether others are on their way at the same time, and more bytes than one batch may have are too much.
    func answers(to requests: ArraySlice<RevisionRequest>, isAhead: Bool) async throws -> AskedRevisions {
        do {
            return .answered(requests, try await answers(to: Array(requests), isAhead: isAhead))
        } catch let error as SyncError where !error.isAboutServer && Self.mayBeAboutOne(error) {
            if error.status == 413, requests.count > 1 {
                // From here on fewer are asked for at once.
                noteAverage(max(averageByteCount ?? 0, options.batchByteCount / (requests.count / 2)))
            }
            return .refused(requests, error)
        } catch is RemoteDatabase.TooLong {
            noteAverage(max(averageByteCount ?? 0, options.batchByteCount / requests.count))
            return .tooMuch(requests)
        }
    }

    private static func mayBeAboutOne(_ error: SyncError) -> Bool {
        error.status == 413 || (error.status >= 500 && error.status != 503 && error.status != 504)
    }

    private func answers(to requests: [RevisionRequest], isAhead: Bool) async throws -> [RevisionAnswer] {
        if knowsBulkGet {
            do {
                let limit = isAhead ? options.batchByteCount : RemoteDatabase.answerByteLimit
                let (answers, byteCount) = try await window.measure {
                    try await remote.revisions(requests, upTo: limit)
                }
                let average = byteCount / max(1, requests.count)
                noteAverage(averageByteCount.map { ($0 + average) / 2 } ?? average)
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

/// A page of a server's changes, as far as it is not here.
struct WantedPage: Sendable {
    var wanted: [RevisionRequest] = []
    var failures: [DocumentFailure] = []
    /// The documents of its changes.
    var ids: [String] = []
    /// Where its changes end.
    var last: FeedPosition
}

/// Reads a server's changes from a position to the end, and finds out what is not here.
actor WantedPages {
    private let database: Database
    private let remote: RemoteDatabase
    private let monitor: ReplicationMonitor
    private var query: ChangesQuery
    private var position: FeedPosition
    private var isOver = false

    /// - Parameter waits: whether it waits for a change first.
    init(
        _ database: Database, _ remote: RemoteDatabase, _ options: ReplicationOptions, _ monitor: ReplicationMonitor,
        from start: FeedPosition, waits: Bool
    ) {
        self.database = database
        self.remote = remote
        self.monitor = monitor
        position = start
        var query = ChangesQuery(limit: Self.rowCount)
        query.filter = options.channels == nil ? options.filter : "sync_gateway/bychannel"
        query.parameters = options.filterParameters
        query.parameters["channels"] =
            options.channels.map { .string($0.joined(separator: ",")) } ?? query.parameters["channels"]
        query.documentIDs = options.documentIDs
        query.waits = waits
        query.heartbeat = min(options.idleTimeout / 3, .seconds(30))
        self.query = query
    }

    static let rowCount = 1000

    /// Reads the next page; nil after one that was not full. The rest is to find out what of it is not here.
    func next() async throws -> ReadAhead<WantedPage>.Rest? {
        guard !isOver else { return nil }
        try Task.checkCancellation()
        let page = try await remote.changes(since: position, query)
        query.waits = false
        position = page.last
        isOver = page.rows.count < Self.rowCount
        monitor.change { status in
            if !page.rows.isEmpty { status.activity = .active }
            status.totalCount += page.rows.count
        }
        return { [database] in try Self.wanted(of: page, in: database) }
    }

    private static func wanted(of page: ChangesPage, in database: Database) throws -> WantedPage {
        var next = WantedPage(ids: page.rows.map(\.id), last: page.last)
        let asked = page.rows.filter { !$0.revisions.isEmpty }.map { (id: $0.id, revisions: $0.revisions) }
        var found = try database.missingRevisions(of: asked)[...]
        for row in page.rows {
            if row.hasForeignRevisions {
                next.failures.append(
                    DocumentFailure(fetching: row.id, nil, SyncError.foreignRevision("document \(row.id)")))
            }
            guard !row.revisions.isEmpty else { continue }
            switch found.removeFirst() {
            case .success(let missing):
                next.wanted += missing.requests(ofDocumentWithID: row.id)
            case .failure(let error):
                // An id that no document has here.
                next.failures.append(DocumentFailure(fetching: row.id, row.revisions.first, error))
            }
        }
        return next
    }
}

extension DocumentFailure {
    /// A revision that does not come from a server. It is asked for again where that may help.
    init(fetching id: String, _ revision: RevisionID?, _ error: any Error) {
        let mayPass = (error as? SyncError).map { $0.mayPass || $0.status == 401 } ?? false
        self.init(documentID: id, revisionID: revision, error: error, isTriedAgain: mayPass && revision != nil)
    }
}

extension MissingRevisions {
    /// What they are asked for with.
    func requests(ofDocumentWithID id: String) -> [RevisionRequest] {
        revisions.map { RevisionRequest(id: id, revision: $0) }
    }
}
