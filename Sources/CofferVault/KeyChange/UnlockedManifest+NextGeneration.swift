package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension UnlockedManifest {
    /// The manifest of the store's next generation: under a fresh master key, which each of `keys` opens; without any,
    /// not encrypted. The first of them counts as the one that opened it. An encrypted database stays as it is kept, and one
    /// that was not encrypted is kept in the portable form.
    ///
    /// Costs one derivation for each key. Throws `invalidKey` (400) for an empty password, `invalidArgument` (400) for
    /// more keys than there are slots, a cost out of bounds, or keyed names without a key.
    package func nextGeneration(
        openedBy keys: [SymmetricKey], cost: PasswordCost, attachmentNames: Manifest.AttachmentNames
    ) throws(CofferError) -> UnlockedManifest {
        guard keys.count <= Manifest.slotCount else {
            throw CofferError(.invalidArgument, "a store has \(Manifest.slotCount) keys at most")
        }
        guard attachmentNames != .keyed || !keys.isEmpty else {
            throw CofferError(.invalidArgument, "keyed attachment names need a key")
        }
        let isEncrypted = !keys.isEmpty
        let newMasterKey = isEncrypted ? try SymmetricKey() : nil
        let now = UInt64(max(0, time(nil)))
        var places = [KeySlot?](repeating: nil, count: Manifest.slotCount)
        if let newMasterKey {
            for (index, key) in keys.enumerated() {
                places[index] = try .sealing(newMasterKey, under: key, cost: cost, of: manifest.storeUUID, at: now)
            }
        }
        let profile = isEncrypted ? manifest.profileOfEncryptedCopies : .sqlite
        let next = try manifest.next(profile, attachmentNames, places)
        return try UnlockedManifest(
            authenticating: next, with: newMasterKey, openedSlot: places[0]?.id, unlockingKey: keys.first)
    }

    /// The manifest of the store's next generation, whose database is kept in another way. Everything that opens the store
    /// stays as it is, byte by byte, and so does the master key: each generation has keys of its own all the same.
    ///
    /// Costs no derivation. Throws `notEncrypted` (401) for a store that is not encrypted, `invalidArgument` (400) for a
    /// profile without encryption.
    package func nextGeneration(
        convertedTo profile: Manifest.DatabaseProfile
    ) throws(CofferError) -> UnlockedManifest {
        guard manifest.isEncrypted else {
            throw CofferError(.notEncrypted, "a store without encryption has no other form")
        }
        guard profile.isEncrypted else {
            throw CofferError(.invalidArgument, "an encrypted store is kept in an encrypted form")
        }
        let next = try manifest.next(profile, manifest.attachmentNames, manifest.slotPlaces)
        return try UnlockedManifest(
            authenticating: next, with: masterKey, openedSlot: openedSlot, unlockingKey: unlockingKey)
    }
}

extension Manifest {
    /// One generation and one writing further, under a tag of its own. Nobody has vouched for it yet.
    fileprivate func next(
        _ profile: DatabaseProfile, _ attachmentNames: AttachmentNames, _ slotPlaces: [KeySlot?]
    ) throws(CofferError) -> Manifest {
        guard generation < Self.largestNumber, sequence < Self.largestNumber else {
            throw CofferError(.damaged, of: Self.fileName, "its generation or sequence has no next number")
        }
        return Manifest(
            isEncrypted: profile.isEncrypted, storeUUID: storeUUID, generation: generation + 1, sequence: sequence + 1,
            generationTag: try randomNumber(), databaseProfile: profile,
            attachmentFormat: profile.isEncrypted ? .cobblestone256 : .plain, attachmentNames: attachmentNames,
            slotPlaces: slotPlaces,
            authenticationCode: [UInt8](repeating: 0, count: Self.authenticationCodeByteCount))
    }
}
