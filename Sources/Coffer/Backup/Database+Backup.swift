public import CofferSealing
internal import CofferVault
public import Foundation

/// The contents of a backup, as counts.
public struct BackupResult: Sendable, Equatable, Codable {
    /// How many documents there are, not counting deleted ones.
    public let documentCount: Int
    /// How many contents of attachments and blobs; each counts once, however many revisions use it.
    public let attachmentCount: Int
    /// The bytes of these contents.
    public let attachmentByteCount: Int
    /// How many contents its documents have that are neither in the database nor in the copy, since a pull left them out.
    public let missingContentCount: Int
    /// The length of the database file in bytes.
    public let databaseByteCount: Int
}

extension Database {
    /// Makes a copy of the database under a key of its own: a complete store of its own, attachments included.
    ///
    /// The copy is of one moment, and as small as it can be: without what a compaction would drop. It has a store UUID and
    /// a master key of its own, so that nothing of the one opens in the other, and no ``uuid`` until it is opened for
    /// writing. It appears under its name in one step, whole and durable. Others read and write meanwhile. This is what an
    /// app is bundled with: see `replaceDatabase(named:withDatabaseAt:encryptionKey:)`.
    ///
    /// - Parameters:
    ///   - url: where the copy should be; its directory must exist. A manager finds it if its name ends in `.coffer`.
    ///   - encryptionKey: the key that opens the copy. It has no default: nil makes a copy that is **not encrypted**.
    /// - Throws: `invalidKey` (400) for an empty password; `invalidArgument` (400) inside a transaction and for what is no
    ///   file URL; `readOnly` (403); `notOwner` (403) for root in another user's directory, see
    ///   ``Manager/unsafelyTrustsStoreOwners``; `notAStore` (404) when something else is at `url`; `databaseExists` (412);
    ///   `damaged` (500), naming it, for a document or attachment that is not what was written; `ioFailed`, `closed` (500);
    ///   `busy` (503); `noSpace` (507). Nothing is left at `url` then.
    @discardableResult
    public func backup(to url: URL, encryptionKey: SymmetricKey?) throws(CofferError) -> BackupResult {
        let backup = try Backup(storage, to: url, encryptionKey, CopyMonitor())
        return try storage.maintain { () throws(CofferError) in try storage.healingIndexes(backup.run) }
    }

    /// Makes a copy of the database under a key of its own: see the form without `async`.
    ///
    /// It calls `progress` at most ten times a second, on the actor that `progress` is isolated to.
    ///
    /// - Throws: also `cancelled` (499) when the task is cancelled before the copy has its name.
    @discardableResult
    public func backup(
        to url: URL, encryptionKey: SymmetricKey?,
        progress: (@isolated(any) @Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> BackupResult {
        try await storage.maintainInBackground(from: .start, telling: progress) {
            [storage] (monitor) throws(CofferError) in
            try storage.healingIndexes(Backup(storage, to: url, encryptionKey, monitor).run)
        }
    }
}
