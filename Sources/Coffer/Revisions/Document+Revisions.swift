internal import CofferModel
internal import CofferRecords
public import CofferSealing

extension Document {
    // MARK: Revisions

    /// The winning revision and those it was made from, the oldest first; empty when nothing was ever saved. Ends with
    /// the deletion where the document is deleted.
    ///
    /// Goes back ``Database/maxRevTreeDepth`` revisions.
    ///
    /// - Throws: `invalidDocumentID` (400), `damaged` (500), `closed` (500).
    public var revisionHistory: [SavedRevision] {
        get throws(CofferError) {
            try revisions { (tables, row) throws(CofferError) in
                try tables.trees.history(from: row.winner, inDocument: row.number).reversed()
            }
        }
    }

    /// All revisions that nothing follows, deletions included: the ends of all branches, the current one first.
    ///
    /// One, as long as nobody made a branch: see `saveAllowingConflict()`.
    ///
    /// - Throws: as ``revisionHistory``.
    public var leafRevisions: [SavedRevision] {
        get throws(CofferError) {
            try revisions { (tables, row) throws(CofferError) in try tables.leafRevisions(of: row) }
        }
    }

    /// The revisions that are in conflict: ends of branches that are not deleted, the current one first.
    ///
    /// One where there is no conflict, none where the document is deleted or missing. The order is the same on every copy of
    /// the database. `resolveConflicts(_:)` makes one of them.
    ///
    /// - Throws: as ``revisionHistory``.
    public var conflictingRevisions: [SavedRevision] {
        get throws(CofferError) {
            try revisions { (tables, row) throws(CofferError) in
                try tables.leafRevisions(of: row, includingDeleted: false)
            }
        }
    }

    private func revisions(
        _ read: (borrowing Snapshot, DocumentRow) throws(CofferError) -> [RevisionRow]
    ) throws(CofferError) -> [SavedRevision] {
        let id = try checkedID
        let found: [RevisionRow] = try storage.read { (tables) throws(CofferError) in
            guard let row = try tables.document(id) else { return [] }
            return try read(tables, row)
        }
        return found.map { SavedRevision(document: self, $0) }
    }

    // MARK: Conflicts

    /// Makes one revision of all that are in conflict, in one transaction: the current one's successor; the others are
    /// deleted.
    ///
    /// ```swift
    /// try document.resolveConflicts { draft, others in
    ///     for other in others { draft.properties["tags"] = merged(draft["tags"], try other["tags"]) }
    /// }
    /// ```
    ///
    /// Two copies of the database that resolve a conflict in the same way make the same revisions, so that no new conflict
    /// comes of it. To do it by hand: in a transaction, save what is to stay as the successor of one of the
    /// ``conflictingRevisions``, and call `deleteDocument()` on each other one.
    ///
    /// - Parameter merge: changes the draft, which follows the current revision and has its properties and attachments, into
    ///   what is to stay. The others come with it, the best first. It is not called where there is no conflict. Leaving the
    ///   draft as it is keeps the current revision.
    /// - Returns: the winning revision then; nil if there isn't one.
    /// - Throws: what `merge` throws, and what saving throws. Nothing is changed then.
    @discardableResult
    public func resolveConflicts(
        _ merge: (_ draft: UnsavedRevision, _ others: [SavedRevision]) throws -> Void
    ) throws -> SavedRevision? {
        try database.inTransaction {
            let conflicting = try conflictingRevisions
            guard let current = conflicting.first, conflicting.count > 1 else { return conflicting.first }
            let draft = try current.createRevision()
            try merge(draft, Array(conflicting.dropFirst()))
            for other in conflicting.dropFirst() { try other.deleteDocument() }
            let isUnchanged =
                try !draft.isDeletion && draft.draft(allowsConflict: false).content.body.bytes == current.body
            return isUnchanged ? current : try draft.save()
        }
    }

    // MARK: Purging

    /// Removes the document with all its revisions, as if it had never been there. No other copy of the database learns of
    /// it: to have them lose it too, `delete()` it.
    ///
    /// The contents of attachments go with the next ``Database/compact()``.
    ///
    /// - Returns: the ids of the revisions that were removed, the latest generation first.
    /// - Throws: `invalidDocumentID` (400), `readOnly` (403), `documentNotFound` (404) when nothing was ever saved, `closed`
    ///   (500), `busy` (503).
    @discardableResult
    public func purge() throws(CofferError) -> [RevisionID] {
        try purge { (tables, row) throws(CofferError) in try tables.leafRevisions(of: row).map(\.id) }
    }

    /// Removes revisions that nothing follows, and their ancestors that no other branch has, as if they had never been
    /// there; the document too, when none is left.
    ///
    /// What another revision follows stays unless that goes too: a document does not go back to what it was before. Takes
    /// time in proportion to the document's revisions.
    ///
    /// - Parameter revisions: which. Ids that the document doesn't have mean nothing.
    /// - Returns: the ids of the revisions that were removed, the latest generation first.
    /// - Throws: as `purge()`.
    @discardableResult
    public func purge(_ revisions: [RevisionID]) throws(CofferError) -> [RevisionID] {
        try purge { (_, _) throws(CofferError) in revisions }
    }

    private func purge(
        _ ids: (borrowing Snapshot, DocumentRow) throws(CofferError) -> [RevisionID]
    ) throws(CofferError) -> [RevisionID] {
        let document = try checkedID
        return try storage.healingIndexes { () throws(CofferError) in
            try storage.write { (writer) throws(CofferError) in
                guard let row = try writer.tables.document(document) else {
                    throw CofferError(.documentNotFound, of: subject)
                }
                return try Purge(of: document).remove(try ids(writer.tables, row), in: writer) ?? []
            }
        }
    }
}

extension Snapshot {
    /// The document's leaves without their bodies, the winner first.
    func leafRevisions(
        of row: DocumentRow, includingDeleted: Bool = true
    ) throws(CofferError) -> [RevisionRow] {
        guard row.flags.contains(.isBranched) else {
            guard includingDeleted || !row.flags.contains(.isDeleted) else { return [] }
            return [try leaf(row.winner, row, nil)]
        }
        var leaves: [RevisionRow] = []
        for leaf in try trees.leaves(ofDocument: row.number) where includingDeleted || !leaf.rank.isDeletion {
            leaves.append(try self.leaf(leaf.sequence, row, leaf.rank))
        }
        return leaves
    }

    private func leaf(
        _ sequence: SequenceNumber, _ row: DocumentRow, _ rank: LeafRank?
    ) throws(CofferError) -> RevisionRow {
        guard let leaf = try trees.revision(sequence: sequence, inDocument: row.number) else {
            throw missing("revision \(sequence)")
        }
        guard rank == nil || rank == LeafRank(leaf.id, isDeletion: leaf.isDeletion) else {
            throw CofferError(.damaged, of: "revision \(sequence)", "it is no longer the leaf that was expected")
        }
        return leaf
    }
}

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
