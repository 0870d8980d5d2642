public import CofferSealing
internal import CofferRecords
internal import CofferVault
internal import Dispatch
internal import Synchronization
internal import Foundation

/// The result of a compaction.
public struct CompactionResult: Sendable, Equatable, Codable {
    /// Revisions whose properties were dropped.
    public var revisionCount = 0
    /// Contents of attachments and blobs that no revision uses any more.
    public var attachmentCount = 0
    /// The bytes of these contents.
    public var attachmentByteCount = 0
    /// The bytes of the database file that were given back to the file system, or will be when nobody reads from its log
    /// any more.
    public var databaseByteCount = 0

    /// All bytes that were freed.
    public var byteCount: Int { attachmentByteCount + databaseByteCount }
}

/// How far a compaction has come.
public struct CompactionProgress: Sendable, Equatable {
    /// The current phase. The list is open: later versions may add phases, so a `switch` over it needs a `default`.
    public struct Phase: Sendable, Hashable, CustomStringConvertible {
        private let name: String

        /// Revisions that came since the last compaction are looked through for those that they replaced.
        public static let revisions = Phase(name: "revisions")
        /// Contents that no revision uses are removed.
        public static let attachments = Phase(name: "attachments")
        /// Free pages of the database are given back.
        public static let space = Phase(name: "space")

        /// The phase's name, such as `revisions`.
        public var description: String { name }
    }

    /// The current phase.
    public var phase: Phase
    /// How many revisions, contents or pages are done.
    public var completedItemCount: Int
    /// How many there are in this phase.
    public var totalItemCount: Int
}

extension Database {
    // MARK: Housekeeping

    /// Drops what replaced and deleted revisions keep: their properties, and the contents that no other revision uses. Gives
    /// the space back to the file system.
    ///
    /// Winning revisions, and those in an unresolved conflict with them, keep everything, and so does what a draft has
    /// written and not saved yet; history keeps the ids of all. Content that is being read stays readable to its end. It
    /// works in short transactions: reads never wait for it, and writes not long. Cut short by a kill, it has done a part.
    ///
    /// It looks at what was saved since the last time, so that doing it often costs little. It also happens automatically: see
    /// ``DatabaseOptions/compactsInBackground``.
    ///
    /// - Returns: what was removed.
    /// - Throws: `invalidArgument` (400) inside a transaction; `readOnly` (403), `damaged` and `closed` (500), `busy` (503)
    ///   while the key is changed or another compaction runs.
    @discardableResult
    public func compact() throws(CofferError) -> CompactionResult { try storage.compact(CompactionMonitor()) }

    /// Drops what replaced and deleted revisions keep: see the form without `async`. Tasks that write do not wait behind it.
    ///
    /// - Parameter progress: told how far it is, at most ten times a second and once at the end, where it is isolated.
    ///   Default: nil.
    /// - Throws: also `cancelled` (499) when the task is cancelled: what was done by then stays done.
    @discardableResult
    public func compact(
        progress: (@isolated(any) @Sendable (CompactionProgress) -> Void)? = nil
    ) async throws -> CompactionResult {
        try await storage.maintainInBackground(from: .start, telling: progress) {
            [storage] (monitor) throws(CofferError) in
            try Compaction(storage, CompactionMonitor(monitor)).run()
        }
    }
}

/// A compaction, seen from who asked for it.
struct CompactionMonitor: Sendable {
    private let monitor: ProgressMonitor<CompactionProgress>
    /// Whether it makes room for other changes of the store as a whole: nobody asked for it.
    private let givesWay: Bool

    init(_ monitor: ProgressMonitor<CompactionProgress>, givesWay: Bool = false) {
        self.monitor = monitor
        self.givesWay = givesWay
    }

    init(givesWay: Bool = false, report: (@Sendable (CompactionProgress) -> Void)? = nil) {
        self.init(ProgressMonitor(from: .start, report: report), givesWay: givesWay)
    }

    /// Has the compaction end before its next step.
    func cancel() { monitor.cancel() }

    /// - Throws: `cancelled` (499); `closed` (500) when somebody wants to close the store, and is not to wait long.
    func check(_ storage: Storage) throws(CofferError) {
        if givesWay && storage.maintenanceLock.isWaitedFor { throw CofferError(.cancelled) }
        try monitor.checkCancelled()
        if storage.isAboutToClose { throw CofferError(.closed) }
    }

    func begin(_ phase: CompactionProgress.Phase, itemCount: Int) {
        monitor.update { $0 = CompactionProgress(phase: phase, completedItemCount: 0, totalItemCount: itemCount) }
    }

    func advance(itemCount: Int) { monitor.update { $0.completedItemCount += itemCount } }
}

extension CompactionProgress {
    /// Before anything is known.
    static let start = CompactionProgress(phase: .revisions, completedItemCount: 0, totalItemCount: 0)
}

extension Database {
    // MARK: How far back histories go

    /// How many revisions of one line are kept: a document's current revision and the ones before it. Default: 20.
    ///
    /// Older ones are pruned automatically as revisions are added: their ids, and what compaction had left of them. In a
    /// document with branches a revision stays while it is near enough to the end of any branch. Kept with the database.
    ///
    /// - Throws: `damaged` (500), `closed` (500).
    public var maxRevTreeDepth: Int {
        get throws(CofferError) {
            try storage.read { (tables) throws(CofferError) in try tables.revisionTreeDepth() }
        }
    }

    /// Sets how many revisions of one line are kept, and prunes at once what is too old then.
    ///
    /// Two databases that exchange revisions find out by the histories whose revision follows whose. Where one has been
    /// changed so often since they last met that the histories have nothing in common any more, what was just a newer
    /// revision becomes a **conflict**. What a server had last, as far as replications of this database know, stays for up to
    /// 1,000 revisions with all that came since. A peer that pulls from a listener, and documents with branches, need a depth
    /// that is large enough. Lowering it takes time in proportion to the documents that were changed.
    ///
    /// - Parameter depth: from 1, with which only the ends of branches are kept.
    /// - Throws: `invalidArgument` (400) for less, `readOnly` (403), `closed` (500), `busy` (503).
    public func setMaxRevTreeDepth(_ depth: Int) throws(CofferError) {
        guard depth >= 1 else {
            throw CofferError(
                .invalidArgument, of: storage.subject, "the current revision is always kept, so the depth is at least 1"
            )
        }
        try storage.write { (writer) throws(CofferError) in try Pruning.setDepth(depth, in: writer) }
    }
}

/// Compacts an open store when enough can be given back. One at a time, and without keeping the store open.
final class BackgroundCompaction: StorageCompanion {
    private let queue = DispatchQueue(label: "coffer.compaction", qos: .utility)
    private let isScheduled = Atomic(false)

    /// Has the store compacted soon.
    func schedule(_ storage: Storage) {
        guard !isScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        queue.async { [weak storage, weak self] in
            if let storage, !storage.isAboutToClose {
                // What it could not do now stays noted, and is tried again when more has come, or at the next open.
                _ = try? storage.compact(CompactionMonitor(givesWay: true))
            }
            self?.isScheduled.store(false, ordering: .releasing)
        }
    }
}

extension BackgroundCompaction {
    func didCommit(_ commit: Commit?, _ writer: borrowing Writer, in storage: Storage) {
        storage.considerCompaction(writer)
    }
}

extension Storage {
    /// Compacts the store when that gives enough back.
    var backgroundCompaction: BackgroundCompaction { companions[BackgroundCompaction.self] }
}

extension Storage {
    /// Has the store compacted, if enough can be given back.
    func considerCompaction(_ writer: borrowing Writer) {
        let reclaimable = writer.state.reclaimable
        guard let policy = settings.compaction,
            reclaimable.byteCount >= max(policy.leastByteCount, reclaimable.nextCompactionByteCount),
            let pages = try? writer.records.compaction.pages()
        else { return }
        if policy.isEnough(reclaimable.byteCount, databaseByteCount: pages.all * Schema.pageByteCount) {
            // One that fails is tried again when there is as much more.
            writer.state.reclaimable.nextCompactionByteCount =
                reclaimable.byteCount.addingSaturated(policy.leastByteCount)
            backgroundCompaction.schedule(self)
        }
    }

    /// Begins what the store does automatically, once it is open for writing.
    ///
    /// From here on other threads write too: whoever opened the store has handed its writer over by now.
    ///
    /// - Parameter nextExpiration: when the first document expires.
    func startBackgroundWork(nextExpiration: Int64?) {
        // Told of commits from here on.
        _ = (backgroundCompaction, expirationTimer)
        // Without the lock nothing is lost: a compaction is considered again after each commit.
        try? alone { (writer) throws(CofferError) in considerCompaction(writer) }
        if let nextExpiration { expirationTimer.start(self, next: nextExpiration) }
    }

    /// Lets those write who wait to, between two steps of something long. Whoever never stops waits no longer than a tenth
    /// of a second for others who never stop.
    func letOthersWrite() {
        let deadline = ContinuousClock.now + .milliseconds(100)
        while writerLock.isWaitedFor && .now < deadline { Thread.sleep(forTimeInterval: 0.000_5) }
    }
}
