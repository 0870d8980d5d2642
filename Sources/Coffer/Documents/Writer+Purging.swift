internal import CofferModel
internal import CofferSealing
internal import CofferSQLite

/// The statements that remove a document without a trace.
final class PurgeTables {
    private let uses, revisions, document, expiration, keepSequence: Statement

    init(_ connection: Connection) {
        uses = Statement(
            connection,
            """
            DELETE FROM attachment_uses WHERE revision IN (
                SELECT sequence FROM revisions WHERE sequence = ?1 OR (document = ?1 AND document <> sequence))
            """)
        revisions = Statement(
            connection, "DELETE FROM revisions WHERE sequence = ?1 OR (document = ?1 AND document <> sequence)")
        document = Statement(connection, "DELETE FROM documents WHERE id = ?1")
        expiration = Statement(connection, "DELETE FROM expirations WHERE id = ?1")
        keepSequence = Statement(connection, "INSERT OR REPLACE INTO info (key, value) VALUES ('last_sequence', ?1)")
    }

    func purge(_ id: DocumentID, number: Int64, lastSequence: Int64) throws(CofferError) {
        for statement in [uses, revisions] {
            try statement.bind(1, number)
            try statement.run()
        }
        for statement in [document, expiration] {
            try statement.bind(1, id.text)
            try statement.run()
        }
        // The last revision may be among them, and no number is given twice.
        try keepSequence.bind(1, lastSequence)
        try keepSequence.run()
    }
}

extension Writer {
    /// Removes a document with all its revisions, as if it had never been there.
    ///
    /// - Returns: whether there was one.
    func purge(_ id: DocumentID) throws(CofferError) -> Bool {
        guard let row = try tables.document(id) else { return false }
        try change { () throws(CofferError) in
            try purging.purge(id, number: row.number, lastSequence: lastSequence)
        }
        notePurged(id, before: row.flags)
        return true
    }
}
