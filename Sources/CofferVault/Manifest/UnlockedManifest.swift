package import CofferSealing

/// A manifest that its key has vouched for, with the keys it leads to; of a store that is not encrypted, one that needs
/// no key. Only ``Manifest/unlock(with:)`` and the creation of a store make one.
package struct UnlockedManifest: Sendable {
    package let manifest: Manifest

    /// The slot that the key opened; nil when the store is not encrypted.
    package let openedSlot: KeySlot.ID?

    /// The key that opened it; nil when the store is not encrypted. Kept so that a change of keys can try it afterwards.
    package let unlockingKey: SymmetricKey?

    /// Random, made for this generation; nil when the store is not encrypted.
    let masterKey: SymmetricKey?

    /// What a key of the store is for.
    package enum KeyPurpose: String, Sendable, CaseIterable {
        case database, attachments, names
        /// The pages of the database file where Coffer seals them: `database` is SQLCipher's.
        case pages
        /// The authentication code of MANIFEST.
        case manifest
    }

    /// The key for one purpose, of this store and generation alone; nil when the store is not encrypted.
    package func key(for purpose: KeyPurpose) throws(CofferError) -> SymmetricKey? {
        guard let masterKey else { return nil }
        let label = KeyLabel.subkey(for: purpose.rawValue, of: manifest.storeUUID, generation: manifest.generation)
        return try masterKey.derivedKey(by: .hkdfExpandSHA256(info: label))
    }

    /// The key of the database file, which depends on how that is kept; nil when the store is not encrypted.
    package func databaseKey() throws(CofferError) -> SymmetricKey? {
        try key(for: manifest.databaseProfile == .sealedPages ? .pages : .database)
    }

    /// The same manifest as its next writing has it: one sequence further, authenticated again.
    ///
    /// - Parameter sequence: another one that the next is to be above.
    func advanced(above sequence: UInt64 = 0) throws(CofferError) -> UnlockedManifest {
        var next = manifest
        next.sequence = max(manifest.sequence, sequence)
        guard next.sequence < Manifest.largestNumber else {
            throw CofferError(.damaged, of: Manifest.fileName, "its sequence has no next number")
        }
        next.sequence += 1
        return try UnlockedManifest(
            authenticating: next, with: masterKey, openedSlot: openedSlot, unlockingKey: unlockingKey)
    }

    /// The same, as it is for somebody who opens it with `key`: the key of the slot in that place, or where there isn't
    /// one, one that has ended.
    package func opened(by key: SymmetricKey, at place: Int?) -> UnlockedManifest {
        UnlockedManifest(
            manifest: manifest, openedSlot: place.flatMap { manifest.slotPlaces[$0]?.id },
            unlockingKey: place == nil ? nil : key, masterKey: masterKey)
    }

    private init(
        manifest: Manifest, openedSlot: KeySlot.ID?, unlockingKey: SymmetricKey?, masterKey: SymmetricKey?
    ) {
        self.manifest = manifest
        self.openedSlot = openedSlot
        self.unlockingKey = unlockingKey
        self.masterKey = masterKey
    }

    /// What the authentication code must be: zeros when the store is not encrypted.
    private func expectedAuthenticationCode() throws(CofferError) -> [UInt8] {
        try key(for: .manifest)?.authenticationCode(for: manifest.authenticatedBytes)
            ?? [UInt8](repeating: 0, count: Manifest.authenticationCodeByteCount)
    }

    /// Takes `manifest` as it was read, when the key in it vouches for it.
    fileprivate init(
        verifying manifest: Manifest, with masterKey: SymmetricKey?, openedSlot: KeySlot.ID?,
        unlockingKey: SymmetricKey?
    ) throws(CofferError) {
        self.init(manifest: manifest, openedSlot: openedSlot, unlockingKey: unlockingKey, masterKey: masterKey)
        guard equalInConstantTime(try expectedAuthenticationCode(), manifest.authenticationCode) else {
            throw CofferError(.damaged, of: Manifest.fileName, "its authentication code is wrong")
        }
    }

    /// Vouches for `manifest`, which is about to be written.
    init(
        authenticating manifest: Manifest, with masterKey: SymmetricKey?, openedSlot: KeySlot.ID?,
        unlockingKey: SymmetricKey?
    ) throws(CofferError) {
        var written = manifest
        written.authenticationCode = try UnlockedManifest(
            manifest: manifest, openedSlot: openedSlot, unlockingKey: unlockingKey, masterKey: masterKey
        ).expectedAuthenticationCode()
        // What is about to be written must be what a reader accepts.
        guard try Manifest(bytes: written.bytes) == written else {
            preconditionFailure("a manifest that reads otherwise")
        }
        self.init(manifest: written, openedSlot: openedSlot, unlockingKey: unlockingKey, masterKey: masterKey)
    }

    /// The first manifest of a new store, opened by `key`; without one it is not encrypted.
    ///
    /// Throws `invalidKey` (400) for an empty password and `invalidArgument` (400) for a cost out of bounds, or for keyed
    /// names without a key.
    static func new(
        key: SymmetricKey?, cost: PasswordCost, encryptedProfile: Manifest.DatabaseProfile,
        attachmentNames: Manifest.AttachmentNames, at time: UInt64
    ) throws(CofferError) -> UnlockedManifest {
        let storeUUID = try StoreUUID.random()
        var places = [KeySlot?](repeating: nil, count: Manifest.slotCount)
        var masterKey: SymmetricKey?
        if let key {
            let newMasterKey = try SymmetricKey()
            places[0] = try .sealing(newMasterKey, under: key, cost: cost, of: storeUUID, at: time)
            masterKey = newMasterKey
        } else if attachmentNames == .keyed {
            throw CofferError(.invalidArgument, "keyed attachment names need a key")
        }
        let manifest = Manifest(
            isEncrypted: key != nil, storeUUID: storeUUID, generation: 1, sequence: 1,
            generationTag: try randomNumber(), databaseProfile: key == nil ? .sqlite : encryptedProfile,
            attachmentFormat: key == nil ? .plain : .cobblestone256, attachmentNames: attachmentNames,
            slotPlaces: places,
            authenticationCode: [UInt8](repeating: 0, count: Manifest.authenticationCodeByteCount))
        return try UnlockedManifest(
            authenticating: manifest, with: masterKey, openedSlot: places[0]?.id, unlockingKey: key)
    }
}

extension Manifest {
    /// Proves that `key` opens the store, and that MANIFEST is what was written with it.
    ///
    /// Costs one derivation for each slot of the key's kind until one opens: for a password with the standard cost a
    /// quarter of a second each, for 32 bytes some microseconds.
    ///
    /// Throws `keyRequired` or `notEncrypted` (401) when a key is missing or too many, `invalidKey` (400) for an empty
    /// password, `wrongKey` (401) when no slot opens, and `damaged` (500) when one does but the authentication code is
    /// wrong: the bytes were changed by someone who could make their checksum right again.
    package func unlock(with key: SymmetricKey?) throws(CofferError) -> UnlockedManifest {
        guard isEncrypted else {
            guard key == nil else { throw CofferError(.notEncrypted, "a key was given for a store without encryption") }
            return try UnlockedManifest(verifying: self, with: nil, openedSlot: nil, unlockingKey: nil)
        }
        guard let key else { throw CofferError(.keyRequired) }
        try key.checkUsable()
        for slot in slots {
            guard let masterKey = try slot.masterKey(openedBy: key, of: storeUUID) else { continue }
            return try UnlockedManifest(verifying: self, with: masterKey, openedSlot: slot.id, unlockingKey: key)
        }
        throw CofferError(.wrongKey)
    }
}
