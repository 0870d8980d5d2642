internal import CofferModel
internal import CofferSealing
internal import CofferSQLite

/// The statements that remove a document without a trace.
struct PurgeTables: ~Copyable {
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

    func purge(_ id: DocumentID, number: Int64, lastSequence: Int64) throws(CofferError) {
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
    func keep(_ lastSequence: Int64) throws(CofferError) {
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
        try notePurged(row)
        try change { () throws(CofferError) in
            try purging.purge(id, number: row.number, lastSequence: state.lastSequence)
            if try indexTablesAreThere() { try indexing.forget(row.number) }
        }
        notePurged(id, before: row.flags)
        return true
    }

    /// Removes leaves of a document, and their ancestors that no other leaf has, as if they had never been there; the
    /// document too, when nothing stays.
    ///
    /// Takes time in proportion to its revisions.
    ///
    /// - Returns: what was removed, the latest generation first; nil if there is no such document.
    func purge(_ ids: [RevisionID], of document: DocumentID) throws(CofferError) -> [RevisionID]? {
        guard let row = try tables.document(document) else { return nil }
        var tree = try tree(row.number)
        var removed = tree.purge(ids)
        guard !removed.isEmpty else { return [] }
        // What was kept for them alone.
        removed += tree.prune(to: try revisionTreeDepth())
        removed.sort { $0.id > $1.id }
        let leaves = tree.leaves
        guard let winner = leaves.first else {
            _ = try purge(document)
            return removed.map(\.id)
        }
        let after = try change { () throws(CofferError) in
            try purging.keep(state.lastSequence)
            for revision in removed { try treeChanges.deleteRevision(revision.tag) }
            try treeChanges.deleteLeaves(ofDocument: row.number)
            var after = DocumentRow(
                number: row.number, winner: winner.tag, flags: winner.isDeletion ? .isDeleted : [])
            if leaves.count > 1 {
                for leaf in leaves {
                    let rank = LeafRank(leaf.id, isDeletion: leaf.isDeletion)
                    try treeChanges.insert(StoredLeaf(rank: rank, sequence: leaf.tag), ofDocument: row.number)
                }
                after = try rowOfLeaves(row.number)
            }
            try update(after, of: document)
            if try indexTablesAreThere() { try indexing.owe(row.number, document) }
            return after
        }
        noteSaved(
            winner.id, winner.tag, isDeletion: winner.isDeletion, of: document, before: row.flags, after: after)
        return removed.map(\.id)
    }
}
