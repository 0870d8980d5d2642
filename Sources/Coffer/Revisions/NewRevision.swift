internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// A revision that is to get a row.
struct NewRevision {
    let id: RevisionID
    let isDeletion: Bool
    /// Nil for an ancestor of which only the id is known.
    let content: RevisionBody?
    /// Whether another database gave it its id.
    var isForeign = false

    private var flags: RevisionFlags {
        var flags: RevisionFlags = []
        if isDeletion { flags.insert(.isDeletion) }
        if content?.attachments.isEmpty == false { flags.insert(.hasAttachments) }
        if isForeign { flags.insert(.isForeign) }
        return flags
    }

    /// The leaf that it is under `sequence`.
    func leaf(_ sequence: SequenceNumber) -> StoredLeaf {
        StoredLeaf(rank: LeafRank(id, isDeletion: isDeletion), sequence: sequence)
    }

    // MARK: Adding

    /// Adds a document with this as its first revision, unless there is one with this id, deleted or not.
    ///
    /// - Returns: the revision's sequence, or nil when there is such a document.
    func insertDocument(_ document: DocumentID, in writer: borrowing Writer) throws(CofferError) -> SequenceNumber? {
        try writer.change { () throws(CofferError) in
            let next = writer.state.nextSequence
            let row = DocumentRow(number: DocumentNumber(first: next), winner: next, flags: [])
            guard try writer.records.insert(row, of: document) else { return nil }
            return try insertRow(of: document, number: nil, parent: nil, in: writer)
        }
    }

    /// Adds the revision to a document that is there, and prunes what is too old then.
    ///
    /// - Parameters:
    ///   - row: the document's row.
    ///   - parent: the revision that it follows; nil if it begins a line of its own.
    /// - Returns: the revision's sequence, and the document's row with it.
    func insert(
        into document: DocumentID, _ row: DocumentRow, after parent: RevisionReference?, in writer: borrowing Writer
    ) throws(CofferError) -> (sequence: SequenceNumber, row: DocumentRow) {
        try writer.change { () throws(CofferError) in
            let sequence = try insertRow(of: document, number: row.number, parent: parent?.sequence, in: writer)
            if let parent { try noteReclaimable(of: parent.sequence, in: writer) }
            let after = try DocumentTree(row.number).place(leaf(sequence), after: parent, row, in: writer)
            try writer.records.update(after, of: document)
            return (sequence, after)
        }
    }

    /// Adds the revision's row.
    ///
    /// - Parameter number: the document's; nil for its first revision.
    /// - Returns: the revision's sequence.
    func insertRow(
        of document: DocumentID, number: DocumentNumber?, parent: SequenceNumber?, in writer: borrowing Writer
    ) throws(CofferError) -> SequenceNumber {
        let sequence = try writer.takeSequence()
        try writer.records.insertRevision(
            id, flags, sequence: sequence, of: document, number: number ?? DocumentNumber(first: sequence),
            parent: parent, body: content?.body.bytes)
        return sequence
    }

    /// Notes what a compaction would give back of the revision that this one follows.
    ///
    /// About as much as this one holds: a look at the parent would cost more than it is worth.
    func noteReclaimable(of parent: SequenceNumber, in writer: borrowing Writer) throws(CofferError) {
        var byteCount = content?.body.bytes.count ?? 0
        if isDeletion {
            byteCount += ReclaimableSpace.usualByteCount
            byteCount += try writer.tables.attachments.byteCount(usedBy: parent)
        }
        writer.state.changes.noteReclaimable(byteCount)
    }
}
