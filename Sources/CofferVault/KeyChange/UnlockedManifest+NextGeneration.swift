package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension UnlockedManifest {
    /// The manifest of the store's next generation: under a fresh master key, which each of `keys` opens; without any,
    /// not encrypted. The first of them counts as the one that opened it.
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
        guard manifest.generation < Manifest.largestNumber, manifest.sequence < Manifest.largestNumber else {
            throw CofferError(.damaged, of: Manifest.fileName, "its generation or sequence has no next number")
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
        let next = Manifest(
            isEncrypted: isEncrypted, storeUUID: manifest.storeUUID, generation: manifest.generation + 1,
            sequence: manifest.sequence + 1, generationTag: try randomNumber(),
            databaseProfile: isEncrypted ? .portableSQLCipher : .sqlite,
            attachmentFormat: isEncrypted ? .cobblestone256 : .plain, attachmentNames: attachmentNames,
            slotPlaces: places,
            authenticationCode: [UInt8](repeating: 0, count: Manifest.authenticationCodeByteCount))
        return try UnlockedManifest(
            authenticating: next, with: newMasterKey, openedSlot: places[0]?.id, unlockingKey: keys.first)
    }
}
