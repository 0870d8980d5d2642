internal import CofferSealing
internal import CofferSQLite

/// What the tables may not say, since one contradicts another. Each page of such a database may be right, as after pages that
/// somebody put back.
package struct TableMismatch: Sendable {
    /// What is wrong, of the row.
    package let detail: String
    /// Selects the rows that must not be there: a number, and the id of a document where there is one.
    package let sql: StaticString

    /// No child is its document's first revision, which lets the index of the others find it.
    package static let all = [
        TableMismatch(
            detail: "its current revision is missing, or belongs to another document",
            sql: """
                SELECT number, id FROM documents AS d WHERE NOT EXISTS (
                    SELECT 1 FROM revisions AS r WHERE r.sequence = d.winner AND r.document = d.number AND r.id = d.id)
                """),
        TableMismatch(
            detail: "a revision of it is in the table of revisions, but the table of documents lacks it",
            sql: """
                SELECT sequence, id FROM revisions AS r
                WHERE NOT EXISTS (SELECT 1 FROM documents AS d WHERE d.id = r.id AND d.number = r.document)
                """),
        TableMismatch(
            detail: "it is deleted in one table but not in the other",
            sql: """
                SELECT number, d.id FROM documents AS d JOIN revisions AS r ON r.sequence = d.winner
                WHERE r.flags & 1 <> d.flags & 1
                """),
        TableMismatch(
            detail: "another revision replaced its current one",
            sql: """
                SELECT d.winner, d.id FROM documents AS d JOIN revisions AS r ON r.sequence = d.winner
                WHERE EXISTS (
                    SELECT 1 FROM revisions AS c WHERE c.document = d.number AND c.document <> c.sequence
                        AND c.generation = r.generation + 1 AND c.parent = r.sequence)
                """),
        TableMismatch(
            detail: "it has one leaf where it should have several, or the other way round",
            sql: """
                SELECT number, d.id FROM documents AS d WHERE (d.flags & 2 <> 0) <> (
                    1 < (SELECT count(*) FROM leaves AS l WHERE l.document = d.number))
                """),
        TableMismatch(
            detail: "it is in conflict where it should not be, or the other way round",
            sql: """
                SELECT number, id FROM documents AS d WHERE (d.flags & 4 <> 0) <> (
                    1 < (SELECT count(*) FROM leaves AS l WHERE l.document = d.number AND substr(l.rank, 1, 1) = x'01'))
                """),
        TableMismatch(
            detail: "a revision that nothing has replaced is not among its leaves",
            sql: """
                SELECT r.sequence, r.id FROM revisions AS r JOIN documents AS d ON d.id = r.id
                LEFT JOIN leaves AS l ON l.sequence = r.sequence AND +l.document = r.document
                WHERE d.winner <> r.sequence AND l.sequence IS NULL AND NOT EXISTS (
                    SELECT 1 FROM revisions AS c WHERE c.document = r.document AND c.document <> c.sequence
                        AND c.generation = r.generation + 1 AND c.parent = r.sequence)
                """),
        TableMismatch(
            detail: "one of its leaves is a deletion in one table but not in the other",
            sql: """
                SELECT l.sequence, r.id FROM leaves AS l JOIN revisions AS r ON r.sequence = l.sequence
                WHERE substr(l.rank, 1, 1) <> CASE WHEN r.flags & 1 THEN x'00' ELSE x'01' END
                """),
        TableMismatch(
            detail: "one of its leaves is missing, or was replaced",
            sql: """
                SELECT l.sequence, (SELECT id FROM revisions AS r WHERE r.sequence = l.document) FROM leaves AS l
                WHERE NOT EXISTS (
                    SELECT 1 FROM revisions AS r JOIN documents AS d ON d.id = r.id
                    WHERE r.sequence = l.sequence AND r.document = l.document AND d.flags & 2 <> 0
                        AND NOT EXISTS (
                            SELECT 1 FROM revisions AS c WHERE c.document = r.document AND c.document <> c.sequence
                                AND c.generation = r.generation + 1 AND c.parent = r.sequence))
                """),
        TableMismatch(
            detail: "the parent of a revision belongs to another document, or has the wrong generation",
            sql: """
                SELECT c.sequence, c.id FROM revisions AS c JOIN revisions AS p ON p.sequence = c.parent
                WHERE p.document <> c.document OR p.generation <> c.generation - 1 OR p.sequence >= c.sequence
                """),
        TableMismatch(
            detail: "a revision that is gone uses an attachment",
            sql: """
                SELECT revision, NULL FROM attachment_uses AS u
                WHERE NOT EXISTS (SELECT 1 FROM revisions AS r WHERE r.sequence = u.revision)
                """),
        TableMismatch(
            detail: "it uses an attachment that is gone",
            sql: """
                SELECT revision, (SELECT id FROM revisions AS r WHERE r.sequence = u.revision) FROM attachment_uses AS u
                WHERE NOT EXISTS (SELECT 1 FROM attachments AS a WHERE a.number = u.attachment)
                """),
    ]

    /// All that `connection` finds in its snapshot.
    static func findings(in connection: borrowing Connection) throws(CofferError) -> [Damage] {
        var findings: [Damage] = []
        for contradiction in all {
            let rows = Statement(connection, contradiction.sql)
            defer { rows.finalize() }
            while try rows.step() {
                let id = rows.isNull(1) ? nil : rows.text(1)
                findings.append(
                    Damage(
                        id == nil ? .structure : .document, id.map { "document \($0)" } ?? "row \(rows.integer(0))",
                        contradiction.detail, documentID: id))
            }
        }
        return findings
    }
}
