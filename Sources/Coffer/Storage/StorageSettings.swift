internal import CofferSealing
internal import CofferSQLite
internal import CofferVault

/// How a store was asked to be opened, as far as it matters for as long as it is open.
struct StorageSettings: Sendable {
    var durability: Durability
    /// How long a call waits for its turn to write.
    var busyTimeout: Duration
    /// What the page caches of the writer and all readers may hold together.
    private(set) var cacheByteCount: Int
    /// The writer's part of it: a quarter. Inserting at random places among 100,000 and 400,000 documents took the same time
    /// with an eighth and with a half, while all that the readers had more made reading faster.
    var writerCacheByteCount: Int { cacheByteCount / 4 }
    /// When the store is compacted by itself; nil for never.
    var compaction: CompactionPolicy?
    var passwordCost: PasswordCost
    var fileSystem: any FileSystem
    var attachmentBatchCount: Int
    var adjustDigest: @Sendable (ContentDigest) -> ContentDigest

    init(
        _ options: DatabaseOptions, passwordCost: PasswordCost, fileSystem: any FileSystem, attachmentBatchCount: Int,
        adjustDigest: @escaping @Sendable (ContentDigest) -> ContentDigest
    ) {
        durability = options.durability
        busyTimeout = options.busyTimeout
        cacheByteCount = max(1 << 20, options.cacheByteCount)
        compaction = options.compactsInBackground ? options.compactionPolicy : nil
        self.passwordCost = passwordCost
        self.fileSystem = fileSystem
        self.attachmentBatchCount = attachmentBatchCount
        self.adjustDigest = adjustDigest
    }
}

extension OpenGeneration {
    /// The generation of `manifest`, for reading beside a writer.
    convenience init(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ database: DatabaseFile, beside clock: CommitClock,
        _ settings: StorageSettings
    ) throws(CofferError) {
        try self.init(
            store, manifest, database, .readOnly,
            cacheByteCount: settings.cacheByteCount - settings.writerCacheByteCount, clock, settings)
    }

    convenience init(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ database: DatabaseFile, _ access: Connection.Access,
        cacheByteCount: Int, _ clock: CommitClock, _ settings: StorageSettings
    ) throws(CofferError) {
        self.init(
            attachments: try AttachmentStore(
                store, manifest, batchCount: settings.attachmentBatchCount, adjustDigest: settings.adjustDigest),
            readers: ReaderPool(subject: database.subject, clock: clock, cacheByteCount: cacheByteCount) {
                (share) throws(CofferError) in try database.connect(access, cacheByteCount: share)
            })
    }

    /// The one that writes.
    func writer(_ connection: Connection, lastSequence: Int64, _ settings: StorageSettings) throws(CofferError)
        -> Writer
    {
        if settings.durability == .relaxed { try connection.execute("PRAGMA synchronous = NORMAL") }
        return Writer(connection, lastSequence: lastSequence, attachments: attachments)
    }
}
