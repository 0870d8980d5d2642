package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// A revision that uses a content, and what its document's row says.
package struct AttachmentUse: Sendable {
    package let sequence: SequenceNumber
    package let revisionID: RevisionID
    package let documentID: String
    /// The document's row.
    package let document: DocumentRow
}

extension Snapshot {
    /// The revisions that use a content, the latest first.
    ///
    /// - Parameter limit: so many at most; nil for all.
    package func uses(ofAttachment number: ContentNumber, limit: Int? = nil) throws(CofferError) -> [AttachmentUse] {
        let list = Statement(
            connection,
            """
            SELECT r.generation, r.suffix, r.sequence, r.id, d.winner, d.flags, r.document
            FROM attachment_uses AS u JOIN revisions AS r ON r.sequence = u.revision JOIN documents AS d ON d.id = r.id
            WHERE u.attachment = ?1 ORDER BY u.revision DESC LIMIT ?2
            """)
        defer { list.finalize() }
        try list.bind(1, number)
        try list.bind(2, Int64(limit ?? -1))
        return try list.all { (row) throws(CofferError) in
            let sequence: SequenceNumber = row.number(2)
            return AttachmentUse(
                sequence: sequence, revisionID: try row.revisionID(0, sequence: sequence, subject: subject),
                documentID: row.text(3),
                document: DocumentRow(
                    number: row.number(6), winner: row.number(4), flags: DocumentFlags(rawValue: row.integer(5))))
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
