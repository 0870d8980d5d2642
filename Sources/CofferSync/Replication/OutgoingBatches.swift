internal import CofferModel
internal import Coffer
internal import CofferSealing

/// What is sent next.
enum OutgoingBatch: Sendable {
    /// Revisions that one request takes.
    case together([OutgoingDocument])
    /// A revision with contents that follow it.
    case alone(OutgoingRevision, history: [RevisionID], known: [RevisionID])
    /// A revision that can't be read.
    case failure(DocumentFailure)
    /// All of these documents, up to this position; nil if they are not part of the feed.
    case reached(position: Int?, ids: [String])
}

/// A revision as JSON that says all of it.
struct OutgoingDocument: Sendable {
    var id: String
    var revision: RevisionID
    var json: [UInt8]
}

/// Documents to send, with the revisions that may be missing.
struct OutgoingPage: Sendable {
    var documents: [(id: String, revisions: [RevisionID])]
    /// Where they end; nil if they are not part of the feed.
    var position: Int?
}

/// Finds out what a server doesn't have of pages, and reads it, a batch at a time. For one task at a time.
actor OutgoingBatches {
    private let database: Database
    private let options: ReplicationOptions
    private let pages: ReadAhead<AskedPage>

    /// What the server misses of a page, as far as it was not read yet.
    private var missing: ArraySlice<Missing> = []
    /// What of that was read and is not in a batch yet. A revision whose text alone doesn't say all of it has none.
    private var read: ArraySlice<(Missing, text: [UInt8]?)> = []
    private var reached: OutgoingBatch?
    private var gathered: [OutgoingDocument] = []
    private var gatheredByteCount = 0
    /// What is sent before anything else is read, the first one first.
    private var ready: [OutgoingBatch] = []

    /// A page that the server was asked about.
    private struct AskedPage: Sendable {
        var page: OutgoingPage
        var missing: [Missing]
    }

    private struct Missing: Sendable {
        var id: String
        var revision: RevisionID
        /// The document's revisions that the server has.
        var known: [RevisionID]
    }

    init(
        _ database: Database, _ remote: RemoteDatabase, _ options: ReplicationOptions,
        _ pages: @escaping @Sendable () async throws -> OutgoingPage?
    ) {
        self.database = database
        self.options = options
        self.pages = ReadAhead(upTo: { Self.pageCountAhead }) {
            guard let page = try await pages() else { return nil }
            return { AskedPage(page: page, missing: try await Self.missing(of: page, on: remote)) }
        }
    }

    /// The server is asked about so many pages at a time.
    private static let pageCountAhead = 4

    /// Waits until nothing is being asked.
    func end() async { await pages.end() }

    /// The next batch; nil after the last page.
    func next() async throws -> OutgoingBatch? {
        while ready.isEmpty {
            try Task.checkCancellation()
            if let (next, text) = read.popFirst() {
                if let text { gather(text, next) } else { try noting(next) { try readWithContents(next) } }
            } else if let first = missing.first {
                // An error is about the first one.
                if try !noting(first, readTogether) { missing.removeFirst() }
            } else if !gathered.isEmpty {
                handOut()
            } else if let reached = reached.take() {
                ready.append(reached)
            } else {
                guard let next = try await pages.next() else { return nil }
                missing = next.missing[...]
                reached = .reached(position: next.page.position, ids: next.page.documents.map(\.id))
            }
        }
        return ready.removeFirst()
    }

    private static func missing(of page: OutgoingPage, on remote: RemoteDatabase) async throws -> [Missing] {
        guard !page.documents.isEmpty else { return [] }
        var question = RevisionsQuestion()
        question.documents = page.documents
        return try await remote.difference(question).flatMap { id, difference in
            difference.missing.map { Missing(id: id, revision: $0, known: difference.possibleAncestors) }
        }
    }

    /// Reads the first of those that are missing, as many as one batch of the database has.
    private func readTogether() throws {
        let wanted = missing.lazy.map { (id: $0.id, revision: $0.revision) }
        let found = try database.lendRevisions(wanted) { OutgoingRevision.text(of: $0, withHistory: true) }
        // What was purged or compacted away meanwhile is nobody's any more.
        read = zip(missing, found).compactMap { next, found in found.map { (next, $0) } }[...]
        missing = missing.dropFirst(found.count)
    }

    private func readWithContents(_ next: Missing) throws {
        guard let revision = try database.document(withID: next.id).revision(withID: next.revision),
            try revision.propertiesAvailable
        else { return }
        let history = try revision.history.reversed().map(\.revisionID)
        let outgoing = try OutgoingRevision(revision)
        guard let json = try Self.json(outgoing, history, known: next.known) else {
            ready.append(.alone(outgoing, history: history, known: next.known))
            return
        }
        gather(json, next)
    }

    /// Notes it where a revision can't be read.
    ///
    /// - Returns: whether `body` could be done.
    @discardableResult
    private func noting(_ next: Missing, _ body: () throws -> Void) throws -> Bool {
        do {
            try body()
            return true
        } catch let error as CofferError where error.isAboutOneDocument {
            ready.append(
                .failure(
                    DocumentFailure(
                        documentID: next.id, revisionID: next.revision, error: error, isTriedAgain: false)))
            return false
        }
    }

    private func gather(_ json: [UInt8], _ next: Missing) {
        if gatheredByteCount + json.count > options.batchByteCount { handOut() }
        gathered.append(OutgoingDocument(id: next.id, revision: next.revision, json: json))
        gatheredByteCount += json.count
    }

    private func handOut() {
        guard !gathered.isEmpty else { return }
        ready.append(.together(gathered))
        gathered = []
        gatheredByteCount = 0
    }

    /// Contents up to that many bytes in all stand in the JSON: a request for each of many small ones would cost more.
    private static let inlineByteLimit = 16 << 10

    /// The revision as JSON that says all of it; nil if contents have to follow, or stay where the server has them.
    private static func json(
        _ revision: OutgoingRevision, _ history: [RevisionID], known: [RevisionID]
    ) throws -> [UInt8]? {
        let since = DatabaseService.commonGeneration(known, history)
        var contents: [ByteKey: [UInt8]] = [:]
        if !revision.contents.isEmpty {
            guard revision.contents.reduce(0, { $0.addingSaturated($1.length) }) <= inlineByteLimit,
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
}

extension CofferError {
    /// Whether an error of the database is about one document: the others can be sent.
    var isAboutOneDocument: Bool {
        [.damaged, .revisionNotFound, .attachmentNotFound, .documentNotFound, .invalidDocumentID].contains(code)
    }
}

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
