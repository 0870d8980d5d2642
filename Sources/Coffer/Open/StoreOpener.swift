internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// Opens or creates one store, in the order that lets nothing be written before the key is proven.
struct StoreOpener {
    let path: String
    let subject: String
    let options: DatabaseOptions
    /// The engine of a store that is created.
    let newStorageType: @Sendable () throws(CofferError) -> StorageType
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
            let storage = try converted(opened())
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
            try checkStorageType(manifest.manifest)
            return try open(store, manifest)
        } catch {
            store.close()
            throw error.about(subject)
        }
    }

    /// - Throws: `storageTypeUnavailable` (406) when the store can't have the engine that was asked for; `readOnly` (403) when
    ///   it would have to be converted.
    private func checkStorageType(_ manifest: Manifest) throws(CofferError) {
        guard let type = options.storageType, type != StorageType(of: manifest) else { return }
        try type.check(isEncrypted: manifest.isEncrypted)
        guard !options.readOnly else {
            throw CofferError(.readOnly, of: subject, "it has another storage engine, and would have to be converted")
        }
    }

    /// The storage, with the engine that was asked for.
    private func converted(_ storage: Storage) throws(CofferError) -> Storage {
        guard let type = options.storageType else { return storage }
        do throws(CofferError) {
            try storage.convert(to: type, while: goesOn)
            return storage
        } catch {
            try? storage.close()
            throw error
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
        let type = try newStorageType()
        let (store, manifest): (LockedStore, UnlockedManifest)
        do throws(CofferError) {
            if options.encryptionKey != nil { try DatabaseLibrary.require(for: type.encryptedProfile) }
            (store, manifest) = try LockedStore.create(
                path: path, key: options.encryptionKey, passwordCost: settings.passwordCost,
                encryptedProfile: type.encryptedProfile, attachmentNames: options.keyedNames ? .keyed : .sha1,
                otherOwners: settings.otherOwners,
                fileSystem: settings.fileSystem
            ) { (new) throws(CofferError) in
                try Schema.build(in: databaseFile(at: new.databasePath, new.unlocked), new.manifest)
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
        let database = try databaseFile(at: files.databasePath, manifest)
        if options.readOnly {
            try check(database.inspect(), manifest)
            return try readOnly(store, manifest, database)
        }
        if database.canBeInspectedByWriter {
            let records = try database.openChange(settings.cache)
            let inspection = try database.inspect(through: records.snapshot)
            try check(inspection, manifest)
            return try writable(store, manifest, database, records, inspection)
        }
        let inspection = try database.inspect()
        try check(inspection, manifest)
        try database.checkWritable()
        let records = try database.openChange(settings.cache)
        return try writable(store, manifest, database, records, inspection)
    }

    private func databaseFile(at path: String, _ manifest: UnlockedManifest) throws(CofferError) -> DatabaseFile {
        try DatabaseFile(
            path: path, subject: subject, protection: DatabaseProtection(of: manifest),
            sharedByteCount: settings.cache.sharedByteCount)
    }

    private func check(_ inspection: DatabaseFile.Inspection, _ manifest: UnlockedManifest) throws(CofferError) {
        try inspection.binding.check(against: manifest.manifest, subject: subject)
    }

    private func writable(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ database: DatabaseFile,
        _ records: consuming sending Change, _ inspection: DatabaseFile.Inspection
    ) throws(CofferError) -> Storage {
        var manifest = manifest
        // Recovery, if any, is durable step by step, whatever is asked for afterwards.
        if try store.isStale(manifest, bindingSequence: inspection.binding.sequence) {
            manifest = try recover(store, manifest, records)
        }
        if !inspection.labeledKeys.isSubset(of: manifest.manifest.slots.map(\.id)) {
            try records.removeOrphanLabels(of: manifest.manifest)
        }
        if try records.snapshot.identity() == nil { try records.renewIdentity() }
        let needRemaking = (try? records.snapshot.indexes.needRemaking()) == true
        let clock = CommitClock()
        let generation = try OpenGeneration(store, manifest, database, .throughLog, clock, settings)
        let identity = store.identity
        // Whatever is asked of the connection from here on is asked through the lock: others may have the writer by then.
        let writer = try generation.writer(records, inspection.counts, settings)
        let storage = Storage(
            subject: subject, store: store, manifest: manifest, generation: generation, databaseFile: database,
            writer: writer, clock: clock, settings: settings, didClose: { Registry.shared.remove(identity) })
        // Where that fails there are no indexes until somebody asks for one and learns why.
        if needRemaking { try? storage.remakeIndexTables() }
        storage.startBackgroundWork(nextExpiration: inspection.nextExpiration)
        return storage
    }

    private func recover(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ records: borrowing Change
    ) throws(CofferError) -> UnlockedManifest {
        CofferLog.write(.notice, .storage, subject, "recovered, since a change of it was cut short")
        let names = try records.snapshot.attachments.names(by: AttachmentNaming(manifest))
        // A file is removed for want of a row, so no row may be overlooked.
        try records.snapshot.confirmReads()
        return try store.recover(
            manifest, attachmentHasRow: { names.contains($0) },
            updatingBindingRow: { (sequence) throws(CofferError) in
                try records.bind(sequence: sequence)
            })
    }

    private func readOnly(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ database: DatabaseFile
    ) throws(CofferError) -> Storage {
        let identity = store.identity
        let readsLog = database.logByteCount > 0
        // Before somebody else can have one in its place, who writes.
        if database.makesLogIndex { store.whenClosed { database.removeLogIndex() } }
        let clock = CommitClock()
        settings.cache.areReadersAlone = true
        database.setSharedCache(byteCount: settings.cache.sharedByteCount)
        return Storage(
            subject: subject, store: store, manifest: manifest,
            generation: try OpenGeneration(
                store, manifest, database, readsLog ? .throughLog : .immutable, clock, settings),
            databaseFile: database, writer: nil, clock: clock, settings: settings,
            didClose: { Registry.shared.remove(identity) })
    }
}

extension Manager {
    /// Makes a database that is whole or absent: `fill` writes into one that nobody else sees, and that gets its name
    /// once it is closed and on the disk.
    ///
    /// - Parameters:
    ///   - name: see `openDatabase(named:options:)`.
    ///   - options: the key, and whether its attachments have keyed names. Other settings are chosen for bulk writing.
    ///   - fill: writes what the database should hold.
    /// - Throws: what `fill` and creating a database throw; `databaseExists` (412) if the name is taken, at the
    ///   beginning or at the end. Nothing is left then.
    package func makeDatabase<Value>(
        named name: String, options: DatabaseOptions, _ fill: (Database) throws -> Value
    ) throws -> Value {
        let name = try DatabaseName(name)
        let subject = Self.subject(name)
        try options.encryptionKey?.checkUsable()
        try makeDirectory()
        let hidden: HiddenStore
        do throws(CofferError) {
            hidden = try HiddenStore(beside: storePath(name), otherOwners: otherOwners, fileSystem: fileSystem)
        } catch {
            throw error.about(subject)
        }
        let database = try beginMaking(name, options, at: hidden.path)
        let value: Value
        do {
            value = try fill(database)
            try database.close()
        } catch {
            try? database.close()
            hidden.remove()
            throw error
        }
        try hidden.giveName()
        return value
    }

    private func beginMaking(
        _ name: DatabaseName, _ options: DatabaseOptions, at path: String
    ) throws(CofferError) -> Database {
        var options = options
        options.create = true
        options.readOnly = false
        options.compactsInBackground = false
        // The whole store is synced before it gets its name.
        options.durability = .relaxed
        let opener = StoreOpener(
            path: path, subject: Self.subject(name), options: options,
            newStorageType: { [self, options] () throws(CofferError) in try storageType(ofNewWith: options, name) },
            settings: StorageSettings(
                options, passwordCost: passwordCost, otherOwners: otherOwners, fileSystem: fileSystem,
                attachmentBatchCount: attachmentBatchCount, adjustDigest: adjustDigest),
            goesOn: { true })
        return Database(name: name.text, manager: self, storage: try opener.create())
    }
}
