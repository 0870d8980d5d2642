public import Coffer
internal import CofferSealing
internal import CofferVault
public import Foundation

extension Manager {
    // MARK: Stores of Couchbase Lite 1.x

    /// Imports a store of Couchbase Lite 1.x as a new database.
    ///
    /// The import keeps documents with their revision trees, ids, conflicts and deletions, the order of changes, the
    /// bodies of earlier revisions that the source still has, attachments, local documents, expirations and the depth
    /// of revision trees. It leaves out views and replication checkpoints. Whatever else can't be imported is reported,
    /// item by item, and everything else is imported.
    ///
    /// The source is only read, and keeps its bytes. It must not be open anywhere. If it has a write-ahead log (WAL) or
    /// a rollback journal, the database file and that log are copied for the duration of the import, into a folder
    /// beside the new database that only this user can enter. The new database appears under its name in one step,
    /// whole and durable. The memory needed grows with the number of documents and of replaced revisions, by a few
    /// dozen bytes for each, and not with what they hold.
    ///
    /// - Parameters:
    ///   - url: a `.cblite2` folder, or a `.cblite` file beside its folder of attachments.
    ///   - name: the new database's name: see `openDatabase(named:options:)`.
    ///   - key: the source's key: the password, from which Couchbase Lite derived a key, or 32 bytes. Default: nil, for
    ///     a source that is not encrypted.
    ///   - encryptionKey: the new database's key. It has no default: nil makes a database that is **not encrypted**.
    ///   - options: how the key is derived, and what the new database and the report are like.
    /// - Returns: what was imported, and what was not.
    /// - Throws: `invalidDatabaseName`, `invalidKey` and, for a symbolic link, `invalidArgument` (400); `wrongKey`,
    ///   which can also mean a damaged first page, `keyRequired` and `notEncrypted` (401); `databaseNotFound` and
    ///   `notAStore` (404) for the source; `databaseExists` (412); `damaged` (500) if a page of the source's database
    ///   can't be read; `unsupportedFormat` (501) for ForestDB, for Couchbase Lite 2 and later, and for unknown
    ///   schemas; `busy` (503) if the source changes or, on Linux, is open elsewhere; `noSpace` (507). Nothing is left
    ///   then.
    @discardableResult
    public func importCouchbaseLite(
        at url: URL, named name: String, key: SymmetricKey? = nil, encryptionKey: SymmetricKey?,
        options: CouchbaseLiteImportOptions = CouchbaseLiteImportOptions()
    ) throws(CofferError) -> CouchbaseLiteImportReport {
        try importStore(url, name, key, encryptionKey, options, ImportMonitor(from: .start))
    }

    /// Imports a store of Couchbase Lite 1.x as a new database: see the form without `async`.
    ///
    /// It calls `progress` at most ten times a second and once at the end, on the actor that `progress` is isolated to.
    ///
    /// - Throws: also `cancelled` (499) if the task is cancelled before the database has its name.
    @discardableResult
    public func importCouchbaseLite(
        at url: URL, named name: String, key: SymmetricKey? = nil, encryptionKey: SymmetricKey?,
        options: CouchbaseLiteImportOptions = CouchbaseLiteImportOptions(),
        progress: (@isolated(any) @Sendable (CouchbaseLiteImportProgress) -> Void)? = nil
    ) async throws -> CouchbaseLiteImportReport {
        try await ImportMonitor.run(from: .start, telling: progress) { [self] monitor in
            try await inBackground { [self] in
                try importStore(url, name, key, encryptionKey, options, monitor)
            }
        }
    }

    /// Reads a store of Couchbase Lite 1.x as an import does, attachments included, without making a database.
    ///
    /// - Parameters:
    ///   - url: see `importCouchbaseLite(at:named:key:encryptionKey:options:)`, which also lists the errors.
    ///   - key: the source's key; nil if it is not encrypted.
    ///   - options: how the key is derived, and what the report is like.
    /// - Returns: what an import would bring across.
    public func checkCouchbaseLite(
        at url: URL, key: SymmetricKey? = nil, options: CouchbaseLiteImportOptions = CouchbaseLiteImportOptions()
    ) throws(CofferError) -> CouchbaseLiteImportReport {
        try checkStore(url, key, options, ImportMonitor(from: .start))
    }

    /// Reads a store of Couchbase Lite 1.x as an import does: see the form without `async`.
    public func checkCouchbaseLite(
        at url: URL, key: SymmetricKey? = nil, options: CouchbaseLiteImportOptions = CouchbaseLiteImportOptions(),
        progress: (@isolated(any) @Sendable (CouchbaseLiteImportProgress) -> Void)? = nil
    ) async throws -> CouchbaseLiteImportReport {
        try await ImportMonitor.run(from: .start, telling: progress) { [self] monitor in
            try await inBackground { [self] in try checkStore(url, key, options, monitor) }
        }
    }

    private func importStore(
        _ url: URL, _ name: String, _ key: SymmetricKey?, _ newKey: SymmetricKey?,
        _ options: CouchbaseLiteImportOptions, _ monitor: ImportMonitor
    ) throws(CofferError) -> CouchbaseLiteImportReport {
        var new = DatabaseOptions()
        new.encryptionKey = newKey
        new.keyedNames = options.keyedNames
        do {
            let location = try SourceLocation(path: url.filePath)
            try makeDirectory()
            let scratch = directory.appending(path: "scratch").path(percentEncoded: false)
            let source = try Source(location, key, options, scratchPath: scratch, monitor)
            defer { source.close() }
            return try makeDatabase(named: name, options: new) { database in
                try Importer(source, into: database, options, monitor).run()
            }
        } catch let error as CofferError {
            throw error
        } catch {
            throw CofferError(.ioFailed, "the import failed", cause: error)
        }
    }

    private func checkStore(
        _ url: URL, _ key: SymmetricKey?, _ options: CouchbaseLiteImportOptions, _ monitor: ImportMonitor
    ) throws(CofferError) -> CouchbaseLiteImportReport {
        do {
            let scratch = FileManager.default.temporaryDirectory.appending(path: "check").path(percentEncoded: false)
            let source = try Source(
                SourceLocation(path: url.filePath), key, options, scratchPath: scratch, monitor)
            defer { source.close() }
            return try Importer(source, into: nil, options, monitor).run()
        } catch let error as CofferError {
            throw error
        } catch {
            throw CofferError(.ioFailed, "the check failed", cause: error)
        }
    }
}

extension URL {
    fileprivate var filePath: String {
        get throws(CofferError) {
            guard isFileURL else {
                throw CofferError(.invalidArgument, "the URL doesn't name a file or folder")
            }
            return path(percentEncoded: false)
        }
    }
}

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
