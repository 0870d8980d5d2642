internal import CofferModel
internal import Coffer

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
