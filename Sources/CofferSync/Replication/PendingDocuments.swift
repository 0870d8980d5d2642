public import Coffer
internal import CofferModel
internal import CofferSealing

extension Replication {
    /// The documents that were refused for good, by either side, in this run or an earlier one, and are not settled yet: the first
    /// 1,000. Asks no server.
    ///
    /// One is settled when its revision has come across after all, is purged, or was replaced by one that is not refused. None is
    /// asked for again before that, unless ``ReplicationOptions/retriesRefused`` says so.
    ///
    /// - Throws: `closed` and `damaged` (500); ``SyncError`` 400 for a backup that is open for reading only.
    public func refusedDocuments() throws -> [DocumentFailure] {
        let document = try database.localDocument(withID: try checkpointID()) ?? [:]
        var refused = RefusedDocuments(document[Checkpoints.refusedKey])
        try refused.remove { try $0.isSettled(in: database, isPull: direction == .pull) }
        return refused.failures
    }

    /// The ids of documents that were changed since a push last noted how far it has come. Asks no server.
    ///
    /// - Parameter limit: so many at most. Default: 1,000.
    /// - Throws: `closed` and `damaged` (500); `invalidArgument` (400) for a filter that is not known. Empty for a pull.
    public func pendingDocumentIDs(limit: Int = 1000) throws -> [String] {
        guard limit > 0 else { return [] }
        var pending: [String] = []
        try findPending { id in
            pending.append(id)
            return pending.count < limit
        }
        return pending
    }

    /// Whether a document was changed since a push last noted how far it has come. Asks no server. False for a pull, and for a
    /// document that a filter keeps here.
    ///
    /// - Throws: as ``pendingDocumentIDs(limit:)``.
    public func isDocumentPending(_ id: String) throws -> Bool {
        var isPending = false
        try findPending { found in
            isPending = ByteKey(found) == ByteKey(id)
            return !isPending
        }
        return isPending
    }

    /// Gives the ids of pending documents to `body`, until it says false.
    private func findPending(_ body: (String) -> Bool) throws {
        guard direction == .push else { return }
        let document = try database.localDocument(withID: try checkpointID()) ?? [:]
        let local = Checkpoint(document)
        var feed = FeedOptions()
        feed.filter = options.filter
        feed.filterParameters = options.filterParameters
        feed.includesAllLeaves = true
        let position: Int? = local.sessions.first.flatMap { Int(jsonValue: $0.position.value) }
        let ids = options.documentIDs.map { Set($0.map(ByteKey.init)) }
        var reader = try FeedReader(database, since: position ?? 0, feed)
        var postponed: Set<ByteKey> = []
        for entry in PostponedRevisions(document[Checkpoints.postponedKey]).entries {
            guard postponed.insert(ByteKey(entry.id)).inserted else { continue }
            guard body(entry.id) else { return }
        }
        while true {
            let batch = try reader.nextBatch()
            if batch.isEmpty { return }
            for document in batch where ids.map({ $0.contains(ByteKey(document.documentID)) }) ?? true {
                guard !postponed.contains(ByteKey(document.documentID)) else { continue }
                guard body(document.documentID) else { return }
            }
        }
    }
}

/// A document that did not come across, while others did.
public struct DocumentFailure: Sendable {
    /// The document's id.
    public let documentID: String

    /// The revision; nil if it is not known.
    public let revisionID: RevisionID?

    /// Why: a ``SyncError`` or a `CofferError`.
    public let error: any Error

    /// Whether it is tried again, when the replication next begins and, where that is continuous, after a pause: the reason may
    /// pass. Others stay where they are until they are changed.
    public let isTriedAgain: Bool
}

/// Revisions that did not come across for a reason that may pass.
///
/// They are kept with the checkpoint that is here, so that what comes behind them need not wait: a later run, and a continuous
/// one after a pause, asks for them again.
struct PostponedRevisions: Sendable {
    struct Entry: Sendable, Equatable {
        var id: String
        var revisions: [RevisionID]
        /// How often they have failed.
        var failureCount: Int
    }

    /// So many documents at most. Where more fail, something is wrong with more than documents.
    static let limit = 1000

    /// What failed that often is left to the next run.
    static let attemptLimit = 10

    private(set) var entries: [Entry] = []
    /// How often those that are tried just now have failed, by documents' ids.
    private var failureCounts: [ByteKey: Int] = [:]

    init() {}

    /// What a checkpoint says; what it doesn't say well is forgotten.
    init(_ json: JSONValue?) {
        for value in json?.arrayValue ?? [] {
            let revisions = (value["revs"]?.arrayValue ?? []).compactMap { $0.stringValue.flatMap(RevisionID.init) }
            guard let id = value["id"]?.stringValue, !revisions.isEmpty, entries.count < Self.limit else { continue }
            entries.append(
                Entry(id: id, revisions: revisions, failureCount: min(value["failures"] ?? 1, Self.attemptLimit)))
        }
    }

    /// Nil where there aren't any.
    var json: JSONValue? {
        guard !entries.isEmpty else { return nil }
        return .array(
            entries.map { entry in
                [
                    "id": .string(entry.id), "revs": .array(entry.revisions.map { .string($0.description) }),
                    "failures": .number(JSONNumber(Int64(entry.failureCount))),
                ]
            })
    }

    /// Whether there are some that are worth another attempt before the next run.
    var hasDue: Bool { entries.contains { $0.failureCount < Self.attemptLimit } }

    /// Notes a revision that failed.
    ///
    /// - Returns: false where there are too many already.
    mutating func add(_ id: String, _ revision: RevisionID) -> Bool {
        if let place = entries.firstIndex(where: { $0.id.utf8.elementsEqual(id.utf8) }) {
            if !entries[place].revisions.contains(revision) { entries[place].revisions.append(revision) }
            return true
        }
        guard entries.count < Self.limit else { return false }
        let failureCount = failureCounts[ByteKey(id)] ?? 0
        entries.append(Entry(id: id, revisions: [revision], failureCount: failureCount + 1))
        return true
    }

    /// Takes out those that are to be tried now: all, or those that are worth it before the next run.
    mutating func take(all: Bool) -> [Entry] {
        let due = entries.filter { all || $0.failureCount < Self.attemptLimit }
        entries.removeAll { all || $0.failureCount < Self.attemptLimit }
        failureCounts = Dictionary(due.map { (ByteKey($0.id), $0.failureCount) }, uniquingKeysWith: max)
        return due
    }
}

/// Documents that were refused for good, by either side. Kept with the checkpoint that is here until they are settled, so that a
/// later run can name them, too.
struct RefusedDocuments: Sendable, Equatable {
    struct Entry: Sendable, Equatable {
        var id: String
        var revision: RevisionID?
        var status: Int
        var reason: String
    }

    /// So many at most; of more, the first are known.
    static let limit = 1000
    /// Reasons are cut to about that many bytes.
    private static let reasonByteCount = 300

    private(set) var entries: [Entry] = []

    init() {}

    /// What a checkpoint says; what it doesn't say well is forgotten.
    init(_ json: JSONValue?) {
        for value in (json?.arrayValue ?? []).prefix(Self.limit) {
            guard let id = value["id"]?.stringValue, let status: Int = value["status"] else { continue }
            entries.append(
                Entry(
                    id: id, revision: value["rev"]?.stringValue.flatMap(RevisionID.init), status: status,
                    reason: value["reason"]?.stringValue ?? "refused"))
        }
    }

    /// Nil where there aren't any.
    var json: JSONValue? {
        guard !entries.isEmpty else { return nil }
        return .array(
            entries.map { entry in
                var object: JSONObject = ["id": .string(entry.id), "reason": .string(entry.reason)]
                object["rev"] = entry.revision.map { .string($0.description) }
                object["status"] = .number(JSONNumber(Int64(entry.status)))
                return .object(object)
            })
    }

    /// Notes a document that was refused, in place of what was noted of the same revision before.
    mutating func add(_ failure: DocumentFailure) {
        let (status, reason) =
            switch failure.error {
            case let error as SyncError: (error.status, error.detail)
            case let error as CofferError: (error.status, error.detail ?? error.code.description)
            default: (500, "an error of the database")
            }
        let entry = Entry(
            id: failure.documentID, revision: failure.revisionID, status: status,
            reason: reason.shortened(to: Self.reasonByteCount))
        let isSame = { (other: Entry) in ByteKey(other.id) == ByteKey(entry.id) && other.revision == entry.revision }
        if let place = entries.firstIndex(where: isSame) {
            entries[place] = entry
        } else if entries.count < Self.limit {
            entries.append(entry)
        }
    }

    /// Forgets those that are settled.
    mutating func remove(where isSettled: (Entry) throws -> Bool) rethrows {
        guard !entries.isEmpty else { return }
        try entries.removeAll(where: isSettled)
    }

    /// As a run tells of them.
    var failures: [DocumentFailure] {
        entries.map { entry in
            DocumentFailure(
                documentID: entry.id, revisionID: entry.revision,
                error: SyncError(entry.status, of: "document \(entry.id)", entry.reason), isTriedAgain: false)
        }
    }
}

extension RefusedDocuments.Entry {
    /// Whether nothing is left to be refused: the revision is here by now, or, on a push, is not here any more.
    func isSettled(in database: Database, isPull: Bool) throws(CofferError) -> Bool {
        // What can't be here never came.
        guard let revision, let found = try database.missingRevisions(of: [(id: id, revisions: [revision])]).first,
            let missing = try? found.get()
        else { return false }
        return missing.revisions.isEmpty == isPull
    }
}

/// How many documents in a row a server has refused one by one: where that goes on, it is not about them.
struct RefusalStreak {
    /// So many end a run.
    static let limit = 20

    /// A document of so many bytes that is too large (413) is the reason itself, however many there are: a server that takes
    /// less takes hardly any document.
    static let largeByteCount = 1 << 16

    private var count = 0

    /// Notes that one was refused.
    ///
    /// - Parameter byteCount: how many bytes it had, if it was sent. Default: 0.
    /// - Throws: the error, where it has been too many.
    mutating func add(_ error: SyncError, byteCount: Int = 0) throws(SyncError) {
        guard error.status != 413 || byteCount < Self.largeByteCount else { return }
        count += 1
        if count >= Self.limit { throw error }
    }

    /// Notes that the server took something.
    mutating func end() { count = 0 }
}
