public import CofferSealing
internal import CofferRecords
internal import CofferVault
internal import CofferModel

extension Database {
    /// Looks at the whole database, and says what of it is not what was written. Nothing is written, and damage is a result
    /// and no error.
    ///
    /// Every page's code is checked, also of those that no read has come across; SQLCipher 3.4.1 has no such check. Others
    /// read and write meanwhile. A change of keys, a compaction and a backup wait. A page that looks damaged is looked at
    /// again while nobody writes; documents and attachments are read in snapshots.
    ///
    /// A database that can't be opened for damage is verified by ``Manager/verifyDatabase(named:encryptionKey:level:)``.
    ///
    /// - Parameter level: how much is looked at. ``VerificationLevel/everything`` reads every byte of the store.
    /// - Throws: `invalidArgument` (400) inside a transaction; `closed` and `reopenRequired` (500); `busy` (503).
    public func verify(_ level: VerificationLevel = .everything) throws(CofferError) -> Verification {
        try verify(level, VerificationMonitor(from: .start))
    }

    func verify(_ level: VerificationLevel, _ monitor: VerificationMonitor) throws(CofferError) -> Verification {
        try storage.inspect { () throws(CofferError) in
            try Verifier(
                store: storage.store, manifest: storage.manifest, attachments: storage.attachments,
                subject: storage.subject, fileSystem: storage.settings.fileSystem, monitor: monitor,
                database: storage.databaseFile,
                openDatabaseFile: { [storage] (generation) throws(CofferError) in
                    try storage.databaseFile(of: generation)
                },
                alone: storage.aloneOrReadOnly
            ).run(level)
        }
    }

    /// Looks at the whole database: see the form without `async`.
    ///
    /// It calls `progress` at most ten times a second and once at the end, on the actor that `progress` is isolated to.
    ///
    /// - Throws: also `cancelled` (499) when the task is cancelled.
    public func verify(
        _ level: VerificationLevel = .everything,
        progress: (@isolated(any) @Sendable (VerificationProgress) -> Void)? = nil
    ) async throws -> Verification {
        let user = OtherUser.current
        return try await VerificationMonitor.run(from: .start, telling: progress) { [self] monitor in
            try await storage.maintenanceLine.run { [self] () throws(CofferError) in
                try user?.check()
                return try verify(level, monitor)
            }
        }
    }
}

extension Storage {
    /// Runs `body` while nobody writes, with the number of frames that the log is known to have; where nobody can write, at
    /// once.
    fileprivate func aloneOrReadOnly(_ body: (Int) throws(CofferError) -> Void) throws(CofferError) {
        if isReadOnly { return try body(0) }
        try alone { (writer) throws(CofferError) in try body(writer.records.logFrameCount) }
    }
}

extension Manager {
    /// Looks at a whole database that need not be open, and says what of it is not what was written. It gets as far as it can:
    /// also one that can't be opened for damage is looked at page by page, if its MANIFEST is whole.
    ///
    /// Nothing is written, and nothing recovered. Other processes may read the database meanwhile. One that is open in
    /// this process is verified as it is, see ``Database/verify(_:)``.
    ///
    /// - Parameters:
    ///   - name: see `openDatabase(named:options:)`.
    ///   - encryptionKey: a key that opens it; nil if it is not encrypted.
    ///   - level: how much is looked at. ``VerificationLevel/everything`` reads every byte of the store.
    /// - Throws: `invalidDatabaseName` (400); `wrongKey`, `keyRequired`, `notEncrypted` (401); `notOwner` (403);
    ///   `databaseNotFound` and `notAStore` (404); `encryptionUnavailable` and `unsupportedFormat` (501); `busy` (503) while another process has it open
    ///   for writing. A MANIFEST that is damaged is a finding: nothing else of the store can be looked at then.
    public func verifyDatabase(
        named name: String, encryptionKey: SymmetricKey? = nil, level: VerificationLevel = .everything
    ) throws(CofferError) -> Verification {
        try verify(DatabaseName(name), encryptionKey, level, VerificationMonitor(from: .start))
    }

    /// Looks at a whole database that need not be open: see the form without `async`.
    ///
    /// It calls `progress` at most ten times a second and once at the end, on the actor that `progress` is isolated to.
    ///
    /// - Throws: also `cancelled` (499) when the task is cancelled.
    public func verifyDatabase(
        named name: String, encryptionKey: SymmetricKey? = nil, level: VerificationLevel = .everything,
        progress: (@isolated(any) @Sendable (VerificationProgress) -> Void)? = nil
    ) async throws -> Verification {
        try await VerificationMonitor.run(from: .start, telling: progress) { [self] monitor in
            try await inBackground { [self] in
                try verify(DatabaseName(name), encryptionKey, level, monitor)
            }
        }
    }

    private func verify(
        _ name: DatabaseName, _ key: SymmetricKey?, _ level: VerificationLevel, _ monitor: VerificationMonitor
    ) throws(CofferError) -> Verification {
        try key?.checkUsable()
        let path = storePath(name)
        if let identity = try? StoreIdentity(path: path), let database = openDatabase(identity, name) {
            try database.checkKey(key)
            return try database.verify(level, monitor)
        }
        do throws(CofferError) {
            let store = try LockedStore.open(
                path: path, access: .readOnly, otherOwners: otherOwners, fileSystem: fileSystem)
            defer { store.close() }
            return try verify(store, key, level, monitor, subject: Self.subject(name))
        } catch {
            throw error.about(Self.subject(name))
        }
    }

    private func verify(
        _ store: LockedStore, _ key: SymmetricKey?, _ level: VerificationLevel, _ monitor: VerificationMonitor,
        subject: String
    ) throws(CofferError) -> Verification {
        let manifest: UnlockedManifest
        do throws(CofferError) {
            manifest = try store.readManifest().unlock(with: key)
        } catch  where error.code == .damaged {
            var result = Verification(level)
            result.findings = [
                VerificationFinding(.manifest, Manifest.fileName, error.detail ?? "it is not what was written")
            ]
            return result
        }
        let index = (try? store.generation(of: manifest)).map {
            DatabaseFile(path: $0.databasePath, subject: subject)
        }
        let makesLogIndex = index?.makesLogIndex == true
        defer { if makesLogIndex { index?.removeLogIndex() } }
        return try Verifier(
            store: store, manifest: manifest, attachments: nil, subject: subject, fileSystem: fileSystem,
            monitor: monitor, database: nil,
            openDatabaseFile: { [fileSystem] (generation) throws(CofferError) in
                try fileSystem.openFile(Generation.databaseName, in: generation.directory)
            },
            alone: { (body) throws(CofferError) in try body(0) }
        ).run(level)
    }
}
