internal import CofferModel
public import CofferSealing
internal import CofferRecords
internal import CofferVault
public import Foundation

extension Manager {
    // MARK: Backups of keys

    /// The store's MANIFEST, as it is: 1,024 bytes that let its keys open it again should that file be lost.
    ///
    /// Without MANIFEST nobody can open a store, whatever key they have. It holds no key, but lets passwords be guessed;
    /// and **whoever has it and a key that it names can open the store until its encryption key is changed**, also after
    /// that key was removed. It is worth nothing any more after such a change: make a new one. Takes no lock.
    ///
    /// - Parameters:
    ///   - name: the database, open or not.
    ///   - encryptionKey: a key that must open the backup. Default: nil, which proves nothing but that it can be read.
    /// - Throws: `invalidDatabaseName` (400), `wrongKey` and `notEncrypted` (401), `databaseNotFound` and `notAStore`
    ///   (404), `damaged` (500), `unsupportedFormat` (501).
    public func keyBackup(
        ofDatabaseNamed name: String, encryptionKey: SymmetricKey? = nil
    ) throws(CofferError) -> Data {
        let name = try DatabaseName(name)
        do throws(CofferError) {
            let manifest = try Manifest.read(path: storePath(name), fileSystem: fileSystem)
            if let encryptionKey { _ = try manifest.unlock(with: encryptionKey) }
            return try Data(manifest.bytes)
        } catch {
            throw error.about(Self.subject(name))
        }
    }

    /// Puts a backup of the keys in the place of the store's MANIFEST, be that lost, damaged, or one with other keys.
    ///
    /// The keys of the backup open the store then, and no others. Only a backup of this very store, made since its
    /// encryption key was last changed, is taken: the database has to prove it. In one step and durably; killed at any time,
    /// there is the MANIFEST from before or the backup's.
    ///
    /// - Parameters:
    ///   - name: the database, which must not be open.
    ///   - backup: what ``keyBackup(ofDatabaseNamed:encryptionKey:)`` returned.
    ///   - encryptionKey: a key that opens the backup; nil for a store that is not encrypted.
    /// - Returns: what the store says of itself now.
    /// - Throws: `invalidDatabaseName` (400); `wrongKey`, `keyRequired`, `notEncrypted` (401) for the backup; `notOwner`
    ///   (403); `databaseNotFound` and `notAStore` (404); `conflict` (409) for a backup of another store or generation;
    ///   `databaseOpen` (412); `damaged` (500) for a backup or a database that is not what was written; `ioFailed` (500);
    ///   `encryptionUnavailable`, `unsupportedFormat` (501); `busy` (503); `noSpace` (507). The store is as it was then.
    ///   `reopenRequired` (500) when the last step failed: either is possible.
    @discardableResult
    public func restoreKeys(
        ofDatabaseNamed name: String, from backup: Data, encryptionKey: SymmetricKey?
    ) throws(CofferError) -> StoreInfo {
        let name = try DatabaseName(name)
        let unlocked: UnlockedManifest
        do throws(CofferError) {
            unlocked = try Manifest(bytes: Array(backup)).unlock(with: encryptionKey)
        } catch {
            // Its own words for what it is are those of a MANIFEST in its place.
            throw CofferError(error.code, of: "the backup", error.detail, cause: error.cause)
        }
        try DatabaseLibrary.require(for: unlocked.manifest.databaseProfile)
        return try withClosedDatabase(name) { (path) throws(CofferError) in
            do throws(CofferError) {
                return StoreInfo(try restore(unlocked, inStoreAt: path, Self.subject(name)).manifest, at: path)
            } catch {
                throw error.about(Self.subject(name))
            }
        }
    }

    /// Puts a backup of the keys in the place of the store's MANIFEST: see the form without `async`.
    @discardableResult
    public func restoreKeys(
        ofDatabaseNamed name: String, from backup: Data, encryptionKey: SymmetricKey?
    ) async throws -> StoreInfo {
        try await inBackground { [self] in
            try restoreKeys(ofDatabaseNamed: name, from: backup, encryptionKey: encryptionKey)
        }
    }

    private func restore(
        _ backup: UnlockedManifest, inStoreAt path: String, _ subject: String
    ) throws(CofferError) -> UnlockedManifest {
        let store = try LockedStore.open(
            path: path, access: .restoring, otherOwners: otherOwners, fileSystem: fileSystem)
        defer { store.close() }
        let sequence = try store.checkMayRestore(backup)
        let files = try store.generation(of: backup)
        let database = try DatabaseFile(
            path: files.databasePath, subject: subject, protection: DatabaseProtection(of: backup))
        let binding = try database.inspect().binding
        guard binding.storeUUID == backup.manifest.storeUUID, binding.generation == backup.manifest.generation else {
            throw CofferError(.conflict, of: subject, "the backup belongs to another store")
        }
        return try store.restore(backup, above: max(sequence ?? 0, binding.sequence))
    }
}
