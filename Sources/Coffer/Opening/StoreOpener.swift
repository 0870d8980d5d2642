internal import CofferModel
internal import CofferSealing
internal import CofferSQLite
internal import CofferVault

/// Opens or creates one store, in the order that lets nothing be written before the key is proven.
struct StoreOpener {
    let path: String
    let subject: String
    let options: DatabaseOptions
    let settings: StorageSettings
    /// Whether anybody waits any more, while another process has the store open.
    let goesOn: @Sendable () -> Bool

    /// Opens the store at `path`.
    ///
    /// The order: the lock, the manifest, the key, the binding row, and last, if a crash left something behind, recovery.
    /// Until the binding row is found nothing of the store changes: where there is a log, a connection that can only read
    /// looks for it, before the writer is opened.
    func open() throws(CofferError) -> Storage {
        let start = ContinuousClock.now
        do throws(CofferError) {
            let storage = try opened()
            CofferLog.write(
                .debug, .storage, subject, options.readOnly ? "opened for reading" : "opened",
                ["milliseconds": (.now - start).inMilliseconds])
            return storage
        } catch {
            // There may have been nothing to open, which its caller knows what to do about.
            if error.code != .databaseNotFound { logRefusal(error) }
            throw error
        }
    }

    private func opened() throws(CofferError) -> Storage {
        let store = try LockedStore.open(
            path: path, access: options.readOnly ? .readOnly : .readWrite, timeout: options.lockTimeout,
            otherOwners: settings.otherOwners, fileSystem: settings.fileSystem, while: goesOn)
        do throws(CofferError) {
            let manifest = try store.readManifest().unlock(with: options.encryptionKey)
            return try open(store, manifest)
        } catch {
            store.close()
            throw error.about(subject)
        }
    }

    private func logRefusal(_ error: CofferError) {
        let details = LogMessage.details(of: error)
        switch error.code {
        case .wrongKey, .keyRequired, .notEncrypted:
            CofferLog.write(.notice, .keys, subject, "not opened by the key that was given", details)
        case .damaged: CofferLog.write(.error, .storage, subject, "not opened", details)
        default: CofferLog.write(.warning, .storage, subject, "not opened", details)
        }
    }

    /// Creates the store, whole or not at all.
    func create() throws(CofferError) -> Storage {
        if options.encryptionKey != nil { try Library.load().requireEncryption() }
        let (store, manifest): (LockedStore, UnlockedManifest)
        do throws(CofferError) {
            (store, manifest) = try LockedStore.create(
                path: path, key: options.encryptionKey, passwordCost: settings.passwordCost,
                attachmentNames: options.keyedNames ? .keyed : .sha1, otherOwners: settings.otherOwners,
                fileSystem: settings.fileSystem
            ) { (new) throws(CofferError) in
                try Schema.build(at: new.databasePath, subject: subject, key: new.databaseKey, new.manifest)
            }
        } catch {
            throw error.about(subject)
        }
        do throws(CofferError) {
            let storage = try open(store, manifest)
            CofferLog.write(
                .info, .storage, subject, "created", ["encrypted": manifest.manifest.isEncrypted ? "yes" : "no"])
            return storage
        } catch {
            store.close()
            throw error.about(subject)
        }
    }

    private func open(_ store: LockedStore, _ manifest: UnlockedManifest) throws(CofferError) -> Storage {
        let files = try store.generation(of: manifest)
        let database = DatabaseFile(path: files.databasePath, subject: subject, key: try manifest.key(for: .database))
        if options.readOnly {
            try check(database.inspect(), manifest)
            return try readOnly(store, manifest, database)
        }
        if database.canBeInspectedByWriter {
            let tables = DocumentTables(try connectWriter(database))
            let inspection = try database.inspect(through: tables)
            try check(inspection, manifest)
            return try writable(store, manifest, database, tables, inspection)
        }
        let inspection = try database.inspect()
        try check(inspection, manifest)
        try database.checkWritable()
        return try writable(store, manifest, database, DocumentTables(connectWriter(database)), inspection)
    }

    private func check(_ inspection: DatabaseFile.Inspection, _ manifest: UnlockedManifest) throws(CofferError) {
        try inspection.binding.check(against: manifest.manifest, subject: subject)
    }

    private func connectWriter(_ database: DatabaseFile) throws(CofferError) -> Connection {
        let connection = try database.connect(.readWrite, cacheByteCount: settings.cache.writerByteCount)
        // Recovery, if any, is durable step by step, whatever is asked for afterwards.
        try connection.execute("PRAGMA synchronous = FULL")
        return connection
    }

    private func writable(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ database: DatabaseFile,
        _ tables: consuming sending DocumentTables, _ inspection: DatabaseFile.Inspection
    ) throws(CofferError) -> Storage {
        var manifest = manifest
        if try store.isStale(manifest, bindingSequence: inspection.binding.sequence) {
            manifest = try recover(store, manifest, tables)
        }
        if !inspection.labeledKeys.isSubset(of: manifest.manifest.slots.map(\.id)) {
            try KeyLabels.removeOrphans(of: manifest.manifest, in: tables.connection)
        }
        if try DatabaseIdentity.read(from: tables.connection) == nil {
            try DatabaseIdentity.renew(in: tables.connection)
        }
        let needRemaking = (try? tables.indexes.needRemaking()) == true
        let clock = CommitClock()
        let generation = try OpenGeneration(store, manifest, database, .readOnly, clock, settings)
        let identity = store.identity
        // Whatever is asked of the connection from here on is asked through the lock: others may have the writer by then.
        let writer = try generation.writer(
            tables, inspection.counts, settings)
        let storage = Storage(
            subject: subject, store: store, manifest: manifest, generation: generation, databaseFile: database,
            writer: writer, clock: clock, settings: settings, didClose: { Registry.shared.remove(identity) })
        // Where that fails there are no indexes until somebody asks for one and learns why.
        if needRemaking { try? storage.remakeIndexTables() }
        storage.startHousekeeping(nextExpiration: inspection.nextExpiration)
        return storage
    }

    private func recover(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ tables: borrowing DocumentTables
    ) throws(CofferError) -> UnlockedManifest {
        CofferLog.write(.notice, .storage, subject, "recovered, since a change of it was cut short")
        let names = try tables.attachments.names(by: AttachmentNaming(manifest))
        // A file is removed for want of a row, so no row may be overlooked.
        try tables.confirmReads()
        return try store.recover(
            manifest, attachmentHasRow: { names.contains($0) },
            updatingBindingRow: { (sequence) throws(CofferError) in
                try Binding.update(sequence: sequence, in: tables.connection)
            })
    }

    private func readOnly(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ database: DatabaseFile
    ) throws(CofferError) -> Storage {
        let identity = store.identity
        let readsLog = database.logByteCount > 0
        // Before somebody else can have one in its place, who writes.
        if readsLog && !database.hasLogIndex { store.whenClosed { database.removeLogIndex() } }
        let clock = CommitClock()
        settings.cache.areReadersAlone = true
        return Storage(
            subject: subject, store: store, manifest: manifest,
            generation: try OpenGeneration(
                store, manifest, database, readsLog ? .readOnly : .immutable, clock, settings),
            databaseFile: database, writer: nil, clock: clock, settings: settings,
            didClose: { Registry.shared.remove(identity) })
    }
}
