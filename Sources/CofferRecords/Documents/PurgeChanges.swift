package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// The statements that remove a document without a trace.
package struct PurgeChanges: ~Copyable {
    private let uses, revisions, leaves, document, expiration, keepSequence: Statement

    init(_ connection: borrowing Connection) {
        uses = Statement(
            connection,
            """
            DELETE FROM attachment_uses WHERE revision IN (
                SELECT sequence FROM revisions WHERE sequence = ?1 OR (document = ?1 AND document <> sequence))
            """)
        revisions = Statement(
            connection, "DELETE FROM revisions WHERE sequence = ?1 OR (document = ?1 AND document <> sequence)")
        leaves = Statement(connection, "DELETE FROM leaves WHERE document = ?1")
        document = Statement(connection, "DELETE FROM documents WHERE id = ?1")
        expiration = Statement(connection, "DELETE FROM expirations WHERE id = ?1")
        keepSequence = Statement(connection, "INSERT OR REPLACE INTO info (key, value) VALUES ('last_sequence', ?1)")
    }

    package func purge(_ id: DocumentID, number: DocumentNumber, lastSequence: SequenceNumber) throws(CofferError) {
        for statement in [uses, revisions, leaves] {
            try statement.bind(1, number)
            try statement.run()
        }
        for statement in [document, expiration] {
            try statement.bind(1, id.text)
            try statement.run()
        }
        try keep(lastSequence)
    }

    /// Keeps the last number in mind where its revision may go: no number is given twice.
    package func keep(_ lastSequence: SequenceNumber) throws(CofferError) {
        try keepSequence.bind(1, lastSequence)
        try keepSequence.run()
    }
}
