internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// Removes revisions of a document as if they had never been there: no other copy of the database learns of it.
struct Purge {
    let document: DocumentID

    init(of document: DocumentID) { self.document = document }

    /// Removes the document with all its revisions.
    ///
    /// - Returns: whether there was one.
    func removeDocument(in writer: borrowing Writer) throws(CofferError) -> Bool {
        guard let row = try writer.tables.document(document) else { return false }
        writer.state.changes.noteReclaimable(
            ReclaimableSpace.usualByteCount + (try writer.tables.attachments.byteCount(usedBy: row.winner)))
        try writer.change { () throws(CofferError) in
            try writer.records.purging.purge(document, number: row.number, lastSequence: writer.state.lastSequence)
            if try writer.state.indexTablesAreThere(in: writer.tables) {
                try writer.records.indexes.forget(row.number)
            }
        }
        writer.state.notePurged(document, before: row.flags)
        return true
    }

    /// Removes leaves of the document, and their ancestors that no other leaf has; the document too, when nothing stays.
    ///
    /// Takes time in proportion to its revisions.
    ///
    /// - Returns: what was removed, the latest generation first; nil if there is no such document.
    func remove(_ ids: [RevisionID], in writer: borrowing Writer) throws(CofferError) -> [RevisionID]? {
        guard let row = try writer.tables.document(document) else { return nil }
        let stored = DocumentTree(row.number)
        var tree = try stored.load(from: writer.tables)
        var removed = tree.purge(ids)
        guard !removed.isEmpty else { return [] }
        // What was kept for them alone.
        removed += tree.prune(to: try Pruning(in: writer).depth)
        removed.sort { $0.id > $1.id }
        let leaves = tree.leaves
        guard let winner = leaves.first else {
            _ = try removeDocument(in: writer)
            return removed.map(\.id)
        }
        let after = try writer.change { () throws(CofferError) in
            try writer.records.purging.keep(writer.state.lastSequence)
            for revision in removed { try writer.records.trees.deleteRevision(revision.sequence) }
            let after = try stored.replaceLeaves(by: leaves, winner: winner, in: writer)
            try writer.records.update(after, of: document)
            if try writer.state.indexTablesAreThere(in: writer.tables) {
                try writer.records.indexes.owe(row.number, document)
            }
            return after
        }
        writer.state.noteSaved(
            winner.id, winner.sequence, isDeletion: winner.isDeletion, of: document, before: row.flags, after: after)
        return removed.map(\.id)
    }
}
