package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

// The keys of a store change without its master key: nothing is encrypted again, and whoever had an old MANIFEST and a key
// of it still has the master key.

extension UnlockedManifest {
    /// The slot that `key` opens, nil when it opens none.
    ///
    /// Costs one derivation for each slot of the key's kind until one opens, but none for the slot that the store was
    /// opened by: its key is known. `skipped` is not tried.
    package func slot(openedBy key: SymmetricKey, skipping skipped: KeySlot.ID? = nil) throws(CofferError) -> KeySlot? {
        for slot in manifest.slots where slot.id != skipped {
            if slot.id == openedSlot, let unlockingKey {
                if key == unlockingKey { return slot }
            } else if try slot.masterKey(openedBy: key, of: manifest.storeUUID) != nil {
                return slot
            }
        }
        return nil
    }

    /// A new slot for the store's master key, opened by `key`, which is in no manifest yet. Costs one derivation.
    ///
    /// Throws `invalidKey` (400) for an empty password, `notEncrypted` (401) where there is nothing to open.
    package func newSlot(openedBy key: SymmetricKey, cost: PasswordCost) throws(CofferError) -> KeySlot {
        guard let masterKey else {
            throw CofferError(.notEncrypted, "a key was given for a store without encryption")
        }
        return try .sealing(
            masterKey, under: key, cost: cost, of: manifest.storeUUID, at: UInt64(max(0, time(nil))))
    }

    /// Throws `conflict` (409) when all slots are taken.
    package func checkHasRoom() throws(CofferError) { _ = try freePlace() }

    private func freePlace() throws(CofferError) -> Int {
        guard let free = manifest.slotPlaces.firstIndex(of: nil) else {
            throw CofferError(.conflict, "it has \(Manifest.slotCount) keys, and can't have more")
        }
        return free
    }

    /// The next manifest, with `slot` in the first free place.
    ///
    /// Throws `conflict` (409) when there isn't one.
    package func adding(_ slot: KeySlot) throws(CofferError) -> UnlockedManifest {
        var places = manifest.slotPlaces
        places[try freePlace()] = slot
        return try advanced(withSlots: places, openedBy: openedSlot, unlockingKey)
    }

    /// The next manifest, without the slot. A process that opened the store by it keeps what that led to.
    ///
    /// Throws `invalidArgument` (400) when there is no such slot, `conflict` (409) when it is the last one.
    package func removing(_ id: KeySlot.ID) throws(CofferError) -> UnlockedManifest {
        var places = manifest.slotPlaces
        places[try place(of: id)] = nil
        guard manifest.slots.count > 1 else {
            throw CofferError(.conflict, "its only key can't be removed: nothing would open it any more")
        }
        let isOpened = id == openedSlot
        return try advanced(
            withSlots: places, openedBy: isOpened ? nil : openedSlot, isOpened ? nil : unlockingKey)
    }

    /// The next manifest, with `slot`, which `key` opens, in the place of another.
    ///
    /// Throws `invalidArgument` (400) when there is no such slot.
    package func replacing(
        _ id: KeySlot.ID, with slot: KeySlot, openedBy key: SymmetricKey
    ) throws(CofferError) -> UnlockedManifest {
        var places = manifest.slotPlaces
        places[try place(of: id)] = slot
        let isOpened = id == openedSlot
        return try advanced(
            withSlots: places, openedBy: isOpened ? slot.id : openedSlot, isOpened ? key : unlockingKey)
    }

    private func place(of id: KeySlot.ID) throws(CofferError) -> Int {
        guard let place = manifest.slotPlaces.firstIndex(where: { $0?.id == id }) else {
            throw CofferError(.invalidArgument, "it has no key with the id \(id)")
        }
        return place
    }

    private func advanced(
        withSlots places: [KeySlot?], openedBy slot: KeySlot.ID?, _ key: SymmetricKey?
    ) throws(CofferError) -> UnlockedManifest {
        try UnlockedManifest(
            authenticating: advanced().manifest.withSlots(places), with: masterKey, openedSlot: slot,
            unlockingKey: key)
    }
}

extension Manifest {
    /// The same with other slots, which nobody has vouched for yet.
    fileprivate func withSlots(_ places: [KeySlot?]) -> Manifest {
        Manifest(
            isEncrypted: isEncrypted, storeUUID: storeUUID, generation: generation, sequence: sequence,
            generationTag: generationTag, databaseProfile: databaseProfile, attachmentFormat: attachmentFormat,
            attachmentNames: attachmentNames, slotPlaces: places, authenticationCode: authenticationCode)
    }
}

extension LockedStore {
    /// Makes `next` the store's MANIFEST: one with other slots for the same generation.
    ///
    /// The binding row is for the caller to bring up to date afterwards; until then a store that is left behind is stale,
    /// and recovered by the next open.
    ///
    /// Throws `readOnly` (403), `closed` (500), and as a replacement of MANIFEST does: `reopenRequired` (500) when it is
    /// open which of the two outlives a power cut, and any other error when nothing has changed.
    package func replaceSlots(by next: UnlockedManifest) throws(CofferError) {
        try checkWritable()
        try next.commitManifest(of: directory, fileSystem)
    }
}
