internal import CofferModel
internal import Coffer

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
        for row in page.rows {
            if row.hasForeignRevisions {
                next.failures.append(
                    DocumentFailure(fetching: row.id, nil, SyncError.foreignRevision("document \(row.id)")))
            }
            do throws(CofferError) {
                next.wanted += try database.revisionsToAskFor(row.revisions, of: row.id)
            } catch {
                // An id that no document has here.
                guard error.status == 400 else { throw error }
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

extension Database {
    /// Those of a document's revisions that are not here.
    func revisionsToAskFor(_ revisions: [RevisionID], of id: String) throws(CofferError) -> [RevisionRequest] {
        guard !revisions.isEmpty else { return [] }
        return try missingRevisions(of: revisions, ofDocumentWithID: id).map { RevisionRequest(id: id, revision: $0) }
    }
}
