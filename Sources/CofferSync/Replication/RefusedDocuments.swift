internal import CofferModel
internal import Coffer

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
        guard let revision, (try? DocumentID(id)) != nil else { return false }
        return try database.missingRevisions(of: [revision], ofDocumentWithID: id).isEmpty == isPull
    }
}
