public import CofferSealing
internal import CofferRecords
internal import CofferVault

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
    /// It calls `progress` at most ten times a second and once at the end, on the actor that `progress` is isolated to.
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

/// The result of a conversion to another storage engine. It holds no key and no content.
public struct ConversionResult: Sendable, Codable {
    /// The engine before.
    public let oldStorageType: StorageType
    /// The engine now.
    public let newStorageType: StorageType
    /// The store's generation before.
    public let oldGeneration: Int
    /// The store's generation now, one more.
    public let newGeneration: Int
    /// How many documents there are, not counting deleted ones.
    public let documentCount: Int
    /// How many contents of attachments and blobs were re-encrypted; each counts once, however many revisions use it.
    public let attachmentCount: Int
    /// The bytes of these contents.
    public let attachmentByteCount: Int
    /// The length of the new database file in bytes.
    public let databaseByteCount: Int
    /// How long it took.
    public let duration: Duration
    /// Whether everything of the old generation is gone from the store's directory by now: see
    /// ``KeyChangeResult/oldGenerationIsGone``.
    public let oldGenerationIsGone: Bool
    /// What was still in the store's directory beside the new generation: see ``KeyChangeResult/oldGenerations``.
    public let oldGenerations: [OldGeneration]
}

/// One conversion to another storage engine, by whoever holds the right to change the store as a whole: a
/// ``GenerationChange`` under the same master key, so that every key goes on opening the store.
struct Conversion {
    private let storage: Storage
    private let type: StorageType
    private let monitor: CopyMonitor
    private let start = ContinuousClock.now

    init(_ storage: Storage, to type: StorageType, _ monitor: CopyMonitor) {
        self.storage = storage
        self.type = type
        self.monitor = monitor
    }

    func run() throws(CofferError) -> ConversionResult {
        do throws(CofferError) {
            let result = try converted()
            CofferLog.write(
                .notice, .storage, storage.subject, "converted to another storage engine",
                [
                    "engine": type.rawValue, "generation": String(result.newGeneration),
                    "documents": String(result.documentCount), "contents": String(result.attachmentCount),
                    "milliseconds": result.duration.inMilliseconds,
                ])
            return result
        } catch {
            if error.code != .cancelled {
                CofferLog.write(
                    error.code == .reopenRequired ? .error : .warning, .storage, storage.subject, "not converted",
                    LogMessage.details(of: error))
            }
            throw error.about(storage.subject)
        }
    }

    private func converted() throws(CofferError) -> ConversionResult {
        guard !storage.hub.calls.isInCall else {
            throw CofferError(.invalidArgument, of: storage.subject, "a listener can't convert the database")
        }
        let old = storage.manifest
        let new = try old.nextGeneration(convertedTo: type.encryptedProfile)
        let made = try GenerationChange(storage, to: new, nil, afterwards: new, monitor).run()
        return ConversionResult(
            oldStorageType: StorageType(of: old.manifest), newStorageType: type,
            oldGeneration: Int(clamping: old.manifest.generation),
            newGeneration: Int(clamping: new.manifest.generation), documentCount: made.documentCount,
            attachmentCount: made.contents.count, attachmentByteCount: made.contents.byteCount,
            databaseByteCount: made.databaseByteCount, duration: .now - start,
            oldGenerationIsGone: made.oldGenerationIsGone, oldGenerations: made.oldGenerations)
    }
}

extension Storage {
    /// - Returns: nil where the engine is that one already.
    func convert(to type: StorageType, _ monitor: CopyMonitor) throws(CofferError) -> ConversionResult? {
        guard try needsConversion(to: type) else { return nil }
        return try maintain { () throws(CofferError) in try runConversion(to: type, monitor) }
    }

    /// For whoever opens it, and only as long as anybody waits for that.
    func convert(to type: StorageType, while isWanted: @escaping @Sendable () -> Bool) throws(CofferError) {
        _ = try convert(to: type, CopyMonitor(while: isWanted))
    }

    /// For whoever holds the right to change the store as a whole.
    func runConversion(to type: StorageType, _ monitor: CopyMonitor) throws(CofferError) -> ConversionResult? {
        guard try needsConversion(to: type) else { return nil }
        return try healingIndexes { () throws(CofferError) in try Conversion(self, to: type, monitor).run() }
    }

    /// - Throws: `storageTypeUnavailable` (406).
    func needsConversion(to type: StorageType) throws(CofferError) -> Bool {
        let manifest = manifest.manifest
        do throws(CofferError) {
            try type.check(isEncrypted: manifest.isEncrypted)
        } catch {
            throw error.about(subject)
        }
        return StorageType(of: manifest) != type
    }
}
