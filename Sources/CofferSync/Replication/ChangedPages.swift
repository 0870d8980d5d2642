internal import CofferModel
internal import Coffer
internal import CofferSealing

/// Reads what was changed here from a position to the end, as far as it is to be sent.
actor ChangedPages {
    private let database: Database
    private let monitor: ReplicationMonitor
    private let feed: FeedOptions
    private let ids: Set<ByteKey>?
    private var position: Int
    private var isOver = false

    init(_ database: Database, _ options: ReplicationOptions, _ monitor: ReplicationMonitor, from start: Int) {
        self.database = database
        self.monitor = monitor
        position = start
        var feed = FeedOptions()
        feed.includesAllLeaves = true
        feed.filter = options.filter
        feed.filterParameters = options.filterParameters
        feed.limit = options.batchDocumentCount
        self.feed = feed
        ids = options.documentIDs.map { Set($0.map(ByteKey.init)) }
    }

    /// The next page; nil after an empty one.
    func next() throws -> OutgoingPage? {
        guard !isOver else { return nil }
        try Task.checkCancellation()
        var reader = try FeedReader(database, since: position, feed, passesOverFailedFilters: true)
        var changed: [ChangedDocument] = []
        do throws(CofferError) {
            while case let more = try reader.nextBatch(), !more.isEmpty { changed += more }
        } catch {
            // What was read before goes first; the error is there the next time, too.
            if changed.isEmpty { throw error }
        }
        for (id, error) in reader.failedFilters {
            monitor.fail(DocumentFailure(documentID: id, revisionID: nil, error: error, isTriedAgain: false))
        }
        isOver = changed.isEmpty
        position = max(position, reader.position)
        let documents = changed.filter { document in
            ids.map { $0.contains(ByteKey(document.documentID)) } ?? true
        }
        monitor.change { $0.totalCount += documents.count }
        return OutgoingPage(documents: documents.map { ($0.documentID, $0.leafRevisionIDs) }, position: position)
    }
}
