internal import Coffer
internal import CofferModel
internal import Foundation

extension DatabaseService {
    /// Answers `_changes`: normal, longpoll, continuous, and as events of the web's (Server-Sent Events, in HTML's standard).
    func changes(_ request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "POST")
        var question: JSONObject = [:]
        if request.method == "POST" {
            question = try await request.json(upTo: service.options.documentByteLimit, default: [:]).objectValue ?? [:]
        }
        let isReplicator = request.fields["User-Agent"]?.hasPrefix("CouchDB-Replicator/") == true
        let feed = try ChangesFeed(
            database, target, question, leavesOutAbsentContents: isReplicator,
            lastEvent: request.fields["Last-Event-ID"])
        // A feed goes on for as long as its client likes, and keeps nothing of the body but the ids.
        question = [:]
        request.memory?.shrink(to: feed.byteCount)
        let stream = ByteStream { [self] in try await feed.nextPiece(of: self) }
        switch target["feed"] ?? "normal" {
        case "normal":
            // What was asked for is the client's to know; a copy of the database may have other changes by the same number.
            let tag = "\"\(try database.uuid?.uuidString ?? "")-\(try database.lastSequenceNumber)\""
            if request.method != "POST", request.knows(tag) { return HTTPResponse(304, fields: ["ETag": tag]) }
            var response = HTTPResponse.json(200, stream: stream)
            response.fields["ETag"] = tag
            return response
        case "longpoll":
            await feed.begin(.waitsForFirst)
            return .json(200, stream: stream)
        case "continuous", "live":
            await feed.begin(.endless)
            return .json(200, stream: stream)
        case "eventsource":
            await feed.begin(.events)
            return HTTPResponse(
                200, fields: ["Content-Type": "text/event-stream", "Cache-Control": "no-cache"],
                body: .stream(stream, length: nil))
        default:
            throw SyncError(400, "Supported `feed` types: normal, continuous, live, longpoll, eventsource")
        }
    }
}

/// A feed of changes as it is written, row by row.
actor ChangesFeed {
    enum Mode {
        case normal, waitsForFirst, endless, events

        /// Whether it goes on for as long as its client likes, and each row stands for itself.
        var isEndless: Bool { self == .endless || self == .events }
    }

    private let database: Database
    private let documentIDs: Set<ByteKey>?
    /// About what the ids take.
    let byteCount: Int
    private let includesDocuments: Bool
    private let includesAllLeaves: Bool
    /// What documents must be like, by the client's own words; nil for anything.
    private let predicate: DocumentPredicate?
    private let onlyDesign: Bool
    /// Where a feed that goes backwards comes to next; nil for one that goes forwards.
    private var upperBound: Int?
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
        _ database: Database, _ target: RequestTarget, _ question: JSONObject, leavesOutAbsentContents: Bool,
        lastEvent: String?
    ) throws {
        self.database = database
        self.leavesOutAbsentContents = leavesOutAbsentContents
        let stated = question["since"].map { $0.stringValue ?? $0.description }
        switch lastEvent?.filter({ $0 != "\"" }) ?? target["since"] ?? stated {
        case nil, "": position = 0
        case "now": position = try database.lastSequenceNumber
        case .some(let text):
            guard let number = Int(text), number >= 0 else {
                throw SyncError(400, "since is not a sequence of this database")
            }
            position = number
        }
        if target.isTrue("descending") {
            guard ["normal", nil].contains(target["feed"]) else {
                throw SyncError(400, "only a normal feed goes backwards")
            }
            upperBound = try database.lastSequenceNumber
        }
        guard ["all_docs", "main_only", nil].contains(target["style"]) else {
            throw SyncError(400, "style is all_docs or main_only")
        }
        var options = FeedOptions()
        includesAllLeaves = target["style"] == "all_docs"
        options.includesAllLeaves = includesAllLeaves
        // As CouchDB has it, 0 is taken for 1.
        remainingCount = try target.count("limit").map { max(1, $0) } ?? .max
        includesDocuments = target.isTrue("include_docs")
        var documentIDs: [JSONValue]?
        var (predicate, onlyDesign): (DocumentPredicate?, Bool) = (nil, false)
        switch target["filter"] {
        case nil, "": break
        case "_design": onlyDesign = true
        case "_selector":
            guard let selector = question["selector"], selector.objectValue != nil else {
                throw SyncError(400, "Selector error: expected a JSON object")
            }
            predicate = try Selector(selector).predicate
        case "_doc_ids":
            documentIDs =
                try question["doc_ids"]?.arrayValue
                ?? target["doc_ids"].map { try JSONValue(json: Array($0.utf8)).arrayValue ?? [] } ?? []
        case .some(let name):
            guard database.filter(named: name) != nil else { throw SyncError(404, "no filter is called \(name)") }
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
        self.predicate = predicate
        self.onlyDesign = onlyDesign
        timeout = .milliseconds(try target.count("timeout").map { min($0, 3_600_000) } ?? 60_000)
        switch target["heartbeat"] {
        case nil, "false": heartbeat = nil
        case "true": heartbeat = .seconds(60)
        case .some(let text):
            guard let milliseconds = Int(text), milliseconds > 0 else {
                throw SyncError(400, "Invalid heartbeat value. Expecting a positive integer value (in milliseconds).")
            }
            // A connection on which nothing moves is closed before long.
            heartbeat = .milliseconds(min(max(100, milliseconds), 60_000))
        }
    }

    /// Says which kind of feed it is, before its first piece is taken.
    func begin(_ mode: Mode) { self.mode = mode }

    /// The next bytes of the answer; nil after the last ones.
    func nextPiece(of service: DatabaseService) async throws -> [UInt8]? {
        guard !isOver else { return nil }
        if !hasBegun {
            hasBegun = true
            waitedSince = .now
            wroteAt = .now
            // So that a client that waits for the head has it.
            if !mode.isEndless { return Array("{\"results\":[\n".utf8) }
        }
        while true {
            let rows = try nextRows()
            if !rows.isEmpty {
                wroteAt = .now
                waitedSince = .now
                return rows
            }
            let isWaiting = mode.isEndless || (mode == .waitsForFirst && rowCount == 0)
            guard isWaiting, remainingCount > 0, !service.service.isStopping,
                heartbeat != nil || ContinuousClock.now - waitedSince < timeout
            else { return try end() }
            if let heartbeat, ContinuousClock.now - wroteAt >= heartbeat {
                wroteAt = .now
                return Array((mode == .events ? "event: heartbeat\ndata: \n\n" : "\n").utf8)
            }
            try await Task.sleep(for: Self.interval)
        }
    }

    /// The rows that are there now, as bytes; empty where there aren't any.
    private func nextRows() throws -> [UInt8] {
        var bytes: [UInt8] = []
        var batchOptions = options
        batchOptions.limit = min(remainingCount, 256)
        // Few ids out of many documents: those that don't belong here are read in batches, and skipped.
        while bytes.isEmpty, remainingCount > 0 {
            try Task.checkCancellation()
            guard let changed = try nextChanges(batchOptions) else { break }
            let looksAtContents = try leavesOutAbsentContents && database.awaitsContents
            for document in changed where remainingCount > 0 {
                guard try isMeant(document) else { continue }
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

    /// The next documents; nil after the last ones.
    private func nextChanges(_ options: FeedOptions) throws -> [ChangedDocument]? {
        guard let end = upperBound else {
            var reader = try FeedReader(database, since: position, options, passesOverFailedFilters: true)
            let changed = try reader.nextBatch()
            position = reader.position
            return changed.isEmpty ? nil : changed
        }
        guard end > 0 else { return nil }
        // A stretch of sequences at a time, each read forwards.
        let start = max(0, end - Self.stretch)
        upperBound = start
        var (batchOptions, found) = (options, [ChangedDocument]())
        batchOptions.limit = nil
        var reader = try FeedReader(database, since: start, batchOptions, passesOverFailedFilters: true)
        while reader.position < end, case let changed = try reader.nextBatch(), !changed.isEmpty {
            found += changed.prefix { $0.sequence <= end }
        }
        return found.reversed()
    }

    /// A feed that goes backwards reads so many sequences at a time.
    private static let stretch = 1_000

    /// Whether the client has asked for what this document is.
    private func isMeant(_ document: ChangedDocument) throws -> Bool {
        if let documentIDs, !documentIDs.contains(ByteKey(document.documentID)) { return false }
        if onlyDesign, !document.documentID.hasPrefix("_design/") { return false }
        guard let predicate else { return true }
        return predicate.matches(try document.revision.properties, id: document.documentID)
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
        let text = try json.messageJSON()
        if upperBound != nil { position = document.sequence }
        if mode == .events {
            return Array("data: ".utf8) + text + Array("\nid: \(document.sequence)\n\n".utf8)
        }
        if mode == .endless { return text + [UInt8(ascii: "\n")] }
        return rowCount == 0 ? text : [UInt8(ascii: ","), UInt8(ascii: "\n")] + text
    }

    private func end() throws -> [UInt8] {
        isOver = true
        // Event sources reconnect on their own, from the last one that they have.
        if mode == .events { return Array("\n".utf8) }
        let pending = max(0, try database.lastSequenceNumber - position)
        let last = "\"last_seq\":\(position),\"pending\":\(pending)}\n"
        return Array((mode == .endless ? "{" : "\n],\n").utf8) + Array(last.utf8)
    }
}
