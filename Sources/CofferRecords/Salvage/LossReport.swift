internal import CofferModel
package import CofferSealing
internal import CofferSQLite

/// Names what the old database had and the new one has not, from all that still says so.
package struct LossReport {
    package let tables: SalvageTables

    package init(tables: SalvageTables) {
        self.tables = tables
    }

    package func findings() throws(CofferError) -> [Damage] {
        try documents() + currentRevisions() + laterRevisions() + refusedRevisions() + localDocuments()
    }

    /// Documents of which nothing is left.
    private func documents() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT DISTINCT id FROM salvage_documents AS s
            WHERE NOT EXISTS (SELECT 1 FROM documents AS d WHERE d.id = s.id)
            """
        ) { .lost($0.text(0), "none of its revisions can be read") }
    }

    /// Documents whose current revision was another one.
    private func currentRevisions() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT s.id, s.flags & 1, l.generation, l.suffix
            FROM salvage_documents AS s JOIN documents AS d ON d.id = s.id AND d.number = s.number
            LEFT JOIN salvage_later AS l ON l.sequence = s.winner AND l.document = s.number
            WHERE s.winner <> d.winner
            """
        ) { (row) throws(CofferError) in
            let name = row.isNull(2) ? "" : " \(try row.revisionID(2, sequence: 0, subject: "the index"))"
            let kind = row.integer(1) == 0 ? "current revision" : "deletion"
            return .lost(row.text(0), "its \(kind)\(name) is lost, and an earlier revision in its place")
        }
    }

    /// Other revisions that the index names. One that follows no more from another is among them, if it had no content.
    private func laterRevisions() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT g.id, l.generation, l.suffix, l.sequence FROM salvage_later AS l
            LEFT JOIN salvage_groups AS g ON g.number = l.document
            WHERE NOT EXISTS (SELECT 1 FROM revisions AS r WHERE r.sequence = l.sequence)
                AND NOT EXISTS (SELECT 1 FROM salvage_documents AS s WHERE s.winner = l.sequence)
                AND (g.id IS NULL OR EXISTS (SELECT 1 FROM documents AS d WHERE d.id = g.id))
            """
        ) { (row) throws(CofferError) in
            let revision = "revision \(try row.revisionID(1, sequence: row.number(3), subject: "the index"))"
            return row.isNull(0)
                ? Damage(
                    .structure, revision, "it can't be read, and nothing says which document it belongs to")
                : .lost(row.text(0), "\(revision) can't be read")
        }
    }

    /// Revisions that are there, and not what was written.
    private func refusedRevisions() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT f.id, f.detail, f.sequence FROM salvage_refused AS f
            WHERE NOT EXISTS (SELECT 1 FROM revisions AS r WHERE r.sequence = f.sequence AND r.body IS NOT NULL)
            """
        ) { row in
            row.isNull(0)
                ? Damage(.structure, "the revision with number \(row.integer(2))", row.text(1))
                : .lost(row.text(0), "a revision was skipped: \(row.text(1))")
        }
    }

    private func localDocuments() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT id FROM salvage_locals AS s
            WHERE NOT EXISTS (SELECT 1 FROM local_documents AS l WHERE l.id = s.id)
            """
        ) { .lost($0.text(0), "it can't be read") }
    }

    private func rows(
        _ sql: StaticString, _ finding: (Statement) throws(CofferError) -> Damage
    ) throws(CofferError) -> [Damage] {
        let statement = Statement(tables.connection, sql)
        defer { statement.finalize() }
        return try statement.all(finding)
    }
}

extension Damage {
    fileprivate static func lost(_ id: String, _ detail: String) -> Damage {
        Damage(.document, "document \(id)", detail, documentID: id)
    }
}
