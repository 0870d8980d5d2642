internal import CofferModel
package import CofferSealing
internal import CofferSQLite
package import CofferVault

/// A row of `attachments`: one content, however many revisions use it.
package struct AttachmentRow: Sendable {
    package var number: ContentNumber
    package var key: AttachmentKey
    package var byteCount: Int
    /// What proves the file; nil while the content is not here.
    package var proof: Proof?

    package struct Proof: Sendable, Equatable {
        package var sha256: [UInt8]
        /// The first bytes of the encrypted file, which belong to no other; empty in an unencrypted store.
        package var header: [UInt8]

        package init(sha256: [UInt8], header: [UInt8]) {
            self.sha256 = sha256
            self.header = header
        }
    }

    package init(number: ContentNumber, key: AttachmentKey, byteCount: Int, proof: Proof?) {
        self.number = number
        self.key = key
        self.byteCount = byteCount
        self.proof = proof
    }

    /// The row in the statement's first columns: number, length, sha256, header, digest.
    init(_ row: Statement) {
        number = row.number(0)
        byteCount = Int(row.integer(1))
        proof = row.isNull(2) ? nil : Proof(sha256: row.bytes(2), header: row.bytes(3))
        key = row.isBlob(4) ? .sha1(row.bytes(4)) : .foreign(row.text(4))
    }

    /// Whether digests and length are such as Coffer writes them. In a store that is not encrypted anybody can write others.
    package var isWellFormed: Bool {
        guard BlobReference.lengths.contains(byteCount) else { return false }
        guard let proof else { return true }
        guard case .sha1(let sha1) = key else { return false }
        return sha1.count == DigestAlgorithm.sha1.byteCount && proof.sha256.count == DigestAlgorithm.sha256.byteCount
    }

    /// - Throws: `damaged` (500) unless it is well formed.
    package func checked() throws(CofferError) -> AttachmentRow {
        guard isWellFormed else { throw CofferError(.damaged, "the row of a content is not what was written") }
        return self
    }

    /// The digest and length of the content, where it is here. Only of a row that is well formed.
    package var content: ContentDigest? {
        guard let proof, case .sha1(let sha1) = key else { return nil }
        return ContentDigest(sha1: sha1, sha256: proof.sha256, byteCount: byteCount)
    }
}

/// How many contents there are, and their bytes.
package struct ContentSum: Sendable {
    package var count = 0
    package var byteCount = 0
}

/// What finds an attachment's row: the SHA-1 of its content, or the digest that a peer gave it.
package enum AttachmentKey: Hashable, Sendable {
    case sha1([UInt8])
    case foreign(String)

    /// The key that a digest property means: `sha1-` and base64 of 20 bytes, or anything else as it is.
    package init(_ digest: String) {
        if let sha1 = SHA1Digest.bytes(of: digest) { self = .sha1(sha1) } else { self = .foreign(digest) }
    }

    /// The digest property that means it.
    package var text: String {
        switch self {
        case .sha1(let bytes): SHA1Digest.text(of: bytes)
        case .foreign(let text): text
        }
    }
}

extension Statement {
    /// Binds what a row calls its content by.
    func bind(_ index: Int32, _ key: AttachmentKey) throws(CofferError) {
        switch key {
        case .sha1(let bytes): try bind(index, bytes)
        case .foreign(let text): try bind(index, text)
        }
    }
}

extension AttachmentRow {
    private static let rows = RowScan(
        rows: """
            SELECT number, length, sha256, header, digest FROM attachments
            WHERE number BETWEEN ?1 AND ?2 ORDER BY number
            """,
        next: "SELECT min(number) FROM attachments WHERE number >= ?1", last: "SELECT max(number) FROM attachments")

    /// Hands every row that can be read to `take`, in the order of their numbers.
    ///
    /// - Returns: the numbers that can't be read; nil when it can't be told where the table ends.
    package static func scan(
        _ snapshots: SnapshotSource, take: (AttachmentRow) throws(CofferError) -> Void
    ) throws(CofferError) -> [ClosedRange<Int64>]? {
        try rows.run(snapshots.monitor, in: snapshots, read: AttachmentRow.init, take: take)
    }
}
