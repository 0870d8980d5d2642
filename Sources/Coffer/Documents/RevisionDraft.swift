internal import CofferModel
internal import CofferSealing

/// A revision that is to be saved: what is new about it, checked as far as that goes without the database.
///
/// A value that may cross threads, so that the calls that wait and those that suspend save the same way.
struct RevisionDraft: Sendable {
    enum Parent: Sendable {
        /// There must be no such document, unless it is deleted.
        case none
        /// This revision, which must not have been replaced.
        case revision(RevisionID)
        /// Whatever counts right now.
        case winner
    }

    let document: Document
    let documentID: DocumentID
    let parent: Parent
    let isDeletion: Bool
    let body: CanonicalBody
    /// Whether the revision keeps its parent's attachments. Otherwise `body` says which it has.
    let inheritsAttachments: Bool
    /// Contents that the body names and that the store has not saved.
    let staged: [StagedContent]
    /// Whether the parent may have been replaced.
    let allowsConflict: Bool

    /// - Throws: `invalidDocumentID` (400).
    init(
        _ document: Document, parent: Parent, isDeletion: Bool = false, body: CanonicalBody,
        inheritsAttachments: Bool = false, staged: [StagedContent] = [], allowsConflict: Bool = false
    ) throws(CofferError) {
        self.document = document
        documentID = try document.checkedID
        self.parent = parent
        self.isDeletion = isDeletion
        self.body = body
        self.inheritsAttachments = inheritsAttachments
        self.staged = staged
        self.allowsConflict = allowsConflict
    }

    /// Saves the revision, in a transaction of its own or in the one that the calling thread is in.
    func save() throws(CofferError) -> SavedRevision {
        let stored = try document.database.storage.write { (writer) throws(CofferError) in try writer.save(self) }
        return SavedRevision(document: document, stored)
    }
}

extension Writer {
    /// Saves a revision, as part of the transaction under way.
    ///
    /// - Throws: `documentNotFound` (404), `conflict` (409). Nothing was changed then.
    func save(_ draft: RevisionDraft) throws(CofferError) -> StoredRevision {
        let subject = draft.document.subject
        switch draft.parent {
        case .none:
            if let new = try saveFirst(draft) { return new }
            guard let row = try tables.document(draft.documentID) else {
                throw CofferError(.documentNotFound, of: subject)
            }
            guard row.flags.contains(.isDeleted) else {
                throw CofferError(.conflict, of: subject, "there is such a document already")
            }
            return try add(draft, to: row, parent: try tables.revisionID(sequence: row.winner), row.winner)
        case .winner:
            guard let row = try tables.document(draft.documentID) else {
                if let new = try saveFirst(draft) { return new }
                throw CofferError(.documentNotFound, of: subject)
            }
            return try add(draft, to: row, parent: try tables.revisionID(sequence: row.winner), row.winner)
        case .revision(let parent):
            guard let row = try tables.document(draft.documentID) else {
                throw CofferError(.documentNotFound, of: subject)
            }
            guard let sequence = try sequence(ofParent: parent, draft.allowsConflict, row) else {
                throw CofferError(.conflict, of: subject, "revision \(parent) has been replaced")
            }
            return try add(draft, to: row, parent: parent, sequence)
        }
    }

    /// Saves the first revision of a document that is not there; nil when it is, or when there is nothing to delete.
    private func saveFirst(_ draft: RevisionDraft) throws(CofferError) -> StoredRevision? {
        guard !draft.isDeletion else { return nil }
        let id = try makeRevisionID(parent: nil, draft, draft.body)
        let content = try RevisionContent(draft.body, subject: draft.document.subject)
        try checkContents(content, of: draft, generation: id.generation)
        guard let sequence = try insertNewDocument(draft.documentID, revisionID: id, content) else { return nil }
        try useContents(content, by: sequence)
        noteSaved(
            id, sequence, isDeletion: false, of: draft.documentID, before: nil,
            after: DocumentRow(number: sequence, winner: sequence, flags: []), isInConflict: false)
        return StoredRevision(
            sequence: sequence, document: sequence, parent: nil, isDeletion: false, id: id, body: draft.body.bytes)
    }

    private func makeRevisionID(
        parent: RevisionID?, _ draft: RevisionDraft, _ body: CanonicalBody
    ) throws(CofferError) -> RevisionID {
        try RevisionID.make(parent: parent, isDeletion: draft.isDeletion, body: body, digest: &digest)
    }

    /// The draft's body, with the attachments that it has from its parent.
    private func body(of draft: RevisionDraft, parent: Int64) throws(CofferError) -> CanonicalBody {
        guard draft.inheritsAttachments, try tables.flags(sequence: parent).contains(.hasAttachments),
            let parentBody = try tables.revision(sequence: parent, of: draft.documentID).body
        else { return draft.body }
        var object = try JSONObject(draft.body)
        object["_attachments"] = try JSONObject(canonical: parentBody.span)["_attachments"]
        return try DocumentBody(object).body
    }

    /// Where the parent is, if it may have a child now: a leaf, or, where conflicts are allowed, any revision.
    private func sequence(
        ofParent parent: RevisionID, _ allowsConflict: Bool, _ row: DocumentRow
    ) throws(CofferError) -> Int64? {
        // Most often it is the winner.
        if try tables.revisionID(sequence: row.winner) == parent { return row.winner }
        guard allowsConflict || row.flags.contains(.isBranched),
            let sequence = try tables.sequence(of: parent, inDocument: row.number)
        else { return nil }
        if allowsConflict { return sequence }
        return try tables.hasChild(sequence, inDocument: row.number) ? nil : sequence
    }

    private func add(
        _ draft: RevisionDraft, to row: DocumentRow, parent: RevisionID, _ parentSequence: Int64
    ) throws(CofferError) -> StoredRevision {
        let body = try body(of: draft, parent: parentSequence)
        let id = try makeRevisionID(parent: parent, draft, body)
        let extendsWinner = parentSequence == row.winner && !row.flags.contains(.isBranched)
        if !extendsWinner, let twin = try tables.sequence(of: id, inDocument: row.number) {
            // The same edit of the same revision is the same revision.
            return try tables.revision(sequence: twin, of: draft.documentID)
        }
        let content = try RevisionContent(body, subject: draft.document.subject)
        try checkContents(content, of: draft, generation: id.generation)
        var after = row
        var isInConflict = false
        let sequence = try insertRevision(
            of: draft.documentID, number: row.number, parent: parentSequence, isDeletion: draft.isDeletion, id: id,
            content
        ) { (sequence) throws(CofferError) in
            if extendsWinner {
                after = DocumentRow(
                    number: row.number, winner: sequence, flags: draft.isDeletion ? .isDeleted : [])
            } else {
                (after, isInConflict) = try rowOfTree(row.number)
            }
            return after
        }
        try useContents(content, by: sequence)
        noteSaved(
            id, sequence, isDeletion: draft.isDeletion, of: draft.documentID, before: row.flags, after: after,
            isInConflict: isInConflict)
        return StoredRevision(
            sequence: sequence, document: row.number, parent: parentSequence, isDeletion: draft.isDeletion, id: id,
            body: body.bytes)
    }

    /// The row that a document with this tree has, and whether two leaves of it are no deletions: its leaves decide.
    private func rowOfTree(_ number: Int64) throws(CofferError) -> (DocumentRow, isInConflict: Bool) {
        let all = try tables.revisions(ofDocument: number)
        let parents = Set(all.compactMap(\.parent))
        let leaves = all.filter { !parents.contains($0.sequence) }
        let winner = leaves.max { RevisionID.isWinner(($1.id, $1.isDeletion), over: ($0.id, $0.isDeletion)) }
        guard let winner else { preconditionFailure("a tree without leaves") }
        var flags: DocumentFlags = winner.isDeletion ? .isDeleted : []
        if leaves.count > 1 { flags.insert(.isBranched) }
        return (
            DocumentRow(number: number, winner: winner.sequence, flags: flags),
            leaves.filter { !$0.isDeletion }.count > 1
        )
    }
}
