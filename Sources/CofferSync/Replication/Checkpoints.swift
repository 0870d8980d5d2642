internal import CofferModel
internal import Foundation
internal import Coffer

/// The checkpoints of one replication, here and on the server. For one task.
struct Checkpoints {
    private let database: Database
    private let remote: RemoteDatabase
    private let isPull: Bool
    let id: String
    private var local = Checkpoint()
    private var theirs = Checkpoint()
    private var theirRevision: String?
    private(set) var position: FeedPosition?
    /// What did not come across, and is to be tried again. Kept here only.
    private(set) var postponed = PostponedRevisions()
    /// What too many documents failed by that are to be tried again: nothing is recorded any more then.
    private(set) var heldBack: SyncError?
    private var recordedPostponed: [PostponedRevisions.Entry] = []
    /// What was refused for good. Kept here only.
    private(set) var refused = RefusedDocuments()
    private var recordedRefused = RefusedDocuments()
    /// The ids of documents that were refused since the last position was reached.
    private var justRefused: Set<ByteKey> = []

    static let postponedKey = "postponed"
    static let refusedKey = "refused"

    init(_ database: Database, _ remote: RemoteDatabase, isPull: Bool, id: String) {
        self.database = database
        self.remote = remote
        self.isPull = isPull
        self.id = id
    }

    /// Reads both, and finds out how far the replication has come.
    mutating func load() async throws {
        let here = try database.localDocument(withID: id) ?? [:]
        local = Checkpoint(here)
        let document = try await remote.localDocument(id)
        theirs = Checkpoint(document)
        theirRevision = document["_rev"]?.stringValue
        position = Checkpoint.common(source: isPull ? theirs : local, target: isPull ? local : theirs)
        // From the beginning all of them are met anyway.
        postponed = PostponedRevisions(position == nil ? nil : here[Self.postponedKey])
        recordedPostponed = postponed.entries
        refused = RefusedDocuments(position == nil ? nil : here[Self.refusedKey])
        recordedRefused = refused
        let (database, isPull) = (database, isPull)
        try refused.remove { try $0.isSettled(in: database, isPull: isPull) }
    }

    /// Notes a document that was refused for good.
    mutating func refuse(_ failure: DocumentFailure) {
        guard !failure.isTriedAgain else { return }
        refused.add(failure)
        justRefused.insert(ByteKey(failure.documentID))
    }

    /// Notes that all was done about the changes of these documents: what was refused of them before, and not now, is settled.
    mutating func settle(_ ids: [String]) {
        defer { justRefused = [] }
        guard !refused.entries.isEmpty else { return }
        let done = Set(ids.map(ByteKey.init)).subtracting(justRefused)
        refused.remove { done.contains(ByteKey($0.id)) }
    }

    /// Has what was refused for good be tried again with what is to be tried again anyway.
    mutating func retryRefused() {
        var postponed = postponed
        refused.remove { entry in
            // By an id that none can have here nothing is asked for.
            guard let revision = entry.revision, (try? DocumentID(entry.id)) != nil else { return false }
            return postponed.add(entry.id, revision)
        }
        self.postponed = postponed
    }

    /// Notes that a revision failed for a reason that may pass.
    mutating func postpone(_ id: String, _ revision: RevisionID, _ error: SyncError) {
        if !postponed.add(id, revision) { heldBack = error }
    }

    /// Takes out what is to be tried again now: all of it, or what is worth it before the next run.
    mutating func takePostponed(all: Bool) -> [PostponedRevisions.Entry] { postponed.take(all: all) }

    /// Notes that everything up to `position` was exchanged, and is on the disk of the target: there first.
    mutating func record(_ position: FeedPosition) async throws {
        guard heldBack == nil else { return }
        guard position != self.position || postponed.entries != recordedPostponed || refused != recordedRefused else {
            return
        }
        // A name of its own for each: where one of them is put back to an earlier state, the latest that both have is a moment
        // at which they agreed.
        let session = UUID().uuidString
        if isPull {
            try await recordHere(session, position)
            try await recordThere(session, position)
        } else {
            try await remote.commit()
            try await recordThere(session, position)
            try await recordHere(session, position)
        }
        self.position = position
        recordedPostponed = postponed.entries
        recordedRefused = refused
    }

    private mutating func recordHere(_ session: String, _ position: FeedPosition) async throws {
        local = local.recording(session, at: position)
        var json = local.json
        json[Self.postponedKey] = postponed.json
        json[Self.refusedKey] = refused.json
        let (database, id, document) = (database, id, json)
        let sent: Int? = isPull ? nil : Int(jsonValue: position.value)
        try await database.inTransaction {
            try database.saveLocalDocument(document, withID: id)
            // Its histories reach back to what the server has.
            if let sent { try database.notePeer(id, has: sent) }
        }
    }

    private mutating func recordThere(_ session: String, _ position: FeedPosition) async throws {
        theirs = theirs.recording(session, at: position)
        var attemptCount = 0
        while true {
            do {
                theirRevision = try await remote.saveLocalDocument(theirs.json, id: id, replacing: theirRevision)
                return
            } catch let error as SyncError where error.status == 409 && attemptCount < Self.attemptLimit {
                // An answer got lost, or somebody else runs the same replication.
                attemptCount += 1
                theirRevision = try await remote.localDocument(id)["_rev"]?.stringValue
            } catch let error as SyncError where isPull && [401, 403, 405].contains(error.status) {
                // A source that one may only read. Every run begins at the beginning then, and asks for nothing that is
                // here.
                return
            }
        }
    }

    private static let attemptLimit = 5
}
