public import CofferSealing

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
    /// It calls `progress` at most ten times a second, on the actor that `progress` is isolated to.
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
