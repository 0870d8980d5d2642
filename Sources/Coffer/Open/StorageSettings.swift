internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// How a store was asked to be opened, as far as it matters for as long as it is open.
struct StorageSettings: Sendable {
    var durability: Durability
    /// How long a call waits for its turn to write.
    var busyTimeout: Duration
    /// Of the writer and all readers.
    let cache: CacheBudget
    /// When the store is compacted automatically; nil for never.
    var compaction: CompactionPolicy?
    /// Frames in the log from which a commit is followed by a checkpoint.
    var checkpointFrameCount: Int
    /// Readers' connections that are kept when nobody reads.
    var idleReaderLimit: Int
    var passwordCost: PasswordCost
    let otherOwners: OtherOwners
    var fileSystem: any FileSystem
    var attachmentBatchCount: Int
    var adjustDigest: @Sendable (ContentDigest) -> ContentDigest

    init(
        _ options: DatabaseOptions, passwordCost: PasswordCost, otherOwners: OtherOwners, fileSystem: any FileSystem,
        attachmentBatchCount: Int, adjustDigest: @escaping @Sendable (ContentDigest) -> ContentDigest
    ) {
        durability = options.durability
        busyTimeout = options.busyTimeout
        cache = CacheBudget(byteCount: options.cacheByteCount)
        compaction = options.compactsInBackground ? options.compactionPolicy : nil
        checkpointFrameCount = options.checkpointFrameCount
        idleReaderLimit = options.idleReaderLimit
        self.passwordCost = passwordCost
        self.otherOwners = otherOwners
        self.fileSystem = fileSystem
        self.attachmentBatchCount = attachmentBatchCount
        self.adjustDigest = adjustDigest
    }
}

extension OpenGeneration {
    /// The generation of `manifest`, read in this way.
    convenience init(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ database: DatabaseFile, _ reading: DatabaseFile.Reading,
        _ clock: CommitClock, _ settings: StorageSettings
    ) throws(CofferError) {
        self.init(
            attachments: try AttachmentStore(
                store, manifest, batchCount: settings.attachmentBatchCount, adjustDigest: settings.adjustDigest),
            readers: ReaderPool(
                of: database, reading, clock: clock, cache: settings.cache, idleLimit: settings.idleReaderLimit))
    }

    /// The one that writes.
    func writer(
        _ records: consuming sending Change, _ counts: WriterCounts, _ settings: StorageSettings
    ) throws(CofferError) -> sending Writer {
        if settings.durability == .relaxed { try records.synchronizeCommits(false) }
        return try Writer(records, counts, attachments: attachments)
    }
}
