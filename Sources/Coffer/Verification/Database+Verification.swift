public import CofferSealing
internal import CofferRecords
internal import CofferVault

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
    /// It calls `progress` at most ten times a second, on the actor that `progress` is isolated to.
    ///
    /// - Throws: also `cancelled` (499) when the task is cancelled.
    public func verify(
        _ level: VerificationLevel = .everything,
        progress: (@isolated(any) @Sendable (VerificationProgress) -> Void)? = nil
    ) async throws -> Verification {
        let check = OtherUser.check
        return try await VerificationMonitor.run(from: .start, telling: progress) { [self] monitor in
            try await storage.maintenanceLine.run { [self] () throws(CofferError) in
                if let check { try check() }
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
