internal import CofferSealing
internal import CofferRecords
internal import CofferVault
internal import Foundation

extension Storage {
    /// The keys with their labels. What one look finds belongs together, whoever changes them meanwhile.
    func keys() throws(CofferError) -> [DatabaseKey] {
        while true {
            let manifest = manifest
            let (labels, first) = try read { (tables) throws(CofferError) in
                (try tables.keyLabels(), try tables.firstKeys())
            }
            if self.manifest.manifest.sequence == manifest.manifest.sequence {
                return manifest.manifest.slots.map {
                    manifest.describe($0, labels[$0.id], isOriginal: first?.contains($0.id) ?? true)
                }
            }
        }
    }

    func addKey(_ key: SymmetricKey, _ label: String?) throws(CofferError) -> DatabaseKey {
        try key.checkUsable()
        return try changeSlots(logging: "a key was added") { (manifest) throws(CofferError) in
            // What can be known without a derivation, before one.
            try manifest.checkHasRoom()
            let slot = try newSlot(openedBy: key, besides: nil, in: manifest)
            let change = SlotChange(next: try manifest.adding(slot), slot: slot, label: label)
            return (change, change.next.describe(slot, label, isOriginal: false))
        }
    }

    func removeKey(_ id: DatabaseKey.ID) throws(CofferError) {
        try changeSlots(logging: "a key was removed") { (manifest) throws(CofferError) in
            (SlotChange(next: try manifest.removing(manifest.slot(id).id)), ())
        }
    }

    /// - Parameter label: nil to keep the label.
    func replaceKey(
        _ id: DatabaseKey.ID?, with key: SymmetricKey, _ label: String??
    ) throws(CofferError) -> DatabaseKey {
        try key.checkUsable()
        return try changeSlots(logging: "a key was replaced") { (manifest) throws(CofferError) in
            let old = try manifest.slot(id)
            let slot = try newSlot(openedBy: key, besides: old.id, in: manifest)
            let kept = try read { (tables) throws(CofferError) in try tables.keyLabels()[old.id] }
            let label = label ?? kept
            let change = SlotChange(
                next: try manifest.replacing(old.id, with: slot, openedBy: key), slot: slot, label: label)
            return (change, change.next.describe(slot, label, isOriginal: false))
        }
    }

    private func newSlot(
        openedBy key: SymmetricKey, besides replaced: KeySlot.ID?, in manifest: UnlockedManifest
    ) throws(CofferError) -> KeySlot {
        if let slot = try manifest.slot(openedBy: key, skipping: replaced) {
            throw CofferError(.conflict, "the key opens it already, as the key with the id \(slot.id)")
        }
        return try manifest.newSlot(openedBy: key, cost: settings.passwordCost)
    }

    // MARK: Changing the manifest

    /// Another manifest for the same generation, and what is to be noted of it in the database.
    private struct SlotChange {
        var next: UnlockedManifest
        /// The slot that is new.
        var slot: KeySlot?
        var label: String?
    }

    /// Has `make` find out what should be, which may take a derivation, while others read and write; then makes it so.
    private func changeSlots<Value>(
        logging event: String, _ make: (UnlockedManifest) throws(CofferError) -> (SlotChange, Value)
    ) throws(CofferError) -> Value {
        do throws(CofferError) {
            return try maintain { () throws(CofferError) in
                let (change, value) = try make(manifest)
                try alone { (writer) throws(CofferError) in try commit(change, writer) }
                CofferLog.write(
                    .notice, .keys, subject, event, ["keys": String(change.next.manifest.slots.count)])
                return value
            }
        } catch {
            throw error.about(subject)
        }
    }

    /// In this order, each step durable before the next: the new slot's label, the manifest, its sequence in the binding
    /// row together with what labels must go.
    private func commit(_ change: SlotChange, _ writer: borrowing Writer) throws(CofferError) {
        try writer.records.synchronizeCommits(true)
        defer {
            if settings.durability == .relaxed { try? writer.records.synchronizeCommits(false) }
        }
        if let slot = change.slot, let label = change.label {
            try write(in: writer) { (writer) throws(CofferError) in
                try writer.records.insertLabel(label, of: slot.id)
            }
        }
        do throws(CofferError) {
            try store.replaceSlots(by: change.next)
        } catch {
            if error.code == .reopenRequired {
                refuseMoreWork()
            } else if change.label != nil {
                try? write(in: writer) { (writer) throws(CofferError) in
                    try writer.records.removeOrphanLabels(of: manifest.manifest)
                }
            }
            throw error
        }
        // Before the rows change, so that a reader of both sees that one of them has.
        didReplaceManifest(by: change.next)
        do throws(CofferError) {
            try write(in: writer) { (writer) throws(CofferError) in
                try writer.records.bind(sequence: change.next.manifest.sequence)
                try writer.records.removeOrphanLabels(of: change.next.manifest)
            }
        } catch {
            // Only an open for writing brings the row up to date.
            refuseMoreWork()
            throw CofferError(.reopenRequired, of: subject, "its keys were changed, and a write failed", cause: error)
        }
    }
}

extension UnlockedManifest {
    fileprivate func describe(_ slot: KeySlot, _ label: String?, isOriginal: Bool) -> DatabaseKey {
        let known = StoreInfo.KeySlot(slot)
        return DatabaseKey(
            id: known.id, kind: known.kind, label: label, created: known.created, isOriginal: isOriginal,
            isCurrent: slot.id == openedSlot)
    }

    /// The slot with that id; without one, the slot that the store was opened by.
    fileprivate func slot(_ id: DatabaseKey.ID?) throws(CofferError) -> KeySlot {
        guard manifest.isEncrypted else { throw CofferError(.notEncrypted, "it has no keys") }
        if let id {
            guard let slot = manifest.slots.first(where: { $0.id.description == id }) else {
                throw CofferError(.invalidArgument, "it has no key with that id")
            }
            return slot
        }
        guard let slot = manifest.slots.first(where: { $0.id == openedSlot }) else {
            throw CofferError(.invalidArgument, "the key that opened it is gone: name the key that is meant")
        }
        return slot
    }
}
