package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// Takes a revision with its document's id and row, and says whether to go on.
package typealias VisitRevision = (consuming RevisionRow, DocumentID, DocumentRow) throws(CofferError) -> Bool

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
    private let byID, byIDDescending, bySequence, bySequenceDescending: Statement
    private let subject: String

    init(_ connection: borrowing Connection) {
        subject = connection.subject
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

    /// Documents from `first` to `last`, both included, in the order of their ids' bytes; nil is no bound.
    fileprivate func documents(
        from first: String?, to last: String?, descending: Bool, includesDeleted: Bool, loadsBodies: Bool,
        _ tables: borrowing Snapshot, _ visit: VisitRevision
    ) throws(CofferError) {
        let statement = descending ? byIDDescending : byID
        defer { statement.reset() }
        try statement.bind(1, first ?? "")
        // A blob comes after every text.
        if let last { try statement.bind(2, last) } else { try statement.bind(2, [UInt8]()) }
        try statement.bind(3, loadsBodies ? 1 : 0)
        try statement.bind(4, includesDeleted ? 1 : 0)
        var count = 0
        defer { tables.noteListed(count) }
        while try statement.step() {
            count += 1
            let id = try id(statement)
            guard !statement.isNull(0) else {
                throw CofferError(.damaged, of: subject, "the current revision of document \(id.text) is missing")
            }
            let winner = try tables.revision(statement, bodyColumns: (6, 7))
            let row = DocumentRow(of: winner, flags(statement))
            guard try visit(winner, id, row) else { return }
        }
    }

    /// Revisions in the order of their sequences, both bounds included, each with its document's id and row; a body only
    /// where it is the winner's.
    fileprivate func revisions(
        from first: SequenceNumber, to last: SequenceNumber, descending: Bool, loadsBodies: Bool,
        _ tables: borrowing Snapshot,
        _ visit: VisitRevision
    ) throws(CofferError) {
        let statement = descending ? bySequenceDescending : bySequence
        defer { statement.reset() }
        try statement.bind(1, first)
        try statement.bind(2, last)
        try statement.bind(3, loadsBodies ? 1 : 0)
        var count = 0
        defer { tables.noteListed(count) }
        while try statement.step() {
            count += 1
            guard !statement.isNull(9) else {
                throw CofferError(.damaged, of: subject, "the document of revision \(statement.integer(0)) is missing")
            }
            let revision = try tables.revision(statement, bodyColumns: (6, 7))
            let row = DocumentRow(
                number: revision.document, winner: statement.number(10), flags: flags(statement))
            guard try visit(revision, try id(statement), row) else { return }
        }
    }

    private func flags(_ statement: Statement) -> DocumentFlags { DocumentFlags(rawValue: statement.integer(8)) }

    private func id(_ statement: Statement) throws(CofferError) -> DocumentID {
        do throws(CofferError) {
            return try DocumentID(statement.text(9))
        } catch {
            throw CofferError(.damaged, of: subject, "a document has no id", cause: error)
        }
    }
}

extension Snapshot {
    /// Documents from `first` to `last`, both included, in the order of their ids' bytes; nil is no bound.
    package func documents(
        from first: String?, to last: String?, descending: Bool, includesDeleted: Bool, loadsBodies: Bool,
        visit: VisitRevision
    ) throws(CofferError) {
        try lists.documents(
            from: first, to: last, descending: descending, includesDeleted: includesDeleted, loadsBodies: loadsBodies,
            self, visit)
    }

    /// Revisions in the order of their sequences: see above.
    package func revisions(
        from first: SequenceNumber, to last: SequenceNumber, descending: Bool, loadsBodies: Bool,
        visit: VisitRevision
    ) throws(CofferError) {
        try lists.revisions(
            from: first, to: last, descending: descending, loadsBodies: loadsBodies, self, visit)
    }

    /// The leaves of a document that has more than one, the winner first, as far as they are known without their rows.
    package func leaves(of row: DocumentRow) throws(CofferError) -> [RevisionRow] {
        try trees.leaves(ofDocument: row.number).map { (leaf) throws(CofferError) in
            RevisionRow(
                sequence: leaf.sequence, document: row.number, parent: nil, isDeletion: leaf.rank.isDeletion,
                id: leaf.rank.id, body: nil)
        }
    }
}
