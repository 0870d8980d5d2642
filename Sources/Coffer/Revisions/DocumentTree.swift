internal import CofferModel
internal import CofferSealing
internal import CofferRecords

/// The revisions of one document: which of them are leaves, and which of these wins.
///
/// A document with one leaf has only its row. One that is branched has its leaves in `leaves`, the winner first.
struct DocumentTree {
    let number: DocumentNumber

    init(_ number: DocumentNumber) { self.number = number }

    /// Makes a revision that was just added a leaf in the place of its parent, if that was one, and prunes what is too old
    /// then.
    ///
    /// - Parameters:
    ///   - parent: its nearest ancestor that was there before; nil if there isn't one.
    ///   - row: the document's row before.
    /// - Returns: the document's row with the leaf.
    func place(
        _ leaf: StoredLeaf, after parent: RevisionReference?, _ row: DocumentRow, in writer: borrowing Writer
    ) throws(CofferError) -> DocumentRow {
        if !row.flags.contains(.isBranched) {
            if let parent, parent.sequence == row.winner {
                // One line, as most documents are: no need to look at anything else.
                try Pruning(in: writer).pruneLine(number, upTo: leaf.rank.id.generation, in: writer)
                return DocumentRow(
                    number: number, winner: leaf.sequence, flags: leaf.rank.isDeletion ? .isDeleted : [])
            }
            let rank = LeafRank(
                try writer.tables.revisionID(sequence: row.winner), isDeletion: row.flags.contains(.isDeleted))
            try writer.records.trees.insert(StoredLeaf(rank: rank, sequence: row.winner), ofDocument: number)
            try writer.records.trees.insert(leaf, ofDocument: number)
            return try rowOfLeaves(in: writer.tables)
        }
        let replaced: RevisionReference? =
            if let parent, try writer.records.trees.deleteLeaf(parent.id, ofDocument: number) { parent } else { nil }
        try writer.records.trees.insert(leaf, ofDocument: number)
        if let replaced {
            try Pruning(in: writer).pruneBranch(number, of: leaf.rank.id, after: replaced, in: writer)
        }
        return try rowOfLeaves(in: writer.tables)
    }

    /// Makes what is left of a tree the document's, after revisions of it were removed.
    ///
    /// - Parameter leaves: the tree's, the winner first. There is one at least.
    /// - Returns: the document's row.
    func replaceLeaves(
        by leaves: [RevisionTree.Revision], winner: RevisionTree.Revision, in writer: borrowing Writer
    ) throws(CofferError) -> DocumentRow {
        try writer.records.trees.deleteLeaves(ofDocument: number)
        guard leaves.count > 1 else {
            return DocumentRow(number: number, winner: winner.sequence, flags: winner.isDeletion ? .isDeleted : [])
        }
        for leaf in leaves {
            let rank = LeafRank(leaf.id, isDeletion: leaf.isDeletion)
            try writer.records.trees.insert(StoredLeaf(rank: rank, sequence: leaf.sequence), ofDocument: number)
        }
        return try rowOfLeaves(in: writer.tables)
    }

    /// The row of a document that has leaves in the table of leaves.
    private func rowOfLeaves(in tables: borrowing Snapshot) throws(CofferError) -> DocumentRow {
        let best = try tables.trees.bestLeaves(ofDocument: number)
        guard let winner = best.first else {
            throw CofferError(.damaged, of: tables.subject, "document \(number) has no leaves")
        }
        var flags: DocumentFlags = []
        if winner.rank.isDeletion { flags.insert(.isDeleted) }
        if best.count > 1 { flags.insert(.isBranched) }
        if best.count > 1, !best[1].rank.isDeletion { flags.insert(.isInConflict) }
        return DocumentRow(number: number, winner: winner.sequence, flags: flags)
    }

    /// Whether a revision that is known to be there is a leaf.
    ///
    /// - Parameter row: the document's row.
    func isLeaf(
        _ revision: RevisionReference, _ row: DocumentRow, in tables: borrowing Snapshot
    ) throws(CofferError) -> Bool {
        if revision.sequence == row.winner { return true }
        return try row.flags.contains(.isBranched) ? tables.trees.isLeaf(revision, ofDocument: number) : false
    }

    /// The whole tree. The tags of its revisions are their sequences.
    func load(from tables: borrowing Snapshot) throws(CofferError) -> RevisionTree {
        var tree = RevisionTree()
        var ids: [SequenceNumber: RevisionID] = [:]
        do throws(CofferError) {
            for revision in try tables.trees.revisions(ofDocument: number) {
                ids[revision.sequence] = revision.id
                try tree.add(
                    revision.id, parent: revision.parent.flatMap { ids[$0] }, isDeletion: revision.isDeletion,
                    tag: revision.sequence.rawValue)
            }
        } catch  where error.code == .invalidArgument {
            throw CofferError(
                .damaged, of: tables.subject, "the revisions of document \(number) form no tree", cause: error)
        }
        return tree
    }
}

extension RevisionTree.Revision {
    /// The sequence that the tree's revision was read with.
    var sequence: SequenceNumber { SequenceNumber(tag) }
}
