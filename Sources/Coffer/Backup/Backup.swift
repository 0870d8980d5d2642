public import CofferSealing
internal import CofferVault
public import Foundation
internal import CofferRecords

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
    /// It calls `progress` at most ten times a second and once at the end, on the actor that `progress` is isolated to.
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

/// One backup of an open store, by whoever holds the right to change it as a whole: no content is removed meanwhile.
struct Backup {
    private let storage: Storage
    private let path: String
    private let key: SymmetricKey?
    private let monitor: CopyMonitor

    /// - Throws: `invalidArgument` and `invalidKey` (400).
    init(_ storage: Storage, to url: URL, _ key: SymmetricKey?, _ monitor: CopyMonitor) throws(CofferError) {
        guard url.isFileURL else {
            throw CofferError(.invalidArgument, "a backup is a directory, and the URL is not a file URL")
        }
        try key?.checkUsable()
        self.storage = storage
        path = url.path(percentEncoded: false)
        self.key = key
        self.monitor = monitor
    }

    func run() throws(CofferError) -> BackupResult {
        let profile = storage.manifest.manifest.profileOfEncryptedCopies
        if key != nil { try DatabaseLibrary.require(for: profile) }
        var result: BackupResult?
        let (store, _) = try LockedStore.create(
            path: path, key: key, passwordCost: storage.settings.passwordCost, encryptedProfile: profile,
            attachmentNames: key == nil ? .sha1 : storage.manifest.manifest.attachmentNames,
            otherOwners: storage.settings.otherOwners, fileSystem: storage.settings.fileSystem
        ) { (new) throws(CofferError) in
            result = try fill(new)
            try monitor.checkCancelled()
        }
        store.close()
        guard let result else { preconditionFailure("a store was made without its database") }
        return result
    }

    private func fill(_ new: NewStore) throws(CofferError) -> BackupResult {
        let source = storage.databaseFile
        let target = try DatabaseFile(
            path: new.databasePath, subject: "the backup", protection: DatabaseProtection(of: new.unlocked))
        monitor.begin(.database, byteCount: source.byteCount + source.logByteCount, itemCount: 1)
        let copy = DatabaseCopy(from: source, to: target, new.manifest, monitor.work)
        try copy.exportSnapshot(cacheByteCount: storage.settings.cache.byteCount / 4)
        try copy.makeBackup()
        let contents = try copyContents(from: copy, into: new.builder)
        let late = ContentCopying(storage, new.builder, monitor)
        let sum = try copy.finish([]) { (row) throws(CofferError) in try late.header(for: row) }
        guard sum.count == contents.count else {
            throw CofferError(.damaged, of: storage.subject, "its contents have impossible numbers")
        }
        return BackupResult(
            documentCount: try copy.verify(rowCounts: nil), attachmentCount: sum.count,
            attachmentByteCount: sum.byteCount, missingContentCount: try missingContentCount(in: copy),
            databaseByteCount: target.byteCount)
    }

    private func missingContentCount(in copy: DatabaseCopy) throws(CofferError) -> Int {
        try copy.open().attachments.awaitedContentCount()
    }

    private func copyContents(
        from copy: DatabaseCopy, into builder: GenerationBuilder
    ) throws(CofferError) -> ContentSum {
        let sum = try copy.open().attachments.contentSum()
        monitor.begin(.attachments, byteCount: sum.byteCount, itemCount: sum.count)
        let copying = ContentCopying(storage, builder, monitor) { (number, limit) throws(CofferError) in
            try copy.open().attachments.contents(after: number, limit: limit)
        }
        try copying.run()
        try builder.synchronizeContents()
        return sum
    }
}
