internal import CofferModel
internal import CofferRecords

/// One revision that a commit added to the database, or that became the current one since it purged others, or one document
/// that it purged.
public struct DatabaseChange: Sendable {
    /// The document's id.
    public let documentID: String

    /// The revision that was added; nil when the document was purged.
    public let revisionID: RevisionID?

    /// The revision's number in the order in which the database got them. A purge has none of its own, and says the last one
    /// used before it.
    public let sequence: Int

    /// Whether the revision deletes the document.
    public let isDeletion: Bool

    /// Whether the revision was the current one when it was added. False for a losing branch and for a purge.
    public let isCurrentRevision: Bool

    /// Whether the document had conflicting revisions then: two or more that nobody has replaced or deleted.
    public let isInConflict: Bool

    /// Whether the revision came from a peer, and not from a save in this process.
    public let isFromPeer: Bool

    /// The database that a pull brought the revision from: the replication's `remoteURL`, without name and password. Nil for
    /// revisions that were saved here, that a peer pushed, or that `putExistingRevision` was given.
    public let source: String?

    /// Whether the document was purged: it is gone as if it had never been there, and no peer will learn of it.
    public var isPurge: Bool { revisionID == nil }

    init(
        documentID: String, revisionID: RevisionID?, sequence: SequenceNumber, isDeletion: Bool = false,
        isCurrentRevision: Bool = false, isInConflict: Bool = false, isFromPeer: Bool = false,
        source: String? = nil
    ) {
        self.documentID = documentID
        self.revisionID = revisionID
        self.sequence = sequence.value
        self.isDeletion = isDeletion
        self.isCurrentRevision = isCurrentRevision
        self.isInConflict = isInConflict
        self.isFromPeer = isFromPeer
        self.source = source
    }
}

extension DatabaseChange: Equatable {
    /// Whether both say the same of the same document: one whose id has the same bytes.
    public static func == (left: DatabaseChange, right: DatabaseChange) -> Bool {
        left.documentID.utf8.elementsEqual(right.documentID.utf8) && left.revisionID == right.revisionID
            && left.sequence == right.sequence && left.isDeletion == right.isDeletion
            && left.isCurrentRevision == right.isCurrentRevision && left.isInConflict == right.isInConflict
            && left.isFromPeer == right.isFromPeer && left.source == right.source
    }
}

/// A notification to observers of a database: a commit, or the fact that they missed some.
public enum DatabaseChanges: Sendable, Equatable {
    /// What one commit of an outermost transaction changed, in the order in which it did. Never empty.
    case committed([DatabaseChange])

    /// Commits came faster than they were taken, and those after this sequence were dropped.
    ///
    /// ``Database/changes(since:options:)`` says what they changed, but for purges, which leave nothing. It may bring some
    /// that are reported once more afterwards.
    case missed(since: Int)

    /// The commit's changes, a document's revision each; none where commits were missed. Not ``Database/changes``, whose
    /// elements these are.
    public var changes: [DatabaseChange] {
        if case .committed(let changes) = self { changes } else { [] }
    }
}
