internal import CofferModel
internal import CofferRecords

extension Writer {
    /// Notes a revision that was added, for those who watch and for the number of documents.
    ///
    /// - Parameters:
    ///   - before: the flags that the document had; nil when it is new.
    ///   - after: what the document's row says with the revision.
    ///   - source: the database that a pull brought it from.
    func noteSaved(
        _ revisionID: RevisionID, _ sequence: SequenceNumber, isDeletion: Bool, of document: DocumentID,
        before: DocumentFlags?, after: DocumentRow, isFromPeer: Bool = false, source: String? = nil
    ) {
        state.changes.note(
            DatabaseChange(
                documentID: document.text, revisionID: revisionID, sequence: sequence, isDeletion: isDeletion,
                isCurrentRevision: after.winner == sequence, isInConflict: after.flags.contains(.isInConflict),
                isFromPeer: isFromPeer, source: source),
            documentDelta: after.flags.documentCount - (before?.documentCount ?? 0),
            // A revision that was there before counts now: another one was purged.
            isPurge: sequence != state.lastSequence)
    }

    /// Notes a document that was purged.
    ///
    /// - Parameter before: the flags that it had.
    func notePurged(_ document: DocumentID, before: DocumentFlags) {
        state.changes.note(
            DatabaseChange(documentID: document.text, revisionID: nil, sequence: state.lastSequence),
            documentDelta: -before.documentCount, isPurge: true)
    }
}

extension DocumentFlags {
    /// What a document with these flags adds to the number of documents.
    fileprivate var documentCount: Int { contains(.isDeleted) ? 0 : 1 }
}
