internal import CofferModel
internal import CofferSealing
internal import CofferRecords

extension Writer {
    // MARK: Adding

    /// Adds a document with its first revision, unless there is one with this id, deleted or not.
    ///
    /// - Returns: the new revision's sequence, or nil when there is such a document.
    func insertNewDocument(_ document: DocumentID, _ revision: NewRevision) throws(CofferError) -> SequenceNumber? {
        try change { () throws(CofferError) in
            let row = DocumentRow(number: DocumentNumber(first: nextSequence), winner: nextSequence, flags: [])
            guard try records.insert(row, of: document) else { return nil }
            return try insert(revision, of: document, number: nil, parent: nil)
        }
    }

    /// Adds a revision to a document that is there, and prunes what is too old then.
    ///
    /// - Parameters:
    ///   - row: the document's row.
    ///   - parent: the revision that it follows; nil if it begins a line of its own.
    /// - Returns: the new revision's sequence, and the document's row with it.
    func insertRevision(
        _ revision: NewRevision, of document: DocumentID, _ row: DocumentRow, after parent: RevisionReference?
    ) throws(CofferError) -> (sequence: SequenceNumber, row: DocumentRow) {
        try change { () throws(CofferError) in
            let sequence = try insert(revision, of: document, number: row.number, parent: parent?.sequence)
            if let parent { try noteReplaced(parent.sequence, by: revision) }
            let after = try place(
                StoredLeaf(rank: LeafRank(revision.id, isDeletion: revision.isDeletion), sequence: sequence),
                after: parent, in: row)
            try records.update(after, of: document)
            return (sequence, after)
        }
    }

    /// Makes a revision that was just added a leaf in the place of its parent, if that was one, and forgets what is too old
    /// then.
    ///
    /// - Parameters:
    ///   - parent: its nearest ancestor that was there before; nil if there isn't one.
    ///   - row: the document's row before.
    /// - Returns: the document's row with the leaf.
    func place(
        _ leaf: StoredLeaf, after parent: RevisionReference?, in row: DocumentRow
    ) throws(CofferError) -> DocumentRow {
        let number = row.number
        if !row.flags.contains(.isBranched) {
            if let parent, parent.sequence == row.winner {
                // One line, as most documents are: no need to look at anything else.
                try pruneLine(number, upTo: leaf.rank.id.generation)
                return DocumentRow(
                    number: number, winner: leaf.sequence, flags: leaf.rank.isDeletion ? .isDeleted : [])
            }
            let rank = LeafRank(
                try tables.revisionID(sequence: row.winner), isDeletion: row.flags.contains(.isDeleted))
            try records.trees.insert(StoredLeaf(rank: rank, sequence: row.winner), ofDocument: number)
            try records.trees.insert(leaf, ofDocument: number)
            return try rowOfLeaves(number)
        }
        let replaced: RevisionReference? =
            if let parent, try records.trees.deleteLeaf(parent.id, ofDocument: number) { parent } else { nil }
        try records.trees.insert(leaf, ofDocument: number)
        if let replaced { try pruneBranch(number, of: leaf.rank.id, after: replaced) }
        return try rowOfLeaves(number)
    }

    /// The row of a document that has leaves in the table of leaves.
    func rowOfLeaves(_ number: DocumentNumber) throws(CofferError) -> DocumentRow {
        let best = try tables.trees.bestLeaves(ofDocument: number)
        guard let winner = best.first else {
            throw CofferError(.damaged, of: records.subject, "document \(number) has no leaves")
        }
        var flags: DocumentFlags = []
        if winner.rank.isDeletion { flags.insert(.isDeleted) }
        if best.count > 1 { flags.insert(.isBranched) }
        if best.count > 1, !best[1].rank.isDeletion { flags.insert(.isInConflict) }
        return DocumentRow(number: number, winner: winner.sequence, flags: flags)
    }
}
