internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// What somebody asked for.
struct KeyChangeRequest: Sendable {
    var newKey: SymmetricKey?
    var keptKeys: [SymmetricKey]
    var dropsOtherKeys: Bool
    var keyedNames: Bool?
    /// The key that ends, where that is not the one that the database was opened with.
    var endingKey: SymmetricKey?
}

/// One change of the encryption key, by whoever holds the right to change the store as a whole: a ``GenerationChange`` to a
/// fresh master key.
struct KeyChange {
    private let storage: Storage
    private let request: KeyChangeRequest
    private let monitor: CopyMonitor
    private let start = ContinuousClock.now

    init(_ storage: Storage, _ request: KeyChangeRequest, _ monitor: CopyMonitor) {
        self.storage = storage
        self.request = request
        self.monitor = monitor
    }

    func run() throws(CofferError) -> KeyChangeResult {
        do throws(CofferError) {
            let result = try changed()
            log(result)
            return result
        } catch {
            if error.code != .cancelled {
                CofferLog.write(
                    error.code == .reopenRequired ? .error : .warning, .keys, storage.subject,
                    "the key was not changed",
                    LogMessage.details(of: error))
            }
            throw error.about(storage.subject)
        }
    }

    private func log(_ result: KeyChangeResult) {
        CofferLog.write(
            .notice, .keys, storage.subject, result.keys.isEmpty ? "decrypted" : "encrypted under another key",
            [
                "generation": String(result.newGeneration), "documents": String(result.documentCount),
                "contents": String(result.attachmentCount), "keys": String(result.keys.count),
                "milliseconds": result.duration.inMilliseconds,
            ])
        if !result.oldGenerations.isEmpty {
            CofferLog.write(
                .warning, .keys, storage.subject, "an old generation could not be removed",
                ["generations": String(result.oldGenerations.count)])
        }
    }

    private func changed() throws(CofferError) -> KeyChangeResult {
        guard !storage.hub.calls.isInCall else {
            throw CofferError(.invalidArgument, of: storage.subject, "a listener can't change the key")
        }
        let old = try manifest
        let keptSlots = try keptSlots(of: old)
        let oldLabels = try storage.readCommitted { (tables) throws(CofferError) in
            try tables.keyLabels()
        }
        let new = try old.nextGeneration(
            openedBy: keys, cost: storage.settings.passwordCost, attachmentNames: attachmentNames(after: old.manifest))
        let change = GenerationChange(
            storage, to: new, labels(oldLabels, of: new, keptSlots, old), afterwards: manifest(after: new), monitor)
        let made = try change.run()
        return KeyChangeResult(
            oldGeneration: Int(clamping: old.manifest.generation),
            newGeneration: Int(clamping: new.manifest.generation),
            keys: new.manifest.slots.map(StoreInfo.KeySlot.init),
            endedKeys: old.manifest.slots.filter { !keptSlots.values.contains($0.id) }.map(StoreInfo.KeySlot.init),
            documentCount: made.documentCount, attachmentCount: made.contents.count,
            attachmentByteCount: made.contents.byteCount, databaseByteCount: made.databaseByteCount,
            duration: .now - start, oldGenerationIsGone: made.oldGenerationIsGone,
            oldGenerations: made.oldGenerations, formerKey: fate(ofKeyOf: old))
    }

    // MARK: Before

    /// The store's manifest, as the key unlocks it that ends.
    private var manifest: UnlockedManifest {
        get throws(CofferError) {
            let manifest = storage.manifest
            guard let key = request.endingKey else { return manifest }
            return try manifest.manifest.unlock(with: key)
        }
    }

    /// The keys of the next generation, the new one first.
    private var keys: [SymmetricKey] {
        guard let newKey = request.newKey else { return [] }
        return request.keptKeys.reduce(into: [newKey]) { keys, kept in
            if !keys.contains(kept) { keys.append(kept) }
        }
    }

    /// The slots whose keys were given to be kept, by the places of these keys among ``keys``.
    ///
    /// - Throws: `otherKeysExist` (409) when there are some that were neither given nor may be dropped.
    private func keptSlots(of old: UnlockedManifest) throws(CofferError) -> [Int: KeySlot.ID] {
        guard request.newKey != nil || request.keptKeys.isEmpty else {
            throw CofferError(.invalidArgument, "keys can't be kept where encryption ends")
        }
        let keys = keys
        var kept: [Int: KeySlot.ID] = [:]
        for key in request.keptKeys {
            let slot = try old.manifest.unlock(with: key).openedSlot
            if let place = keys.firstIndex(of: key) { kept[place] = slot }
        }
        let others = old.manifest.slots.filter { $0.id != old.openedSlot && !kept.values.contains($0.id) }
        guard others.isEmpty || request.dropsOtherKeys else {
            throw CofferError(
                .otherKeysExist,
                others.count == 1
                    ? "another key also opens it: keep it or drop it"
                    : "\(others.count) other keys also open it: keep or drop them")
        }
        return kept
    }

    /// What the keys of the next generation are called: those that stay, as before.
    private func labels(
        _ labels: [KeySlot.ID: String], of new: UnlockedManifest, _ kept: [Int: KeySlot.ID], _ old: UnlockedManifest
    ) -> [(slot: KeySlot.ID, label: String)] {
        var places = kept
        if places[0] == nil, let key = request.newKey, key == old.unlockingKey { places[0] = old.openedSlot }
        return new.manifest.slots.enumerated().compactMap { place, slot in
            places[place].flatMap { labels[$0] }.map { (slot.id, $0) }
        }
    }

    private func attachmentNames(after old: Manifest) -> Manifest.AttachmentNames {
        if let keyed = request.keyedNames { return keyed ? .keyed : .sha1 }
        return request.newKey == nil ? .sha1 : old.attachmentNames
    }

    /// The next manifest, as whoever opened the database has it: the new key takes the place of the one that ends, which need
    /// not be theirs.
    private func manifest(after next: UnlockedManifest) -> UnlockedManifest {
        guard let endingKey = request.endingKey, let key = storage.manifest.unlockingKey, key != endingKey else {
            return next
        }
        return next.opened(by: key, at: keys.firstIndex(of: key))
    }

    // MARK: Afterwards

    /// Tries the former key on the manifest that the disk has now.
    ///
    /// The change is made by then, so nothing that goes wrong here may look like its failure: what can't be tried follows
    /// from the keys that were given.
    private func fate(ofKeyOf old: UnlockedManifest) -> KeyChangeResult.FormerKey {
        do throws(CofferError) {
            _ = try storage.store.readManifest().unlock(with: old.unlockingKey)
            return .stillOpens
        } catch {
            if error.status == CofferError.Code.wrongKey.status { return .refused }
            return old.unlockingKey.map(keys.contains) == true ? .stillOpens : .refused
        }
    }
}
