public import CofferSealing

extension Database {
    /// Converts the database to another storage engine, as one transaction: all of it, or nothing.
    ///
    /// ```swift
    /// try database.convert(to: .sealed)
    /// ```
    ///
    /// Every key goes on opening the store, under its id and label; so do this database, its drafts, readers, streams and
    /// sequences. Reads never wait; writes wait while the database file is copied and checked. It takes what a change of the
    /// encryption key takes: as much free space as the store, since attachments are encrypted again too, and seconds for a
    /// gigabyte. **Killed at any instant, the store is complete, with one engine or the other**; the next open removes what
    /// was left.
    ///
    /// It is not a change of the encryption key: the store's own key stays, and whoever had it has it still. Opening with
    /// ``DatabaseOptions/storageType`` does the same.
    ///
    /// - Parameter type: the engine. ``StorageType/sealed`` needs an encrypted database.
    /// - Returns: what was done; nil if the database has that engine already.
    /// - Throws: `invalidArgument` (400) inside a transaction or a listener; `readOnly` (403); `storageTypeUnavailable` (406)
    ///   for a name that no engine has, and for sealed pages without encryption; `noSpace` (507) before anything is
    ///   written or in the middle; `damaged` (500), naming it, for a document or attachment that is not what was written;
    ///   `ioFailed`, `closed` (500); `encryptionUnavailable` (501) for SQLite where there is no SQLCipher; `busy` (503).
    ///   After all of these the store is what it was. `reopenRequired` (500) when the last step failed: then close the
    ///   database, and open it again, with the engine that it has then.
    @discardableResult
    public func convert(to type: StorageType) throws(CofferError) -> ConversionResult? {
        try storage.convert(to: type, CopyMonitor())
    }

    /// Converts the database to another storage engine: see the form without `async`.
    ///
    /// It calls `progress` at most ten times a second, on the actor that `progress` is isolated to.
    ///
    /// - Throws: also `cancelled` (499) when the task is cancelled before the commit; the store is what it was then.
    @discardableResult
    public func convert(
        to type: StorageType, progress: (@isolated(any) @Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> ConversionResult? {
        guard try storage.needsConversion(to: type) else { return nil }
        return try await storage.maintainInBackground(from: .start, telling: progress) {
            [storage] (monitor) throws(CofferError) in
            try storage.runConversion(to: type, monitor)
        }
    }
}
