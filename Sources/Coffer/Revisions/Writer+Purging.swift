internal import CofferModel
internal import CofferRecords
internal import CofferSealing

extension Writer {
    /// Removes a document with all its revisions, as if it had never been there.
    ///
    /// - Returns: whether there was one.
    func purge(_ id: DocumentID) throws(CofferError) -> Bool {
        guard let row = try tables.document(id) else { return false }
        try notePurged(row)
        try change { () throws(CofferError) in
            try records.purging.purge(id, number: row.number, lastSequence: state.lastSequence)
            if try indexTablesAreThere() { try records.indexes.forget(row.number) }
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
            try records.purging.keep(state.lastSequence)
            for revision in removed { try records.trees.deleteRevision(revision.sequence) }
            try records.trees.deleteLeaves(ofDocument: row.number)
            var after = DocumentRow(
                number: row.number, winner: winner.sequence, flags: winner.isDeletion ? .isDeleted : [])
            if leaves.count > 1 {
                for leaf in leaves {
                    let rank = LeafRank(leaf.id, isDeletion: leaf.isDeletion)
                    try records.trees.insert(StoredLeaf(rank: rank, sequence: leaf.sequence), ofDocument: row.number)
                }
                after = try rowOfLeaves(row.number)
            }
            try records.update(after, of: document)
            if try indexTablesAreThere() { try records.indexes.owe(row.number, document) }
            return after
        }
        noteSaved(
            winner.id, winner.sequence, isDeletion: winner.isDeletion, of: document, before: row.flags, after: after)
        return removed.map(\.id)
    }
}
