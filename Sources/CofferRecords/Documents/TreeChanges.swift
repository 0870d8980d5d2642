package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// The writing statements for a document's tree, prepared once. Belongs to the writer.
package struct TreeChanges: ~Copyable {
    private let insertLeaf, deleteLeaf, deleteLeaves: Statement
    private let deleteRevision, deleteUses, noteDepth, notePeer: Statement

    init(_ connection: borrowing Connection) {
        insertLeaf = Statement(connection, "INSERT INTO leaves (document, rank, sequence) VALUES (?1, ?2, ?3)")
        deleteLeaf = Statement(connection, "DELETE FROM leaves WHERE document = ?1 AND rank IN (?2, ?3)")
        deleteLeaves = Statement(connection, "DELETE FROM leaves WHERE document = ?1")
        deleteRevision = Statement(connection, "DELETE FROM revisions WHERE sequence = ?1")
        deleteUses = Statement(connection, "DELETE FROM attachment_uses WHERE revision = ?1")
        noteDepth = Statement(connection, "INSERT OR REPLACE INTO info (key, value) VALUES ('depth', ?1)")
        notePeer = Statement(connection, "INSERT OR REPLACE INTO info (key, value) VALUES (?1, ?2)")
    }

    package func insert(_ leaf: StoredLeaf, ofDocument number: DocumentNumber) throws(CofferError) {
        try insertLeaf.bind(1, number)
        try insertLeaf.bind(2, leaf.rank.bytes)
        try insertLeaf.bind(3, leaf.sequence)
        try insertLeaf.run()
    }

    /// - Returns: whether the revision was among the leaves.
    package func deleteLeaf(_ id: RevisionID, ofDocument number: DocumentNumber) throws(CofferError) -> Bool {
        try deleteLeaf.bind(1, number)
        try deleteLeaf.bind(2, LeafRank(id, isDeletion: true).bytes)
        try deleteLeaf.bind(3, LeafRank(id, isDeletion: false).bytes)
        try deleteLeaf.run()
        return deleteLeaf.changedRowCount > 0
    }

    package func deleteLeaves(ofDocument number: DocumentNumber) throws(CofferError) {
        try deleteLeaves.bind(1, number)
        try deleteLeaves.run()
    }

    package func deleteRevision(_ sequence: SequenceNumber) throws(CofferError) {
        try deleteRevision.bind(1, sequence)
        try deleteRevision.run()
        try deleteUses.bind(1, sequence)
        try deleteUses.run()
    }

    /// Notes that a peer has all revisions up to a sequence.
    package func notePeer(_ key: String, has sequence: SequenceNumber) throws(CofferError) {
        try notePeer.bind(1, key)
        try notePeer.bind(2, sequence)
        try notePeer.run()
    }

    package func note(depth: Int) throws(CofferError) {
        try noteDepth.bind(1, Int64(depth))
        try noteDepth.run()
    }
}

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
