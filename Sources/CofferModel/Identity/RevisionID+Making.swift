package import CofferSealing

extension RevisionID {
    /// The id of the revision that follows `parent` with this content.
    ///
    /// Its suffix is the first 16 bytes of SHA-256(u16be length of the parent's id, 0 without one ‖ parent's id
    /// ‖ 00, or 01 for a deletion ‖ canonical JSON).
    ///
    /// - Parameter digest: A SHA-256 to work with; it is left ready for the next message.
    /// - Throws: 400 (invalidArgument) where the parent's generation is the last there is.
    package static func make(
        parent: RevisionID?, isDeletion: Bool, body: CanonicalBody, digest: inout StreamingDigest
    ) throws(CofferError) -> RevisionID {
        let (generation, isOver) = (parent?.generation ?? 0).addingReportingOverflow(1)
        guard !isOver else { throw CofferError(.invalidArgument, "no generation follows the parent's") }
        var head: [UInt8] = []
        head.reserveCapacity(Self.byteLimit + 3)
        head += [0, 0]
        if let parent {
            parent.appendText(to: &head)
            head[1] = UInt8(head.count - 2)  // at most 200
        }
        head.append(isDeletion ? 1 : 0)
        digest.update(head)
        digest.update(body.bytes)
        let sum = digest.finalizeSHA256()
        return RevisionID(unchecked: generation, .digest(RevisionDigest(high: sum.word0, low: sum.word1)))
    }

    /// The id of the revision that follows `parent` with this content.
    ///
    /// - Throws: 400 (invalidArgument) where the parent's generation is the last there is; `encryptionUnavailable` (501).
    package static func make(
        parent: RevisionID?, isDeletion: Bool, body: CanonicalBody
    ) throws(CofferError) -> RevisionID {
        var digest = try StreamingDigest(.sha256)
        return try make(parent: parent, isDeletion: isDeletion, body: body, digest: &digest)
    }

    /// Whether a leaf wins over another one: a live one over a deleted one, then the one whose id sorts last.
    package static func isWinner(
        _ leaf: (id: RevisionID, isDeletion: Bool), over other: (id: RevisionID, isDeletion: Bool)
    ) -> Bool {
        leaf.isDeletion == other.isDeletion ? leaf.id > other.id : other.isDeletion
    }
}
