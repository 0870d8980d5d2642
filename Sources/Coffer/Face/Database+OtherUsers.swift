internal import CofferModel
package import CofferSealing
internal import CofferVault

// For those who work on a database that is open for somebody else, with a key of their own.

extension Manager {
    /// The database of that name, if it is open in this process. Opens nothing.
    ///
    /// - Throws: `invalidDatabaseName` (400).
    package func databaseInUse(named name: String) throws(CofferError) -> Database? {
        let name = try DatabaseName(name)
        guard let identity = try? StoreIdentity(path: storePath(name)) else { return nil }
        return openDatabase(identity, name)
    }
}

extension Manager {
    /// Where a database of that name is, or would be.
    ///
    /// - Throws: `invalidDatabaseName` (400).
    package func path(ofDatabaseNamed name: String) throws(CofferError) -> String { storePath(try DatabaseName(name)) }
}

extension Database {
    /// Which of ``keys`` that key is; nil for a database that is not encrypted. Costs a derivation.
    ///
    /// - Throws: `wrongKey`, `keyRequired` and `notEncrypted` (401).
    package func keyID(of key: SymmetricKey?) throws(CofferError) -> DatabaseKey.ID? {
        do throws(CofferError) {
            return try storage.manifest.manifest.unlock(with: key).openedSlot?.description
        } catch {
            throw error.about(storage.subject)
        }
    }

    /// The store's generation: one more with every change of the encryption key.
    package var generation: Int { Int(clamping: storage.manifest.manifest.generation) }

    /// Re-encrypts everything: as ``changeEncryptionKey(to:keeping:droppingOtherKeys:keyedNames:progress:)`` of a database
    /// that was opened with `endingKey`.
    package func changeEncryptionKey(
        from endingKey: SymmetricKey, to newKey: SymmetricKey, keeping keptKeys: [SymmetricKey],
        droppingOtherKeys: Bool, keyedNames: Bool?, progress: @escaping @Sendable (CopyProgress) -> Void
    ) async throws -> KeyChangeResult {
        let request = KeyChangeRequest(
            newKey: newKey, keptKeys: keptKeys, dropsOtherKeys: droppingOtherKeys, keyedNames: keyedNames,
            endingKey: endingKey)
        return try await storage.maintainInBackground(from: .start, telling: progress) {
            [storage] (monitor) throws(CofferError) in
            try storage.run(request, monitor)
        }
    }

    /// The content with that digest, `sha1-…`; nil if it was never downloaded.
    ///
    /// - Throws: `attachmentNotFound` (404), `damaged` and `closed` (500).
    package func chunks(ofContent digest: String, byteCount: Int) throws(CofferError) -> AttachmentChunks? {
        try AttachmentChunks(Content(in: storage, digest: digest, byteCount: byteCount), subject: "content \(digest)")
    }
}

extension DatabaseKey {
    /// The same, as it is for somebody who opened the database with the key that has that id.
    package func seen(by id: ID?) -> DatabaseKey {
        DatabaseKey(
            id: self.id, kind: kind, label: label, created: created, isOriginal: isOriginal, isCurrent: self.id == id)
    }
}
