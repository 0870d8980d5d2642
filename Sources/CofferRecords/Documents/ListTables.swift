internal import CofferModel
package import CofferSealing
internal import CofferSQLite

/// How far a batch goes.
package struct BatchLimit {
    package var rowCount: Int
    /// Bodies come to no more than that and one of them.
    package var byteCount: Int

    package init(rowCount: Int = 256, byteCount: Int = 1 << 20) {
        self.rowCount = rowCount
        self.byteCount = byteCount
    }
}

/// The statements of one connection that go through many documents, prepared once.
package struct ListTables: ~Copyable {
    let byID, byIDDescending: Statement
    private let bySequence, bySequenceDescending: Statement

    init(_ connection: borrowing Connection) {
        // A winner that is not there, or is another document's, must show as damage: see Snapshot. Nothing of a body
        // is read where it is not asked for.
        byID = Statement(
            connection,
            """
            SELECT r.sequence, r.document, r.parent, r.flags, r.generation, r.suffix,
                CASE WHEN ?3 THEN r.digest END, CASE WHEN ?3 THEN r.body END, d.flags, d.id
            FROM documents AS d LEFT JOIN revisions AS r
                ON r.sequence = d.winner AND r.document = d.number AND r.id = d.id
            WHERE d.id >= ?1 AND d.id <= ?2 AND (d.flags & 1 = 0 OR ?4) ORDER BY d.id
            """)
        byIDDescending = Statement(
            connection,
            """
            SELECT r.sequence, r.document, r.parent, r.flags, r.generation, r.suffix,
                CASE WHEN ?3 THEN r.digest END, CASE WHEN ?3 THEN r.body END, d.flags, d.id
            FROM documents AS d LEFT JOIN revisions AS r
                ON r.sequence = d.winner AND r.document = d.number AND r.id = d.id
            WHERE d.id >= ?1 AND d.id <= ?2 AND (d.flags & 1 = 0 OR ?4) ORDER BY d.id DESC
            """)
        // An id that was changed on the disk must not make its revision vanish.
        bySequence = Statement(
            connection,
            """
            SELECT r.sequence, r.document, r.parent, r.flags, r.generation, r.suffix,
                CASE WHEN ?3 AND d.winner = r.sequence THEN r.digest END,
                CASE WHEN ?3 AND d.winner = r.sequence THEN r.body END, d.flags, d.id, d.winner
            FROM revisions AS r LEFT JOIN documents AS d ON d.id = r.id AND d.number = r.document
            WHERE r.sequence >= ?1 AND r.sequence <= ?2 ORDER BY r.sequence
            """)
        bySequenceDescending = Statement(
            connection,
            """
            SELECT r.sequence, r.document, r.parent, r.flags, r.generation, r.suffix,
                CASE WHEN ?3 AND d.winner = r.sequence THEN r.digest END,
                CASE WHEN ?3 AND d.winner = r.sequence THEN r.body END, d.flags, d.id, d.winner
            FROM revisions AS r LEFT JOIN documents AS d ON d.id = r.id AND d.number = r.document
            WHERE r.sequence >= ?1 AND r.sequence <= ?2 ORDER BY r.sequence DESC
            """)
    }

    /// The statement for revisions in the order of their sequences, to be stepped and reset.
    func bindRevisions(
        from first: SequenceNumber, to last: SequenceNumber, descending: Bool, loadsBodies: Bool
    ) throws(CofferError) -> Statement {
        let statement = descending ? bySequenceDescending : bySequence
        try statement.bind(1, first)
        try statement.bind(2, last)
        try statement.bind(3, loadsBodies ? 1 : 0)
        return statement
    }
}

extension Snapshot {
    /// The leaves of a document that has more than one, the winner first, as far as they are known without their rows.
    package func leaves(ofDocument number: DocumentNumber) throws(CofferError) -> [RevisionRow] {
        try trees.leaves(ofDocument: number).map { (leaf) throws(CofferError) in
            RevisionRow(
                sequence: leaf.sequence, document: number, parent: nil, isDeletion: leaf.rank.isDeletion,
                id: leaf.rank.id, body: nil)
        }
    }
}

// Lists and counts that are asked for too seldom to keep their statements.

extension Snapshot {
    /// The numbers of documents with more than one leaf.
    package func branchedDocuments() throws(CofferError) -> [DocumentNumber] {
        let list = Statement(connection, "SELECT DISTINCT document FROM leaves")
        defer { list.finalize() }
        return try list.all { $0.number(0) }
    }

    /// The documents that have one leaf and more than one revision, and the generations of their leaves.
    package func latestGenerations() throws(CofferError) -> [(number: DocumentNumber, generation: Int)] {
        let list = Statement(
            connection,
            """
            SELECT document, max(generation) FROM revisions INDEXED BY later_revisions
            WHERE document <> sequence AND document NOT IN (SELECT document FROM leaves) GROUP BY document
            """)
        defer { list.finalize() }
        return try list.all { ($0.number(0), Int($0.integer(1))) }
    }

    /// How many documents, not counting deleted ones, a listing by id has before it comes to this id.
    package func documentCount(before id: String, isDescending: Bool) throws(CofferError) -> Int {
        let count =
            isDescending
            ? Statement(connection, "SELECT count(*) FROM documents WHERE id > ?1 AND flags & 1 = 0")
            : Statement(connection, "SELECT count(*) FROM documents WHERE id < ?1 AND flags & 1 = 0")
        defer { count.finalize() }
        try count.bind(1, id)
        return try count.first { Int($0.integer(0)) } ?? 0
    }

    /// How many documents are deleted.
    package func deletedDocumentCount() throws(CofferError) -> Int {
        let count = Statement(connection, "SELECT count(*) FROM documents WHERE flags & 1 <> 0")
        defer { count.finalize() }
        return try count.first { Int($0.integer(0)) } ?? 0
    }
}
