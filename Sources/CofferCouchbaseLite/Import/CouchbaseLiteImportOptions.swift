internal import Coffer

/// How a Couchbase Lite store is imported.
public struct CouchbaseLiteImportOptions: Sendable {
    /// How the source's key may have been made of a password: each is tried, in that order. Default: all.
    public var keyDerivations = CouchbaseLiteKeyDerivation.allCases

    /// Whether the attachment files of the new database have names that say nothing: see
    /// `DatabaseOptions.keyedNames`. Default: false.
    public var keyedNames = false

    /// How many problems a report lists. All are counted. Default: 1,000.
    public var problemLimit = 1_000

    /// The options that are their defaults.
    public init() {}
}

/// How far an import has come.
public struct CouchbaseLiteImportProgress: Sendable, Equatable, Codable {
    /// How many rows of revisions were looked at.
    public internal(set) var completedRevisionCount: Int
    /// How many there are.
    public internal(set) var totalRevisionCount: Int

    static let start = CouchbaseLiteImportProgress(completedRevisionCount: 0, totalRevisionCount: 0)
}

typealias ImportMonitor = ProgressMonitor<CouchbaseLiteImportProgress>
