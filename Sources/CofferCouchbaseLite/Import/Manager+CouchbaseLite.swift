public import Coffer
internal import CofferSealing
internal import CofferVault
public import Foundation

extension Manager {
    // MARK: Stores of Couchbase Lite 1.x

    /// Makes a database of a store of Couchbase Lite 1.x.
    ///
    /// What comes across: documents with their revision trees, ids and conflicts, deletions, the order of changes, bodies of
    /// earlier revisions that are there, attachments, local documents, expirations and the depth of trees. Views and checkpoints
    /// of replications don't. What can't be imported is reported, one by one, and keeps nothing else from being imported.
    ///
    /// The source is only read, and has the same bytes afterwards; it must not be open anywhere. If it has a log, the database
    /// and its log are copied for the time of the import into a folder that only this user can enter, beside the new database. The
    /// new database appears under its name in one step, whole and durable. Memory is needed in proportion to the number of documents and
    /// of replaced revisions, some ten bytes each, and not to what they hold.
    ///
    /// - Parameters:
    ///   - url: a `.cblite2` folder, or a `.cblite` file beside its folder of attachments.
    ///   - name: of the new database: see `openDatabase(named:options:)`.
    ///   - key: the source's key: a password, from which each platform's Couchbase Lite makes another key, or 32 bytes. Default:
    ///     nil, it is not encrypted.
    ///   - encryptionKey: the new database's key. It has no default: nil makes one that is **not encrypted**.
    ///   - options: see there.
    /// - Returns: what came across, and what did not.
    /// - Throws: `invalidDatabaseName`, `invalidKey` and, for a symbolic link, `invalidArgument` (400); `wrongKey`, which may
    ///   also be a damaged first page, `keyRequired` and `notEncrypted` (401); `databaseNotFound` and `notAStore` (404) of the
    ///   source; `databaseExists` (412); `damaged` (500) where the source's database can't be read to its end;
    ///   `unsupportedFormat` (501) for ForestDB, Couchbase Lite 2 and later, and schemas that nobody knows; `busy` (503) where
    ///   somebody has the source open, or changes it; `noSpace` (507). Nothing is left then.
    @discardableResult
    public func importCouchbaseLite(
        at url: URL, named name: String, key: SymmetricKey? = nil, encryptionKey: SymmetricKey?,
        options: CouchbaseLiteImportOptions = CouchbaseLiteImportOptions()
    ) throws(CofferError) -> CouchbaseLiteImportReport {
        try importStore(url, name, key, encryptionKey, options, ImportMonitor(from: .start))
    }

    /// Makes a database of a store of Couchbase Lite 1.x: see the form without `async`.
    ///
    /// It calls `progress` at most ten times a second, on the actor that `progress` is isolated to.
    ///
    /// - Throws: also `cancelled` (499) when the task is cancelled before the database has its name.
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

    /// Reads a store of Couchbase Lite 1.x as an import does, attachments included, and makes nothing of it.
    ///
    /// - Parameters:
    ///   - url: see `importCouchbaseLite(at:named:key:encryptionKey:options:)`, which also lists the errors.
    ///   - key: the source's key; nil where it is not encrypted.
    ///   - options: see there.
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
            defer { source.database.close() }
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
            defer { source.database.close() }
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
                throw CofferError(.invalidArgument, "a store is kept in files, and the URL names none")
            }
            return path(percentEncoded: false)
        }
    }
}
