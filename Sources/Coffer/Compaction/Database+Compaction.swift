internal import CofferSealing

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
    /// - Parameter progress: told how far it is, at most ten times a second, where it is isolated. Default: nil.
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
