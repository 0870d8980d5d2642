internal import CofferSealing
internal import CofferRecords
internal import CofferVault
internal import Foundation

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
        _ = try copy.exportSnapshot(cacheByteCount: storage.settings.cache.byteCount / 4)
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
