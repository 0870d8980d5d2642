internal import Coffer

/// How a Couchbase Lite store is imported.
public struct CouchbaseLiteImportOptions: Sendable {
    /// The ways in which the source's key may have been derived from a password, tried in this order. Default: all.
    public var keyDerivations = CouchbaseLiteKeyDerivation.allCases

    /// Whether the attachment files of the new database get names that reveal nothing: see
    /// `DatabaseOptions.keyedNames`. Default: false.
    public var keyedNames = false

    /// The maximum number of problems that a report lists. It counts all of them. Default: 1,000.
    public var problemLimit = 1_000

    /// Options with their default values.
    public init() {}
}

/// How far an import is.
public struct CouchbaseLiteImportProgress: Sendable, Equatable, Codable {
    /// The number of revisions read so far.
    public internal(set) var completedRevisionCount: Int
    /// The number of revisions in the source.
    public internal(set) var totalRevisionCount: Int

    static let start = CouchbaseLiteImportProgress(completedRevisionCount: 0, totalRevisionCount: 0)
}

typealias ImportMonitor = ProgressMonitor<CouchbaseLiteImportProgress>
