internal import CofferModel
public import CofferSealing
internal import CofferRecords
internal import CofferVault
public import Foundation

extension Manager {
    /// Takes out of a damaged database all that can still be read, and makes a new one of it.
    ///
    /// The database need not open, and SQLCipher is not asked to: its pages are read one by one, whichever of them are damaged,
    /// and its log. All rows that are what was written go into the new store, with their revision ids and histories,
    /// conflicts and deletions, and so does each content of an attachment or blob that is whole. A document whose content
    /// is lost keeps what it says of it, as of one that was not fetched yet. Attachments whose documents are lost go into a
    /// document `salvaged-attachments`.
    ///
    /// The new store appears under its name in one step, whole and durable, with a store UUID, a master key and a
    /// ``Database/uuid`` of its own. The damaged one is only read. Nobody may have it open for writing, others may read it.
    /// Of a store that is not encrypted, whose pages have no codes, a change that leaves a row in form shows only where the
    /// revision's id follows from its content.
    ///
    /// - Parameters:
    ///   - name: the damaged database: see `openDatabase(named:options:)`.
    ///   - encryptionKey: a key that opens it; nil if it is not encrypted. MANIFEST must be whole: where it isn't, a
    ///     backup of the keys can be restored.
    ///   - url: where the new store should be; its directory must exist, and not be within the damaged store. A manager
    ///     finds it if its name ends in `.coffer`.
    ///   - newKey: what opens the new store. Default: nil, the same key.
    /// - Returns: what is in the new store, and what was lost: see ``Salvage/losses``.
    /// - Throws: `invalidDatabaseName`, `invalidKey` and `invalidArgument` (400); `wrongKey`, `keyRequired`, `notEncrypted`
    ///   (401); `notOwner` (403); `databaseNotFound` and `notAStore` (404), the latter also when something else is at `url`; `databaseExists` and
    ///   `databaseOpen` (412); `damaged` (500) for a MANIFEST that is damaged, for a store without the directory that it names,
    ///   and for another store's database file; `encryptionUnavailable` and `unsupportedFormat` (501); `busy` (503); `noSpace`
    ///   (507). Nothing is left at `url` then.
    @discardableResult
    public func salvageDatabase(
        named name: String, encryptionKey: SymmetricKey? = nil, to url: URL, newKey: SymmetricKey? = nil
    ) throws(CofferError) -> Salvage {
        try salvage(DatabaseName(name), encryptionKey, url, newKey, CopyMonitor())
    }

    /// Takes out of a damaged database all that can still be read: see the form without `async`.
    ///
    /// It calls `progress` at most ten times a second and once at the end, on the actor that `progress` is isolated to.
    ///
    /// - Throws: also `cancelled` (499) when the task is cancelled before the new store has its name.
    @discardableResult
    public func salvageDatabase(
        named name: String, encryptionKey: SymmetricKey? = nil, to url: URL, newKey: SymmetricKey? = nil,
        progress: (@isolated(any) @Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> Salvage {
        try await CopyMonitor.run(from: .start, telling: progress) { [self] monitor in
            try await inBackground { [self] in
                try salvage(DatabaseName(name), encryptionKey, url, newKey, monitor)
            }
        }
    }

    private func salvage(
        _ name: DatabaseName, _ key: SymmetricKey?, _ url: URL, _ newKey: SymmetricKey?, _ monitor: CopyMonitor
    ) throws(CofferError) -> Salvage {
        guard url.isFileURL else {
            throw CofferError(.invalidArgument, "databases are files, and the URL is not a file URL")
        }
        try key?.checkUsable()
        try newKey?.checkUsable()
        let target = url.path(percentEncoded: false)
        return try withClosedDatabase(name) { (path) throws(CofferError) in
            do throws(CofferError) {
                let store = try LockedStore.open(
                    path: path, access: .readOnly, otherOwners: otherOwners, fileSystem: fileSystem)
                defer { store.close() }
                return try salvage(store, store.readManifest().unlock(with: key), target, newKey, monitor)
            } catch {
                throw error.about(Self.subject(name))
            }
        }
    }

    private func salvage(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ target: String, _ newKey: SymmetricKey?,
        _ monitor: CopyMonitor
    ) throws(CofferError) -> Salvage {
        let key = newKey ?? manifest.unlockingKey
        let profile = manifest.manifest.profileOfEncryptedCopies
        if key != nil { try DatabaseLibrary.require(for: profile) }
        guard try !store.contains(target) else {
            throw CofferError(.invalidArgument, "the new store would be inside the damaged one")
        }
        var salvager = try Salvager(store, manifest, keepsKey: newKey == nil, fileSystem, monitor)
        var result: Salvage?
        let (new, _) = try LockedStore.create(
            path: target, key: key, passwordCost: passwordCost, encryptedProfile: profile,
            attachmentNames: key == nil ? .sha1 : manifest.manifest.attachmentNames, otherOwners: otherOwners,
            fileSystem: fileSystem
        ) { (new) throws(CofferError) in
            result = try salvager.fill(new)
            try monitor.checkCancelled()
        }
        new.close()
        guard let result else { preconditionFailure("a store was made without its database") }
        return result
    }
}

extension LockedStore {
    /// Whether what is at `path`, or would be, is within this store.
    fileprivate func contains(_ path: String) throws(CofferError) -> Bool {
        var folder = (path as NSString).deletingLastPathComponent
        if folder.isEmpty { folder = "." }
        var last: StoreIdentity?
        // The topmost folder is above itself. One that is missing is refused later.
        while let identity = try? StoreIdentity(ofDirectoryAt: folder), identity != last {
            if identity == self.identity { return true }
            last = identity
            folder += "/.."
        }
        return false
    }
}

/// The result of salvaging a damaged database into a new one.
public struct Salvage: Sendable {
    /// Data that the new database lacks: each page with which rows were lost, each document, revision, local document
    /// and attachment that can't be read, as far as anything still names it. Nothing when all was salvaged.
    public internal(set) var losses: [VerificationFinding] = []

    /// Damage without a loss: everything that was there is found elsewhere, or follows from other data.
    public internal(set) var harmless: [VerificationFinding] = []

    /// Documents in the new database, deleted ones not counted.
    public internal(set) var documentCount = 0
    /// Revisions in the new database, of deleted documents too.
    public internal(set) var revisionCount = 0
    /// Local documents in the new database.
    public internal(set) var localDocumentCount = 0
    /// Contents of attachments and blobs in the new database.
    public internal(set) var attachmentCount = 0
    /// The bytes of these contents.
    public internal(set) var attachmentByteCount = 0

    /// Whether nothing was lost.
    public var isComplete: Bool { losses.isEmpty }

    init() {}
}
