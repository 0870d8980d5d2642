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

    fileprivate var flags: RevisionFlags {
        var flags: RevisionFlags = []
        if isDeletion { flags.insert(.isDeletion) }
        if content?.attachments.isEmpty == false { flags.insert(.hasAttachments) }
        if isForeign { flags.insert(.isForeign) }
        return flags
    }
}

extension Writer {
    /// Adds a revision's row.
    ///
    /// - Parameter number: the document's; nil for its first revision.
    /// - Returns: the revision's sequence.
    func insert(
        _ revision: NewRevision, of document: DocumentID, number: DocumentNumber?, parent: SequenceNumber?
    ) throws(CofferError) -> SequenceNumber {
        let sequence = try takeSequence()
        try records.insertRevision(
            revision.id, revision.flags, sequence: sequence, of: document,
            number: number ?? DocumentNumber(first: sequence), parent: parent, body: revision.content?.body.bytes)
        return sequence
    }
}
