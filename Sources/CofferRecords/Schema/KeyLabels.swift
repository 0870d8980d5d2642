package import CofferSealing
internal import CofferSQLite
package import CofferVault

/// What the keys of a database are called: rows of `info`, one for each key that has a label, so that nobody who can't
/// open the database sees them.
///
/// A label is written before the manifest that has its slot and removed after the one that no longer has it. So a kill
/// leaves no slot without its label, but perhaps a label without its slot: it means nothing, and goes at the next change
/// of keys and the next open for writing.
package enum KeyLabels {
    /// So that no entry of the table is near the length from which it would overflow.
    package static let longestByteCount = 200

    private static let prefix = "label "

    /// - Returns: nil for no label, which an empty one is too.
    /// - Throws: `invalidArgument` (400) for a label that is too long.
    package static func checked(_ label: String?) throws(CofferError) -> String? {
        guard let label, !label.isEmpty else { return nil }
        guard label.utf8.count <= longestByteCount else {
            throw CofferError(
                .invalidArgument,
                "a key's label has at most \(longestByteCount) bytes, and this has \(label.utf8.count)")
        }
        return label
    }

    /// The labels by the ids of their slots, whether there are such slots or not.
    static func read(from connection: borrowing Connection) throws(CofferError) -> [KeySlot.ID: String] {
        var labels: [KeySlot.ID: String] = [:]
        // The space of the prefix is followed by the exclamation mark.
        let selection = Statement(connection, "SELECT key, value FROM info WHERE key > 'label ' AND key < 'label!'")
        defer { selection.reset() }
        while try selection.step() {
            guard let number = UInt64(selection.text(0).dropFirst(prefix.count), radix: 16) else {
                throw CofferError(.damaged, of: connection.subject, "a key's label belongs to no key")
            }
            labels[KeySlot.ID(number)] = selection.text(1)
        }
        return labels
    }

    /// What a label's row is called.
    package static func key(of slot: KeySlot.ID) -> String { prefix + slot.description }

    static func insert(_ label: String, of slot: KeySlot.ID, in connection: borrowing Connection) throws(CofferError) {
        let insertion = Statement(connection, "INSERT INTO info (key, value) VALUES (?1, ?2)")
        try insertion.bind(1, key(of: slot))
        try insertion.bind(2, label)
        try insertion.run()
    }

    /// Removes the labels of all slots but those of `manifest`.
    static func removeOrphans(of manifest: Manifest, in connection: borrowing Connection) throws(CofferError) {
        let slots = Set(manifest.slots.map(\.id))
        let deletion = Statement(connection, "DELETE FROM info WHERE key = ?1")
        for slot in try read(from: connection).keys where !slots.contains(slot) {
            try deletion.bind(1, key(of: slot))
            try deletion.run()
        }
    }

    /// Makes `labels` all that there are, in the transaction under way.
    static func replaceAll(
        in connection: borrowing Connection, with labels: [(slot: KeySlot.ID, label: String)]
    ) throws(CofferError) {
        try Statement(connection, "DELETE FROM info WHERE key > 'label ' AND key < 'label!'").run()
        for (slot, label) in labels { try insert(label, of: slot, in: connection) }
    }
}

/// The keys that a generation was encrypted under as it was made: a row of `info`.
///
/// A key that was added later, or took another's place, opens what others could read before: a caller that asks whether
/// something was re-encrypted must be able to tell these from the first.
package enum FirstKeys {
    /// - Returns: the ids of their slots, of which some may be gone; nil if nobody noted them, as in stores of earlier
    ///   versions.
    static func read(from connection: borrowing Connection) throws(CofferError) -> Set<KeySlot.ID>? {
        let selection = Statement(connection, "SELECT value FROM info WHERE key = 'first_keys'")
        guard let bytes = try selection.first({ $0.bytes(0) }) else { return nil }
        guard bytes.count % 8 == 0 else {
            throw CofferError(.damaged, of: connection.subject, "the keys that it was encrypted under are not readable")
        }
        return Set(
            stride(from: 0, to: bytes.count, by: 8).map { start in
                KeySlot.ID(bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) })
            })
    }

    /// Notes the keys of `manifest`, in the transaction under way: it has just been made, and so has all that it leads to.
    static func note(_ manifest: Manifest, in connection: borrowing Connection) throws(CofferError) {
        let bytes = manifest.slots.flatMap { slot in
            (0..<8).map { UInt8(truncatingIfNeeded: slot.id.number >> (56 - 8 * $0)) }
        }
        let insertion = Statement(connection, "INSERT OR REPLACE INTO info (key, value) VALUES ('first_keys', ?1)")
        try insertion.bind(1, bytes)
        try insertion.run()
    }
}
