internal import CofferSealing
internal import Synchronization

/// The download of one content, as somebody asked for it with ``Replication/download(_:)-(Attachment)``.
///
/// ```swift
/// let download = try pull.download(photo)
/// for await status in download.statuses { show(status.completedByteCount, of: status.totalByteCount) }
/// try await download.run()
/// ```
///
/// It has begun when it is made, and goes on until it has come to its end or is cancelled, even if nobody holds it, unless it
/// is paused then. Where others ask for the same content, it travels once; each of them may pause and cancel for itself.
/// Safe from any thread.
public final class AttachmentDownload: Sendable {
    private let latest: LatestValue<DownloadStatus>
    /// Nil once it is over, so that it doesn't hold the database.
    private let content: Lock<SharedDownload?>
    private let number: Int

    /// What the one has in hand who made a request.
    init(_ number: Int, of content: SharedDownload, _ latest: LatestValue<DownloadStatus>) {
        self.number = number
        self.content = Lock(content)
        self.latest = latest
    }

    /// The download of a content that is here.
    init(finished byteCount: Int) {
        number = 0
        content = Lock(nil)
        latest = LatestValue(
            DownloadStatus(activity: .finished, completedByteCount: byteCount, totalByteCount: byteCount))
        latest.finish()
    }

    deinit { underWay?.letGo(number) }

    private var underWay: SharedDownload? {
        content.withLock { content in
            if content?.isOver == true { content = nil }
            return content
        }
    }

    // MARK: Looking

    /// How far it has come.
    public var status: DownloadStatus { latest.value }

    /// How far it has come, now and whenever that changes. A slow consumer gets only the latest. Ends when it has
    /// finished or failed.
    public var statuses: AsyncStream<DownloadStatus> { latest.values() }

    /// Waits until the content is here: its digest was checked, and it is on the disk.
    ///
    /// - Throws: a ``SyncError`` with the server's status: 404 where it has no such content, 401 and 403, 502 where what comes
    ///   is not what its digest says; a `CofferError`: `attachmentNotFound` (404) where no revision here has it any more,
    ///   `noSpace` (507), `closed` (500); `CancellationError` where it was cancelled, or the task, which cancels it. A server
    ///   that can't be reached is not an error: the call waits for it.
    public func run() async throws {
        let statuses = statuses
        await withTaskCancellationHandler {
            for await _ in statuses {}
        } onCancel: {
            cancel()
        }
        _ = underWay
        if let error = status.error { throw error }
    }

    // MARK: Steering

    /// Has it wait until ``resume()``. What has come so far stays where the server can go on from there.
    ///
    /// The content goes on travelling where others have asked for it.
    public func pause() { underWay?.pause(number) }

    /// Has it go on.
    public func resume() { underWay?.resume(number) }

    /// Gives it up. Nothing of it stays on the disk, unless others have asked for the content. Nothing happens when it is over.
    public func cancel() { underWay?.cancel(number) }
}

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
