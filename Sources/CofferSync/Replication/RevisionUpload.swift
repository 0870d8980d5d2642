internal import CofferModel
internal import Coffer

/// Sends one revision with contents that follow it.
struct RevisionUpload: Sendable {
    let remote: RemoteDatabase
    let revision: OutgoingRevision
    /// Of the revision, the newest first.
    let history: [RevisionID]
    /// The document's revisions that the server has.
    let known: [RevisionID]

    /// Sends those contents alone that are new since an ancestor that the server has.
    func run() async throws {
        let since = DatabaseService.commonGeneration(known, history)
        do {
            do {
                try await remote.save(revision, history: history) { $0.generation > since ? .follows : .stub }
            } catch let error as SyncError where [400, 412].contains(error.status) && since > 0 {
                // The server's ancestor is not what it was thought to be.
                try await remote.save(revision, history: history) { _ in .follows }
            }
        } catch let error as SyncError where error.status == 413 {
            try await runWithoutLargeBlobs(since, refusal: error)
        }
    }

    /// Blobs that are too large for the server stay away, the largest first, until it takes the rest. The document says what
    /// they are, all the same.
    private func runWithoutLargeBlobs(_ since: Int, refusal: SyncError) async throws {
        var refusal = refusal
        let lengths = revision.contents.filter(\.isBlob).map { min($0.length, Self.blobByteLimit) }
        for limit in Set(lengths).sorted(by: >) {
            do {
                try await remote.save(revision, history: history) { content in
                    if content.isBlob, content.length >= limit { return .omitted }
                    return content.generation > since ? .follows : .stub
                }
                return
            } catch let error as SyncError where error.status == 413 {
                refusal = error
            }
        }
        throw refusal
    }

    /// Sync Gateway refuses more: 20 MB.
    private static let blobByteLimit = 20 << 20

    /// Whether the server refuses the revision since it doesn't have a content that is not here either, and may come later.
    func isForWantOfContents(_ error: SyncError) -> Bool {
        [400, 412].contains(error.status) && !revision.contents.allSatisfy(revision.isAvailable)
    }

    /// What its contents have, and the revision without them.
    var byteCount: Int { revision.contents.reduce(revision.bodyByteCount) { $0.addingSaturated($1.length) } }
}
