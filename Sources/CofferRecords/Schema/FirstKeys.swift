internal import CofferSQLite
internal import CofferSealing
internal import CofferVault

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
