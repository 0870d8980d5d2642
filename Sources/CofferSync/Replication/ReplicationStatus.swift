public import Coffer

/// What a ``Replication`` is doing.
public struct ReplicationStatus: Sendable {
    /// What it does.
    public enum Activity: Sendable {
        /// Nothing: it was not started, has come to its end, was stopped, or can't go on.
        case stopped
        /// It waits to try again: the server is not there, or has no time.
        case offline
        /// It has exchanged everything, and waits for more.
        case idle
        /// It exchanges documents.
        case active
    }

    /// What it does.
    public internal(set) var activity = Activity.stopped

    /// How many changed documents it has dealt with since it was started, those among them that were known already and those
    /// that were refused.
    public internal(set) var completedCount = 0

    /// How many it knows of, those included. Grows as more are found.
    public internal(set) var totalCount = 0

    /// How many documents were refused, by either side.
    public internal(set) var failedCount = 0

    /// How many revisions were brought to where they were missing.
    var writtenCount = 0

    /// What went wrong last, but for single documents: a ``SyncError`` or a `CofferError`. Nil once it goes on.
    public internal(set) var error: (any Error)?
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
