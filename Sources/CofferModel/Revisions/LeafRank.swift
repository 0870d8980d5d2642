/// Where a leaf stands among those of its document: bytes that sort as leaves win.
///
/// One byte, 1 for a live leaf and 0 for a deletion; the generation as 8 bytes, big-endian; the bytes after the hyphen of the
/// revision id. At most 207 bytes.
package struct LeafRank: Sendable, Hashable {
    package let bytes: [UInt8]

    package init(_ id: RevisionID, isDeletion: Bool) {
        var bytes = Self.prefix(isDeletion: isDeletion, generation: id.generation)
        switch id.suffix {
        case .digest(let digest): digest.appendHex(to: &bytes)
        case .text(let text): text.withBytes { bytes.append(copying: $0) }
        }
        self.bytes = bytes
    }

    /// The rank that these bytes are, or nil if they are not a rank.
    package init?(bytes: [UInt8]) {
        guard let leaf = Self.leaf(bytes), LeafRank(leaf.id, isDeletion: leaf.isDeletion).bytes == bytes else {
            return nil
        }
        self.bytes = bytes
    }

    /// What sorts before all leaves of that generation, and after those of the one before.
    package static func lowest(isDeletion: Bool, generation: Int) -> [UInt8] {
        prefix(isDeletion: isDeletion, generation: generation)
    }

    /// The leaf's revision id.
    package var id: RevisionID {
        guard let leaf = Self.leaf(bytes) else { preconditionFailure("an invalid rank") }
        return leaf.id
    }

    /// Whether the leaf is a deletion.
    package var isDeletion: Bool { bytes[0] == 0 }

    private static func prefix(isDeletion: Bool, generation: Int) -> [UInt8] {
        var bytes: [UInt8] = [isDeletion ? 0 : 1]
        bytes.reserveCapacity(48)
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: UInt64(generation) >> shift))
        }
        return bytes
    }

    private static func leaf(_ bytes: [UInt8]) -> (id: RevisionID, isDeletion: Bool)? {
        guard bytes.count > 9, bytes[0] <= 1, bytes[1] < 0x80 else { return nil }
        var generation: UInt64 = 0
        for byte in bytes[1..<9] { generation = generation << 8 | UInt64(byte) }
        guard let suffix = String(validating: bytes[9...], as: UTF8.self),
            let id = RevisionID("\(generation)-\(suffix)")
        else { return nil }
        return (id, bytes[0] == 0)
    }
}
