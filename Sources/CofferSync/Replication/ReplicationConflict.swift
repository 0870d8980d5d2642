public import Coffer

/// A document that a pull has brought a revision of, and that has another one here which that doesn't follow.
public struct ReplicationConflict: Sendable {
    /// The document's id.
    public let documentID: String

    /// The revision that was here.
    public let ours: SavedRevision

    /// The revision that came.
    public let theirs: SavedRevision
}

/// What becomes of a conflict: see ``ReplicationOptions/conflictHandler``.
public enum ConflictResolution: Sendable {
    /// Ours stays, and theirs is deleted.
    case ours
    /// Theirs stays, and ours is deleted.
    case theirs
    /// A revision with these properties, and the attachments of theirs, follows theirs; ours is deleted.
    case merged(JSONObject)
}

extension ExistingRevisionResult {
    /// Resolves the conflicts that the revision has with others of its document, in the transaction under way.
    ///
    /// - Throws: what `handler` throws, and what saving throws. Its document is as the pull left it then.
    func resolveConflicts(_ handler: (ReplicationConflict) throws -> ConflictResolution) throws {
        guard !wasKnown else { return }
        let document = revision.document
        var theirs = revision
        // What came may have had no conflict, or have been deleted where it came from.
        let conflicting = try document.conflictingRevisions
        guard conflicting.count > 1, conflicting.contains(theirs) else { return }
        try document.database.inTransaction {
            for ours in conflicting where ours != revision {
                let conflict = ReplicationConflict(documentID: document.documentID, ours: ours, theirs: theirs)
                switch try handler(conflict) {
                case .ours:
                    // Nothing is left of what came. What else is in conflict here was so before.
                    try theirs.deleteDocument()
                    return
                case .theirs:
                    try ours.deleteDocument()
                case .merged(let properties):
                    let draft = try theirs.createRevision()
                    draft.properties = properties
                    try ours.deleteDocument()
                    theirs = try draft.save()
                }
            }
        }
    }
}
