internal import CofferRecords
public import CofferSealing
internal import CofferVault
public import Foundation
internal import CofferModel

extension Database {
    /// The keys that open the database, in the order of their slots. Empty when it is not encrypted.
    ///
    /// Each of up to eight keys opens all of the database alone. They are equal: there is no first one.
    ///
    /// - Throws: `damaged`, `closed`, `reopenRequired` (500).
    public var keys: [DatabaseKey] { get throws(CofferError) { try storage.keys() } }

    /// Adds a key, so that the database can be opened by it too: a recovery key, a second person's password, a machine's
    /// 32 bytes.
    ///
    /// Nothing is encrypted again: it takes as long as an opening with `key`, whatever the size of the database, and
    /// others read and write meanwhile. A password also costs one more derivation for each *other* password of the
    /// database but the one that opened it, to see that it differs from all of them. On the disk when it returns:
    /// killed before, the key opens nothing or the database, with its label.
    ///
    /// A key that leads to a database has led to everything in it since the last `changeEncryptionKey(to:)`: removing
    /// it later does not take back what its holder has seen, or copied.
    ///
    /// - Parameters:
    ///   - key: a password, or 32 bytes.
    ///   - label: what ``keys`` should call it, at most 200 bytes of UTF-8. Kept in the database, encrypted. Default:
    ///     none.
    /// - Returns: the new key as ``keys`` lists it.
    /// - Throws: `invalidKey` for an empty password and `invalidArgument` for a long label or inside a transaction (400);
    ///   `notEncrypted` (401) when the database is not encrypted; `readOnly` (403); `conflict` (409) when `key` opens the
    ///   database already, or there are eight; `ioFailed`, `closed`, and `reopenRequired` (500) when it is open
    ///   whether the key was added; `busy` (503); `noSpace` (507).
    @discardableResult
    public func addKey(_ key: SymmetricKey, label: String? = nil) throws(CofferError) -> DatabaseKey {
        try storage.addKey(key, KeyLabels.checked(label))
    }

    /// Removes a key: the database can't be opened by it any more. Costs no derivation.
    ///
    /// The key that opened the database in this process can be removed too, if another is left: what is open stays open.
    ///
    /// **What it does not do.** All keys lead to the same master key, which stays. Somebody who had the removed key
    /// *and* kept a copy of the file `MANIFEST` from before, in a backup for example, can still open what the database
    /// holds now and later. Against them only `changeEncryptionKey(to:)` helps, which encrypts everything again.
    ///
    /// - Parameter id: the ``DatabaseKey/id`` of one of ``keys``.
    /// - Throws: `invalidArgument` (400) when there is no such key, or inside a transaction; `readOnly` (403); `conflict`
    ///   (409) for the only key: `changeEncryptionKey(to:)` removes the encryption. Otherwise as
    ///   `addKey(_:label:)`.
    public func removeKey(_ id: DatabaseKey.ID) throws(CofferError) { try storage.removeKey(id) }

    /// Puts a key in the place of another, in one step: killed at any time, one of the two opens the database.
    ///
    /// The way to change a password that nobody else knows, at the price of one derivation (and as for
    /// `addKey(_:label:)`, one for each other password). It does not help against someone who had the old key and kept a
    /// copy of `MANIFEST`: see `removeKey(_:)`.
    ///
    /// - Parameters:
    ///   - id: the key that goes. Default: the one that opened the database in this process.
    ///   - newKey: the key that comes. It may be the same key again, under a new salt.
    ///   - label: what it is called. Default: what the other was called; an empty text for nothing.
    /// - Returns: the new key, under an id of its own.
    /// - Throws: as `addKey(_:label:)`, `conflict` (409) only when `newKey` opens the database as another of its keys;
    ///   `invalidArgument` (400) too when there is no key with that id, or the one that opened the database is gone.
    @discardableResult
    public func replaceKey(
        _ id: DatabaseKey.ID? = nil, with newKey: SymmetricKey, label: String? = nil
    ) throws(CofferError) -> DatabaseKey {
        try storage.replaceKey(
            id, with: newKey, label.map { (label) throws(CofferError) in try KeyLabels.checked(label) })
    }
}

// The same calls for tasks: see AsyncCalls.swift.

extension Database {
    /// Adds a key: see the form without `async`.
    @discardableResult
    public func addKey(_ key: SymmetricKey, label: String? = nil) async throws -> DatabaseKey {
        let label = try KeyLabels.checked(label)
        return try await storage.maintenanceLine.run { [storage] () throws(CofferError) in
            try storage.addKey(key, label)
        }
    }

    /// Removes a key: see the form without `async`.
    public func removeKey(_ id: DatabaseKey.ID) async throws {
        try await storage.maintenanceLine.run { [storage] () throws(CofferError) in try storage.removeKey(id) }
    }

    /// Puts a key in the place of another: see the form without `async`.
    @discardableResult
    public func replaceKey(
        _ id: DatabaseKey.ID? = nil, with newKey: SymmetricKey, label: String? = nil
    ) async throws -> DatabaseKey {
        let label = try label.map { (label) throws(CofferError) in try KeyLabels.checked(label) }
        return try await storage.maintenanceLine.run { [storage] () throws(CofferError) in
            try storage.replaceKey(id, with: newKey, label)
        }
    }
}

/// One of the keys that open a database, as ``Database/keys`` lists them. It holds no secret.
public struct DatabaseKey: Sendable, Equatable, Identifiable, Codable {
    /// The key's name in its database: 16 lower-case hex digits.
    public let id: String

    /// The kind of key, and the cost of using it.
    public let kind: StoreInfo.KeySlot.Kind

    /// The label that it got when it was added; nil without one.
    public let label: String?

    /// When it was added or took another's place, in whole seconds.
    public let created: Date

    /// Whether all that the database holds was encrypted when this key was there already: it was created with it, or
    /// ``Database/changeEncryptionKey(to:keeping:droppingOtherKeys:keyedNames:progress:)`` was given it. False for one that was
    /// added or took another's place since, so that whoever had another key before may know the database's own. True where
    /// a version of Coffer that did not note it made the database.
    public let isOriginal: Bool

    /// Whether the database was opened by it in this process.
    public let isCurrent: Bool
}

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
