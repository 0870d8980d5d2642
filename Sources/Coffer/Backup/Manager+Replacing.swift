internal import CofferModel
public import CofferSealing
internal import CofferRecords
internal import CofferVault
public import Foundation

extension Manager {
    /// Installs a copy of a store under a name, in the place of the database of that name if there is one: how an app
    /// brings a database along.
    ///
    /// The copy is made beside its place, opened, checked whole, and only then exchanged with what was there, in one step:
    /// killed at any time, there is the old database or the new one. The store at `url` is only read. It may be where
    /// nothing can be written, with any modes, and without empty directories. The copy keeps its keys, and gets a
    /// ``Database/uuid`` of its own. All installed copies of one store have the same master key: somebody who has the
    /// key of one can open the others, until their key is changed.
    ///
    /// - Parameters:
    ///   - name: see `openDatabase(named:options:)`. The database must not be open.
    ///   - url: the store's directory, as ``Database/backup(to:encryptionKey:)`` makes one. Nobody may have it open for
    ///     writing.
    ///   - encryptionKey: the key that opens it; nil for a store that is not encrypted.
    /// - Throws: `invalidDatabaseName` and `invalidArgument` (400); `wrongKey`, `keyRequired`, `notEncrypted` (401);
    ///   `notOwner` (403) for another user's database, whoever has the one at `url`; `databaseNotFound` and `notAStore`
    ///   (404) for what is at `url`, and `notAStore` for something else under the name; `databaseOpen` (412); `damaged` (500), naming it, for anything in the store that is not what
    ///   was written; `unsupportedFormat` (501), also where the file system can't exchange two names; `busy` (503);
    ///   `noSpace` (507). The database that was there is as it was then.
    public func replaceDatabase(
        named name: String, withDatabaseAt url: URL, encryptionKey: SymmetricKey? = nil
    ) throws(CofferError) {
        let name = try DatabaseName(name)
        guard url.isFileURL else {
            throw CofferError(.invalidArgument, "databases are files, and the URL is not a file URL")
        }
        try encryptionKey?.checkUsable()
        try replace(name, withStoreAt: url.path(percentEncoded: false), encryptionKey)
    }

    /// Installs a copy of a store under a name: see the form without `async`.
    public func replaceDatabase(
        named name: String, withDatabaseAt url: URL, encryptionKey: SymmetricKey? = nil
    ) async throws {
        try await inBackground { [self] in
            try replaceDatabase(named: name, withDatabaseAt: url, encryptionKey: encryptionKey)
        }
    }

    private func replace(_ name: DatabaseName, withStoreAt source: String, _ key: SymmetricKey?) throws(CofferError) {
        let subject = Self.subject(name)
        try makeDirectory()
        try withClosedDatabase(name) { (path) throws(CofferError) in
            do throws(CofferError) {
                try LockedStore.replace(
                    path: path, withCopyOf: source, otherOwners: otherOwners, fileSystem: fileSystem
                ) { (manifest) throws(CofferError) in
                    try manifest.unlock(with: key)
                } prepare: { (copy, manifest) throws(CofferError) in
                    try InstalledCopy(copy, manifest, subject: "the store to be installed").prepare()
                }
            } catch {
                throw error.about(subject)
            }
        }
    }
}

/// A copy of a store that is about to be installed.
private struct InstalledCopy {
    private let store: LockedStore
    private let manifest: UnlockedManifest
    private let subject: String

    init(_ store: LockedStore, _ manifest: UnlockedManifest, subject: String) {
        self.store = store
        self.manifest = manifest
        self.subject = subject
    }

    /// Sees that all of it is what was written, and makes it a database of its own. Leaves it closed, without a log.
    func prepare() throws(CofferError) {
        let database = try DatabaseFile(
            path: store.generation(of: manifest).databasePath, subject: subject,
            protection: DatabaseProtection(of: manifest))
        let inspection = try database.inspect()
        try inspection.binding.check(against: manifest.manifest, subject: subject)
        try database.renewIdentity()
        _ = try DatabaseCopy(from: database, to: database, manifest.manifest, WorkMonitor()).verify(
            rowCounts: nil, binding: inspection.binding)
        try checkContents(of: database)
    }

    /// Reads every content, and compares it with its row.
    private func checkContents(of database: DatabaseFile) throws(CofferError) {
        let attachments = try AttachmentStore(store, manifest)
        let tables = try database.openSnapshot(.immutable, cacheByteCount: 1 << 20)
        try tables.attachments.forEachContent { (row) throws(CofferError) in
            guard let content = row.content, let proof = row.proof else { return }
            let name = SHA1Digest.text(of: content.sha1)
            try attachments.open(content, header: proof.header, subject: "a content of \(subject), \(name)").check()
        }
    }
}
