internal import CofferModel
internal import Coffer

/// The checkpoints of one replication, here and on the server. For one task.
struct Checkpoints {
    private let database: Database
    private let remote: RemoteDatabase
    private let isPull: Bool
    let id: String
    private let session: String
    private var local = Checkpoint()
    private var theirs = Checkpoint()
    private var theirRevision: String?
    private(set) var position: FeedPosition?

    /// - Parameter session: names this run, as no other is named.
    init(_ database: Database, _ remote: RemoteDatabase, isPull: Bool, id: String, session: String) {
        self.database = database
        self.remote = remote
        self.isPull = isPull
        self.id = id
        self.session = session
    }

    /// Reads both, and finds out how far the replication has come.
    mutating func load() async throws {
        local = Checkpoint(try database.localDocument(withID: id) ?? [:])
        let document = try await remote.localDocument(id)
        theirs = Checkpoint(document)
        theirRevision = document["_rev"]?.stringValue
        position = Checkpoint.common(source: isPull ? theirs : local, target: isPull ? local : theirs)
    }

    /// Notes that everything up to `position` was exchanged, and is on the disk of the target: there first.
    mutating func record(_ position: FeedPosition) async throws {
        guard position != self.position else { return }
        if isPull {
            try await recordHere(position)
            try await recordThere(position)
        } else {
            try await remote.commit()
            try await recordThere(position)
            try await recordHere(position)
        }
        self.position = position
    }

    private mutating func recordHere(_ position: FeedPosition) async throws {
        local = local.recording(session, at: position)
        try await database.saveLocalDocument(local.json, withID: id)
    }

    private mutating func recordThere(_ position: FeedPosition) async throws {
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
