internal import CofferModel
internal import Coffer
internal import Foundation

/// The checkpoints of one replication, here and on the server. For one task.
struct Checkpoints {
    private let writer: CheckpointWriter
    /// What is recorded, or about to be.
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

    /// Reads both, and finds out how far the replication has come.
    init(_ database: Database, _ remote: RemoteDatabase, isPull: Bool, id: String) async throws {
        let here = try database.localDocument(withID: id) ?? [:]
        let there = try await remote.localDocument(id)
        let (local, theirs) = (Checkpoint(here), Checkpoint(there))
        writer = CheckpointWriter(
            database, remote, isPull: isPull, id: id, local: local, theirs: theirs,
            theirRevision: there["_rev"]?.stringValue)
        position = Checkpoint.common(source: isPull ? theirs : local, target: isPull ? local : theirs)
        // From the beginning all of them are met anyway.
        postponed = PostponedRevisions(position == nil ? nil : here[Self.postponedKey])
        recordedPostponed = postponed.entries
        refused = RefusedDocuments(position == nil ? nil : here[Self.refusedKey])
        recordedRefused = refused
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

    /// Notes that everything up to `position` was exchanged, and is on the disk of the target. It is recorded while the replication
    /// goes on.
    ///
    /// - Throws: what an earlier record failed by.
    mutating func record(_ position: FeedPosition) async throws {
        guard heldBack == nil else { return }
        guard position != self.position || postponed.entries != recordedPostponed || refused != recordedRefused else {
            return
        }
        try await writer.note(.init(position: position, postponed: postponed.json, refused: refused.json))
        self.position = position
        recordedPostponed = postponed.entries
        recordedRefused = refused
    }

    /// Waits until everything that was noted is recorded.
    ///
    /// - Throws: what a record failed by.
    func finish() async throws { try await writer.finish() }
}

/// Writes how far one replication has come, here and on the server, while the replication goes on.
///
/// One record is written at a time. Of those that are noted meanwhile the last one counts: it covers all that the others do.
actor CheckpointWriter {
    /// How far it has come, with what is kept here only: what did not come across.
    struct Record: Sendable {
        var position: FeedPosition
        var postponed: JSONValue?
        var refused: JSONValue?
    }

    private let database: Database
    private let remote: RemoteDatabase
    private let isPull: Bool
    private let id: String
    private var local: Checkpoint
    private var theirs: Checkpoint
    private var theirRevision: String?
    private var next: Record?
    private var writing: Task<Void, Never>?
    private var failure: (any Error)?

    /// - Parameters:
    ///   - local: the checkpoint that is here.
    ///   - theirs: the one on the server, a document whose revision is `theirRevision`.
    init(
        _ database: Database, _ remote: RemoteDatabase, isPull: Bool, id: String, local: Checkpoint, theirs: Checkpoint,
        theirRevision: String?
    ) {
        self.database = database
        self.remote = remote
        self.isPull = isPull
        self.id = id
        self.local = local
        self.theirs = theirs
        self.theirRevision = theirRevision
    }

    /// Notes that everything up to there was exchanged, and is on the disk of the target.
    ///
    /// - Throws: what an earlier record failed by.
    func note(_ record: Record) throws {
        if let failure { throw failure }
        next = record
        if writing == nil { writing = Task { await writeAll() } }
    }

    /// Waits until everything that was noted is written. Cancelling the waiting task gives it up.
    ///
    /// - Throws: what a record failed by.
    func finish() async throws {
        while let writing {
            await withTaskCancellationHandler {
                await writing.value
            } onCancel: {
                writing.cancel()
            }
        }
        if let failure { throw failure }
    }

    private func writeAll() async {
        while failure == nil, let record = next.take() {
            do {
                try Task.checkCancellation()
                try await write(record)
            } catch {
                failure = error
            }
        }
        writing = nil
    }

    /// On the target first.
    private func write(_ record: Record) async throws {
        // A name of its own for each: where one of them is put back to an earlier state, the latest that both have is a moment
        // at which they agreed.
        let session = UUID().uuidString
        if isPull {
            try await writeHere(record, session)
            try await writeThere(record, session)
        } else {
            try await remote.commit()
            try await writeThere(record, session)
            try await writeHere(record, session)
        }
    }

    private func writeHere(_ record: Record, _ session: String) async throws {
        local = local.recording(session, at: record.position)
        var json = local.json
        json[Checkpoints.postponedKey] = record.postponed
        json[Checkpoints.refusedKey] = record.refused
        let (database, id, document) = (database, id, json)
        let sent: Int? = isPull ? nil : Int(jsonValue: record.position.value)
        try await database.inTransaction {
            try database.saveLocalDocument(document, withID: id)
            // Its histories reach back to what the server has.
            if let sent { try database.notePeer(id, has: sent) }
        }
    }

    private func writeThere(_ record: Record, _ session: String) async throws {
        theirs = theirs.recording(session, at: record.position)
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

extension Replication {
    /// What its checkpoints are called, here and there.
    func checkpointID() throws -> String {
        guard let uuid = try database.uuid else {
            throw SyncError(400, "a backup that is open for reading only is nobody to replicate with")
        }
        var identity = ReplicationIdentity(database: uuid, remote: url.text, isPull: direction == .pull)
        identity.filter = options.filter
        identity.filterParameters = options.filterParameters
        identity.documentIDs = options.documentIDs
        identity.channels = options.channels
        return try identity.checkpointID
    }
}
