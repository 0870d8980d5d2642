internal import CofferRecords

/// How far a change of the encryption key, a backup or a salvage has come.
public struct CopyProgress: Sendable, Equatable, Codable {
    /// The current phase. The list is open: later versions may add phases, so a `switch` over it needs a `default`.
    public struct Phase: Sendable, Hashable, Codable, CustomStringConvertible {
        private let name: String

        /// Contents of attachments and blobs are copied. Others read and write meanwhile.
        public static let attachments = Phase(name: "attachments")
        /// The database is copied, and checked. Others read meanwhile; in a key change, writes wait. In a salvage, its pages
        /// are gone through.
        public static let database = Phase(name: "database")

        /// The phase's name, such as `attachments`.
        public var description: String { name }
    }

    /// The current phase.
    public var phase: Phase
    /// How many bytes of this phase are done.
    public var completedByteCount: Int
    /// How many bytes this phase has, as far as that is known: others may add some meanwhile.
    public var totalByteCount: Int
    /// How many contents are done; of the database, 0 or 1.
    public var completedItemCount: Int
    /// How many contents there are; of the database, 1.
    public var totalItemCount: Int
}

/// What a key change, a backup or a salvage tells of itself.
typealias CopyMonitor = ProgressMonitor<CopyProgress>

extension ProgressMonitor where Progress == CopyProgress {
    /// The same for who only goes through a database file.
    var work: WorkMonitor {
        WorkMonitor(goesOn: { self.goesOn }, advance: { self.advance(byteCount: $0) })
    }

    convenience init(
        report: (@Sendable (CopyProgress) -> Void)? = nil, while isWanted: @escaping @Sendable () -> Bool = { true }
    ) {
        self.init(from: .start, report: report, while: isWanted)
    }

    func begin(_ phase: CopyProgress.Phase, byteCount: Int, itemCount: Int) {
        update {
            $0 = CopyProgress(
                phase: phase, completedByteCount: 0, totalByteCount: byteCount, completedItemCount: 0,
                totalItemCount: itemCount)
        }
    }

    func advance(byteCount: Int = 0, itemCount: Int = 0) {
        update {
            $0.completedByteCount += byteCount
            $0.completedItemCount += itemCount
        }
    }

    /// Notes that all of the phase is done, whatever was counted of it.
    func complete() {
        update {
            $0.completedByteCount = $0.totalByteCount
            $0.completedItemCount = $0.totalItemCount
        }
    }
}

extension CopyProgress {
    /// Before anything is known.
    static let start = CopyProgress(
        phase: .attachments, completedByteCount: 0, totalByteCount: 0, completedItemCount: 0, totalItemCount: 0)
}
