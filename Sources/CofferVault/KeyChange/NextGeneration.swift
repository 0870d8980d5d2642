package import CofferSealing
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

// A generation that is built beside the current one, to be the store's next.

extension LockedStore {
    /// Begins to build the generation that `manifest` describes.
    ///
    /// Throws `readOnly` (403), `noSpace` (507), `ioFailed` (500); nothing is left then.
    package func beginNextGeneration(
        _ manifest: UnlockedManifest, earlySyncByteCount: Int = GenerationBuilder.earlySyncByteCount
    ) throws(CofferError) -> GenerationBuilder {
        try checkOpen()
        // Whoever asks for old generations meanwhile, or with a manifest from before the commit, must not be told of it.
        let name = manifest.manifest.generationName
        notes.withLock { $0[name] = Note(isNext: true) }
        do throws(CofferError) {
            return try GenerationBuilder(
                self, manifest, owner: Manifest.owner(in: directory, fileSystem),
                earlySyncByteCount: earlySyncByteCount)
        } catch {
            notes.withLock { $0[name] = nil }
            throw error
        }
    }

    /// Makes a generation that is built and sealed the store's, in one step.
    ///
    /// Throws `reopenRequired` (500) when it is open whether that happened: both generations must stay then. On any other
    /// error it did not, and the caller calls ``abandon(_:)``.
    package func commit(_ next: GenerationBuilder) throws(CofferError) {
        // The generation's own entry, before anything names it.
        try fileSystem.synchronize(directory)
        try next.manifest.commitManifest(of: directory, fileSystem)
    }

    /// Removes a generation again that was not committed. What can't be removed is left to the next open.
    package func abandon(_ next: GenerationBuilder) {
        next.waitForSyncs()
        let name = next.manifest.manifest.generationName
        notes.withLock { $0[name] = nil }
        _ = whileOpen {
            try? removeGeneration(name, through: directory)
            try? fileSystem.synchronize(directory)
        }
    }

    /// The bytes that this user may still write beside the store.
    package func freeByteCount() throws(CofferError) -> Int { try fileSystem.freeByteCount(of: directory) }
}

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
