internal import CofferModel
internal import Coffer

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
