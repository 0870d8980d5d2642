internal import Coffer
internal import CofferModel

extension DatabaseService {
    /// Answers `_changes`: normal, longpoll and continuous.
    func changes(_ request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "POST")
        var question: JSONObject = [:]
        if request.method == "POST" {
            question = try await request.json(upTo: service.options.documentByteLimit, default: [:]).objectValue ?? [:]
        }
        let isReplicator = request.fields["User-Agent"]?.hasPrefix("CouchDB-Replicator/") == true
        let feed = try ChangesFeed(database, target, question, leavesOutAbsentContents: isReplicator)
        // A feed goes on for as long as its client likes, and keeps nothing of the body but the ids.
        question = [:]
        request.memory?.shrink(to: feed.byteCount)
        switch target["feed"] ?? "normal" {
        case "normal": return .json(200, stream: ByteStream { [self] in try await feed.nextPiece(of: self) })
        case "longpoll":
            await feed.waitForFirst()
            return .json(200, stream: ByteStream { [self] in try await feed.nextPiece(of: self) })
        case "continuous":
            await feed.goOnForever()
            return .json(200, stream: ByteStream { [self] in try await feed.nextPiece(of: self) })
        default: throw SyncError(400, "a feed that is not known")
        }
    }
}

/// A feed of changes as it is written, row by row.
actor ChangesFeed {
    private enum Mode { case normal, waitsForFirst, endless }

    private let database: Database
    private let documentIDs: Set<ByteKey>?
    /// About what the ids take.
    let byteCount: Int
    private let includesDocuments: Bool
    private let includesAllLeaves: Bool
    /// Whether revisions are left out while their contents are not here. CouchDB's replicator ends its pull of everything, in
    /// every run, where it asks for one and gets a stub, an error, or nothing.
    private let leavesOutAbsentContents: Bool
    private let heartbeat: Duration?
    private let timeout: Duration
    private let options: FeedOptions
    private var remainingCount: Int
    private var mode = Mode.normal
    private var position: Int
    private var hasBegun = false
    private var rowCount = 0
    private var isOver = false
    private var waitedSince = ContinuousClock.now
    private var wroteAt = ContinuousClock.now

    /// How often a feed that waits looks whether the server stops, or a document has come.
    private static let interval: Duration = .milliseconds(100)

    /// - Throws: ``SyncError`` 400.
    init(
        _ database: Database, _ target: RequestTarget, _ question: JSONObject, leavesOutAbsentContents: Bool
    ) throws {
        self.database = database
        self.leavesOutAbsentContents = leavesOutAbsentContents
        switch target["since"] ?? question["since"]?.description {
        case nil, "": position = 0
        case "now": position = try database.lastSequenceNumber
        case .some(let text):
            guard let number = Int(text), number >= 0 else {
                throw SyncError(400, "since is no sequence of this database")
            }
            position = number
        }
        guard !target.isTrue("descending") else { throw SyncError(400, "changes are not listed backwards") }
        var options = FeedOptions()
        includesAllLeaves = target["style"] == "all_docs"
        options.includesAllLeaves = includesAllLeaves
        // As CouchDB has it, 0 is taken for 1.
        remainingCount = try target.count("limit").map { max(1, $0) } ?? .max
        includesDocuments = target.isTrue("include_docs")
        var documentIDs: [JSONValue]?
        switch target["filter"] {
        case nil, "": break
        case "_doc_ids":
            documentIDs =
                try question["doc_ids"]?.arrayValue
                ?? target["doc_ids"].map { try JSONValue(json: Array($0.utf8)).arrayValue ?? [] } ?? []
        case .some(let name):
            guard database.filter(named: name) != nil else { throw SyncError(404, "there is no filter \(name)") }
            options.filter = name
            for (key, value) in target.query where options.filterParameters[key] == nil {
                options.filterParameters[key] = .string(value)
            }
        }
        try RequestLimits.check(documentIDs?.count ?? 0, "ids")
        byteCount = (documentIDs ?? []).reduce(0) {
            $0 + ($1.stringValue?.utf8.count ?? 0) + JSONLimits.valueByteCost
        }
        self.documentIDs = documentIDs.map { Set($0.compactMap(\.stringValue).map(ByteKey.init)) }
        self.options = options
        let milliseconds = target["timeout"].flatMap(Int64.init).map { min(max(0, $0), 3_600_000) } ?? 60_000
        timeout = .milliseconds(milliseconds)
        heartbeat =
            switch target["heartbeat"] {
            case nil, "false": nil
            case "true": .seconds(60)
            // A connection on which nothing moves is closed before long.
            case .some(let text): .milliseconds(min(max(100, Int64(text) ?? 60_000), 60_000))
            }
    }

    func waitForFirst() { mode = .waitsForFirst }
    func goOnForever() { mode = .endless }

    /// The next bytes of the answer; nil after the last ones.
    func nextPiece(of service: DatabaseService) async throws -> [UInt8]? {
        guard !isOver else { return nil }
        if !hasBegun {
            hasBegun = true
            waitedSince = .now
            wroteAt = .now
            // So that a client that waits for the head has it.
            if mode != .endless { return Array("{\"results\":[\n".utf8) }
        }
        while true {
            let rows = try nextRows()
            if !rows.isEmpty {
                wroteAt = .now
                waitedSince = .now
                return rows
            }
            let isWaiting = mode == .endless || (mode == .waitsForFirst && rowCount == 0)
            guard isWaiting, remainingCount > 0, !service.service.isStopping,
                heartbeat != nil || ContinuousClock.now - waitedSince < timeout
            else { return try end() }
            if let heartbeat, ContinuousClock.now - wroteAt >= heartbeat {
                wroteAt = .now
                return [UInt8(ascii: "\n")]
            }
            try await Task.sleep(for: Self.interval)
        }
    }

    /// The rows that are there now, as bytes; empty where there are none.
    private func nextRows() throws -> [UInt8] {
        var bytes: [UInt8] = []
        var batchOptions = options
        batchOptions.limit = min(remainingCount, 256)
        // Few ids out of many documents: those that don't belong here are read in batches, and passed over.
        while bytes.isEmpty, remainingCount > 0 {
            try Task.checkCancellation()
            var reader = try FeedReader(
                database, since: position, batchOptions, passesOverFailedFilters: true)
            let changed = try reader.nextBatch()
            position = reader.position
            if changed.isEmpty { break }
            let looksAtContents = try leavesOutAbsentContents && database.awaitsContents
            for document in changed {
                if let documentIDs, !documentIDs.contains(ByteKey(document.documentID)) { continue }
                var revisions = includesAllLeaves ? document.leafRevisionIDs : [document.revision.revisionID]
                if looksAtContents { revisions = try revisions.filter { try hasContents($0, of: document.document) } }
                if revisions.isEmpty { continue }
                bytes += try row(document, revisions)
                rowCount += 1
                remainingCount -= 1
            }
        }
        return bytes
    }

    private func hasContents(_ id: RevisionID, of document: Document) throws -> Bool {
        guard let revision = try document.revision(withID: id), try revision.propertiesAvailable else { return true }
        let outgoing = try OutgoingRevision(revision)
        if outgoing.contents.allSatisfy(outgoing.isAvailable) { return true }
        CofferLog.write(.warning, .sync, "listener", "left out a revision whose contents are not here")
        return false
    }

    private func row(_ document: ChangedDocument, _ revisions: [RevisionID]) throws -> [UInt8] {
        var json = ChangedRow(
            position: FeedPosition(.number(JSONNumber(Int64(document.sequence)))), id: document.documentID,
            revisions: revisions, isDeletion: document.isDeletion
        ).json
        if includesDocuments {
            json["doc"] = .object(try OutgoingRevision(document.revision).json(history: nil) { _ in .stub })
        }
        let text = try json.canonicalJSON()
        if mode == .endless { return text + [UInt8(ascii: "\n")] }
        return rowCount == 0 ? text : [UInt8(ascii: ","), UInt8(ascii: "\n")] + text
    }

    private func end() throws -> [UInt8] {
        isOver = true
        let pending = max(0, try database.lastSequenceNumber - position)
        let last = "\"last_seq\":\(position),\"pending\":\(pending)}\n"
        return Array((mode == .endless ? "{" : "\n],\n").utf8) + Array(last.utf8)
    }
}
