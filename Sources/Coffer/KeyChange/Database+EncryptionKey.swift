public import CofferSealing
internal import CofferVault
internal import CofferModel

extension Database {
    /// Re-encrypts everything under another key, as one transaction: the database and every attachment, or nothing.
    ///
    /// ```swift
    /// try database.changeEncryptionKey(to: SymmetricKey(password: "correct horse battery staple"))
    /// try database.changeEncryptionKey(to: nil)       // removes encryption
    /// ```
    ///
    /// Works from a password, 32 bytes or no encryption to any of these. All is encrypted under a fresh random key of the
    /// store's own, which the new key opens; so somebody who has the old key, and copied the store's old manifest too, can
    /// read nothing that is written now. **Killed at any instant, exactly one key opens a complete store:** the old one
    /// before the commit, the new one after it. The next open removes what was left.
    ///
    /// What was there under the old key is removed afterwards, the database first. What the system refuses to remove, an
    /// immutable file for one, doesn't fail the change: look at ``KeyChangeResult/oldGenerations``.
    ///
    /// This database, its drafts, readers, streams and sequences go on working, before and after. Reads never wait;
    /// writes wait while the database file is encrypted and checked, but not for the attachments. It needs as much free
    /// space as the store takes, and memory that does not depend on the store's size. Time goes with the size: seconds for
    /// a gigabyte.
    ///
    /// - Parameters:
    ///   - newKey: the key that opens the store from now on, or nil to remove encryption: everything is readable on the
    ///     disk then. Old copies, backups and what a drive keeps of removed files stay under the old key.
    ///   - keptKeys: other keys of the store that should still open it.
    ///   - droppingOtherKeys: whether keys that are not given may end. Default: false, which refuses the change while there
    ///     are any but the one that this database was opened with.
    ///   - keyedNames: whether attachment files are named by a keyed digest. Default: nil, as before; where encryption
    ///     begins, false.
    /// - Returns: what was done; see there.
    /// - Throws: `invalidKey` (400) for an empty password; `invalidArgument` (400) inside a transaction or a listener, for
    ///   more than eight keys, and for kept keys or keyed names without encryption; `wrongKey` and `notEncrypted` (401) for
    ///   a kept key that opens nothing; `readOnly` (403); `otherKeysExist` (409); `noSpace` (507) before anything is
    ///   written or in the middle; `damaged` (500), naming it, for a document or attachment that is not what was written;
    ///   `ioFailed` (500); `encryptionUnavailable` (501); `busy` (503). After all of these the store is what it was.
    ///   `reopenRequired` (500) when the last step failed: then close the database, and one of the two keys opens it.
    @discardableResult
    public func changeEncryptionKey(
        to newKey: SymmetricKey?, keeping keptKeys: [SymmetricKey] = [], droppingOtherKeys: Bool = false,
        keyedNames: Bool? = nil
    ) throws(CofferError) -> KeyChangeResult {
        try storage.changeEncryptionKey(
            KeyChangeRequest(
                newKey: newKey, keptKeys: keptKeys, dropsOtherKeys: droppingOtherKeys, keyedNames: keyedNames),
            CopyMonitor())
    }

    /// Re-encrypts everything under another key: see the form without `async`.
    ///
    /// It calls `progress` at most ten times a second and once at the end, on the actor that `progress` is isolated to.
    ///
    /// - Throws: also `cancelled` (499) when the task is cancelled before the commit; the store is what it was then.
    @discardableResult
    public func changeEncryptionKey(
        to newKey: SymmetricKey?, keeping keptKeys: [SymmetricKey] = [], droppingOtherKeys: Bool = false,
        keyedNames: Bool? = nil, progress: (@isolated(any) @Sendable (CopyProgress) -> Void)? = nil
    ) async throws -> KeyChangeResult {
        let request = KeyChangeRequest(
            newKey: newKey, keptKeys: keptKeys, dropsOtherKeys: droppingOtherKeys, keyedNames: keyedNames)
        return try await storage.maintainInBackground(from: .start, telling: progress) {
            [storage] (monitor) throws(CofferError) in
            try storage.run(request, monitor)
        }
    }
}

extension Storage {
    func changeEncryptionKey(
        _ request: KeyChangeRequest, _ monitor: CopyMonitor
    ) throws(CofferError) -> KeyChangeResult {
        try maintain { () throws(CofferError) in try run(request, monitor) }
    }

    func run(_ request: KeyChangeRequest, _ monitor: CopyMonitor) throws(CofferError) -> KeyChangeResult {
        try healingIndexes { () throws(CofferError) in try KeyChange(self, request, monitor).run() }
    }
}

/// The result of a change of the encryption key, fit for a log of rotations. It holds no key and no content.
public struct KeyChangeResult: Sendable, Codable {
    /// The store's generation before.
    public let oldGeneration: Int
    /// The store's generation now, one more.
    public let newGeneration: Int
    /// The keys that open the store now: the new one first, then those that were kept. None when it is not encrypted.
    public let keys: [StoreInfo.KeySlot]
    /// The keys that opened the store before and were not kept: the one that it was opened with, and those dropped.
    public let endedKeys: [StoreInfo.KeySlot]
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
    /// Whether everything under the old key is gone from the store's directory by now, durably. Otherwise somebody still
    /// reads there, or has not saved what was staged before; it goes when they end, or at the next opening. Or it can't be
    /// removed: see ``oldGenerations``.
    public let oldGenerationIsGone: Bool
    /// What was still in the store's directory beside the new generation when the call returned: the old one, and those
    /// that couldn't be removed before. Empty when all is gone.
    public let oldGenerations: [OldGeneration]
    /// The fate of the key that the database had been opened with.
    public let formerKey: FormerKey

    /// The fate of a key, determined by trying it on the store's new MANIFEST as it is on the disk.
    public enum FormerKey: String, Sendable, Codable {
        /// It does not open the store any more; for a store that was not encrypted: without a key it does not open.
        case refused
        /// It still opens the store, since it is the new key too, or was kept.
        case stillOpens
    }
}

/// The remains of a store under an earlier key, or of a change of the key that was cut short: a folder in the
/// store's directory that is not part of the store any more.
public struct OldGeneration: Sendable, Codable {
    /// The folder.
    public let path: String
    /// How long the files in it are together, in bytes.
    public let byteCount: Int
    /// Whether something in it may be read without any key, since it was not encrypted, or nobody can tell. Otherwise only
    /// somebody with its key can read it.
    ///
    /// An encrypted store with such a folder is opened for reading only, as long as that can't be removed.
    public let mayBeReadable: Bool
    /// Why it couldn't be removed. Nil while somebody still reads there, or where nobody has tried yet.
    public let failure: CofferError?

    init(_ generation: LeftGeneration) {
        path = generation.path
        byteCount = generation.byteCount
        mayBeReadable = generation.mayBeReadable
        failure = generation.failure
    }
}

extension Database {
    /// The remains of earlier generations in the store's directory: normally none exist.
    ///
    /// Each opening for writing removes what can be removed, and opens all the same where something can't be, unless that
    /// ``OldGeneration/mayBeReadable`` and the store is encrypted. For a database that was opened for reading it is what
    /// the next opening for writing will find.
    ///
    /// - Throws: `ioFailed` (500) when the directory can't be listed; `closed` (500).
    public var oldGenerations: [OldGeneration] {
        get throws(CofferError) { try storage.oldGenerations }
    }
}

extension Manager {
    /// The remains of earlier generations of a store that need not be open: see ``Database/oldGenerations``. Needs no
    /// key, and removes nothing.
    ///
    /// Where something is there, the store is locked for reading while it is looked at, so that a change of the key that is
    /// under way is not mistaken for one that was cut short.
    ///
    /// - Throws: `invalidDatabaseName` (400); `notOwner` (403); `databaseNotFound` and `notAStore` (404); `damaged` and
    ///   `ioFailed` (500); `unsupportedFormat` (501); `busy` (503) when something is there and another process has the store
    ///   open for writing.
    public func oldGenerations(ofDatabaseNamed name: String) throws(CofferError) -> [OldGeneration] {
        let name = try DatabaseName(name)
        let path = storePath(name)
        if let identity = try? StoreIdentity(path: path), let database = openDatabase(identity, name) {
            return try database.oldGenerations
        }
        do throws(CofferError) {
            let manifest = try Manifest.read(path: path, fileSystem: fileSystem)
            guard try manifest.hasOtherGenerations(inStoreAt: path, fileSystem: fileSystem) else { return [] }
            let store = try LockedStore.open(
                path: path, access: .readOnly, otherOwners: otherOwners, fileSystem: fileSystem)
            defer { store.close() }
            return try store.oldGenerations(beside: store.readManifest()).map(OldGeneration.init)
        } catch {
            throw error.about(Self.subject(name))
        }
    }
}

extension Storage {
    var oldGenerations: [OldGeneration] {
        get throws(CofferError) { try store.oldGenerations(beside: manifest.manifest).map(OldGeneration.init) }
    }
}
