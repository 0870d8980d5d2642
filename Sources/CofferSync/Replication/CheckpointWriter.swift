internal import CofferModel
internal import Coffer
internal import Foundation

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
