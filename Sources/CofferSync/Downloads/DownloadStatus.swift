/// How far an ``AttachmentDownload`` has come.
public struct DownloadStatus: Sendable {
    /// What it does.
    public enum Activity: Sendable {
        /// It waits for others: so many are fetched at the same time as ``ReplicationOptions/parallelDownloadCount`` says.
        case waiting
        /// It waits to try again: the server is not there, or has no time.
        case offline
        /// Bytes come in, or are about to.
        case active
        /// It was paused.
        case paused
        /// The content is here, checked and on the disk.
        case finished
        /// It can't be had, or was cancelled: ``DownloadStatus/error`` says why.
        case failed
    }

    /// What it does.
    public internal(set) var activity = Activity.waiting

    /// How many bytes of the content have come. Less than all of them until the content is here, checked and on the disk.
    /// Falls back to 0 where what has come is of no use.
    public internal(set) var completedByteCount = 0

    /// How many bytes the content has.
    public internal(set) var totalByteCount: Int

    /// What went wrong last: a ``SyncError``, a `CofferError`, or `CancellationError`. Nil once it goes on.
    public internal(set) var error: (any Error)?
}
