internal import CofferRecords
internal import CofferSealing
internal import CofferVault
public import Foundation

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

// The same calls for tasks: see Database+Async.swift.

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
