internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// A revision that is to be saved: what is new about it, checked as far as that goes without the database.
///
/// Never changes, so that it may cross threads, and the calls that wait and those that suspend save the same way.
final class PreparedRevision: Sendable {
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
    let content: RevisionBody
    /// Whether the revision keeps its parent's attachments. Otherwise `content` says which it has.
    let inheritsAttachments: Bool
    /// Contents that it names and that the store has not saved.
    let staged: [StagedContent]
    /// Whether the parent may have been replaced.
    let allowsConflict: Bool

    /// - Parameter attachments: what the body's `_attachments` hold, where that is known.
    /// - Throws: `invalidDocumentID` (400); `invalidJSON` (400) where `_attachments` holds what is not an attachment.
    init(
        _ document: Document, parent: Parent, isDeletion: Bool = false, body: CanonicalBody,
        attachments: [(name: String, stub: AttachmentStub)]? = nil, inheritsAttachments: Bool = false,
        staged: [StagedContent] = [], allowsConflict: Bool = false
    ) throws(CofferError) {
        self.document = document
        documentID = try document.checkedID
        self.parent = parent
        self.isDeletion = isDeletion
        content = try RevisionBody(body, attachments: attachments, subject: document.subject)
        self.inheritsAttachments = inheritsAttachments
        self.staged = staged
        self.allowsConflict = allowsConflict
    }

    private init(_ draft: PreparedRevision, bringing staged: [StagedContent]) {
        document = draft.document
        documentID = draft.documentID
        parent = draft.parent
        isDeletion = draft.isDeletion
        content = draft.content
        inheritsAttachments = draft.inheritsAttachments
        self.staged = draft.staged + staged
        allowsConflict = draft.allowsConflict
    }

    /// The same revision with contents that it brings.
    func bringing(_ staged: [StagedContent]) -> PreparedRevision { PreparedRevision(self, bringing: staged) }

    /// Saves the revision, in a transaction of its own or in the one that the calling thread is in.
    func save() throws(CofferError) -> SavedRevision {
        let stored = try document.database.storage.write { (writer) throws(CofferError) in try writer.save(self) }
        return SavedRevision(document: document, stored)
    }
}

extension Writer {
    /// Notes which files the draft brings, and makes sure that every content the body names is among them or is saved.
    ///
    /// - Throws: `attachmentNotFound` (404) for a content that is neither; `digestCollision` (409) where another one with
    ///   the same SHA-1 is saved; `invalidAttachment` (400) for a length that is not the content's. Nothing was changed.
    func checkContents(
        _ content: RevisionBody, of draft: PreparedRevision, generation: Int
    ) throws(CofferError) {
        try checkContents(
            content, staged: draft.staged, generation: generation, missing: .refused, draft.document.subject)
    }

    /// Saves a revision, as part of the transaction under way.
    ///
    /// - Throws: `documentNotFound` (404), `conflict` (409). Nothing was changed then.
    func save(_ draft: PreparedRevision) throws(CofferError) -> RevisionRow {
        // Most documents without a parent are new: no need to look first.
        if case .none = draft.parent, let new = try saveFirst(draft) { return new }
        guard let row = try tables.document(draft.documentID) else {
            if case .winner = draft.parent, let new = try saveFirst(draft) { return new }
            throw CofferError(.documentNotFound, of: draft.document.subject)
        }
        switch draft.parent {
        case .none where row.flags.contains(.isDeleted), .winner:
            return try add(draft, to: row, parent: winner(of: row))
        case .none:
            guard draft.allowsConflict, !draft.isDeletion else {
                throw CofferError(
                    .conflict, of: draft.document.subject,
                    "the document exists already; update it, or make the draft from its current revision")
            }
            return try add(draft, to: row, parent: nil)
        case .revision(let parent):
            return try add(draft, to: row, parent: self.parent(parent, of: draft, row))
        }
    }

    private func winner(of row: DocumentRow) throws(CofferError) -> RevisionReference {
        RevisionReference(sequence: row.winner, id: try tables.revisionID(sequence: row.winner))
    }

    /// Saves the first revision of a document that is not there; nil when it is, or when there is nothing to delete.
    private func saveFirst(_ draft: PreparedRevision) throws(CofferError) -> RevisionRow? {
        guard !draft.isDeletion else { return nil }
        let content = try withPresentNames(draft.content, of: draft.document)
        let body = content.body
        let id = try makeRevisionID(parent: nil, draft, body)
        try checkContents(content, of: draft, generation: id.generation)
        // A save that is about to be refused is nothing to look at.
        if draft.document.database.storage.functions.hasValidations, try tables.document(draft.documentID) == nil {
            try validate(id, body, isDeletion: false, of: draft.document, number: nil, parent: nil)
        }
        let new = NewRevision(id: id, isDeletion: false, content: content)
        guard let sequence = try insertNewDocument(draft.documentID, new) else { return nil }
        try useContents(content, by: sequence)
        noteSaved(
            id, sequence, isDeletion: false, of: draft.documentID, before: nil,
            after: DocumentRow(number: DocumentNumber(first: sequence), winner: sequence, flags: []))
        return RevisionRow(
            sequence: sequence, document: DocumentNumber(first: sequence), parent: nil, isDeletion: false, id: id,
            body: body.bytes)
    }

    private func makeRevisionID(
        parent: RevisionID?, _ draft: PreparedRevision, _ body: CanonicalBody
    ) throws(CofferError) -> RevisionID {
        try RevisionID.make(parent: parent, isDeletion: draft.isDeletion, body: body, digest: &state.digest)
    }

    /// The draft's content, with the attachments that it has from its parent.
    private func content(of draft: PreparedRevision, parent: RevisionReference?) throws(CofferError) -> RevisionBody {
        guard draft.inheritsAttachments, let parent,
            try tables.flags(sequence: parent.sequence).contains(.hasAttachments),
            let parentBody = try tables.revision(sequence: parent.sequence, of: draft.documentID).body
        else { return draft.content }
        var object = try JSONObject(draft.content.body)
        object["_attachments"] = try JSONObject(canonical: parentBody.span)["_attachments"]
        return try RevisionBody(DocumentBody(object).body, subject: draft.document.subject)
    }

    /// The parent, if it may have a child now: a leaf, or, where conflicts are allowed, any revision.
    ///
    /// - Throws: `conflict` (409) where it was replaced; where conflicts are allowed, `revisionNotFound` (404) for none.
    private func parent(
        _ id: RevisionID, of draft: PreparedRevision, _ row: DocumentRow
    ) throws(CofferError) -> RevisionReference {
        // Most often it is the winner.
        if try tables.revisionID(sequence: row.winner) == id { return RevisionReference(sequence: row.winner, id: id) }
        let subject = draft.document.subject
        if draft.allowsConflict || row.flags.contains(.isBranched),
            let sequence = try tables.trees.sequence(of: id, inDocument: row.number)
        {
            let parent = RevisionReference(sequence: sequence, id: id)
            if draft.allowsConflict { return parent }
            if try tables.trees.isLeaf(parent, ofDocument: row.number) { return parent }
        } else if draft.allowsConflict {
            throw CofferError(.revisionNotFound, of: subject, "revision \(id) doesn't exist, so none can follow it")
        }
        throw CofferError(.conflict, of: subject, "revision \(id) has been replaced")
    }

    private func add(
        _ draft: PreparedRevision, to row: DocumentRow, parent: RevisionReference?
    ) throws(CofferError) -> RevisionRow {
        let content = try withPresentNames(try content(of: draft, parent: parent), of: draft.document)
        let body = content.body
        let id = try makeRevisionID(parent: parent?.id, draft, body)
        let extendsWinner = parent?.sequence == row.winner && !row.flags.contains(.isBranched)
        if !extendsWinner, let twin = try tables.trees.sequence(of: id, inDocument: row.number) {
            // The same edit of the same revision is the same revision, even where only its id was known.
            var found = try tables.revision(sequence: twin, of: draft.documentID)
            found.body = found.body ?? body.bytes
            return found
        }
        try checkContents(content, of: draft, generation: id.generation)
        try validate(
            id, body, isDeletion: draft.isDeletion, of: draft.document, number: row.number, parent: parent?.sequence)
        let new = NewRevision(id: id, isDeletion: draft.isDeletion, content: content)
        let (sequence, after) = try insertRevision(new, of: draft.documentID, row, after: parent)
        try useContents(content, by: sequence)
        noteSaved(
            id, sequence, isDeletion: draft.isDeletion, of: draft.documentID, before: row.flags, after: after)
        return RevisionRow(
            sequence: sequence, document: row.number, parent: parent?.sequence, isDeletion: draft.isDeletion, id: id,
            body: body.bytes)
    }
}

extension Writer {
    /// The content with the SHA-1s of those contents that it calls by a digest that they had before they came.
    ///
    /// Called before the revision gets its id.
    func withPresentNames(
        _ content: RevisionBody, of document: Document
    ) throws(CofferError) -> RevisionBody {
        let names = document.database.storage.renamedContents
        guard !names.isEmpty else { return content }
        let renamed = try content.body.renamingContents { (stub) throws(CofferError) in
            guard let sha1 = names.sha1(of: stub.digest),
                try tables.attachments.attachment(.foreign(stub.digest)) == nil,
                let row = try tables.attachments.attachment(.sha1(sha1)), row.byteCount == stub.byteCount
            else { return nil }
            return SHA1Digest.text(of: sha1)
        }
        guard let renamed else { return content }
        return try RevisionBody(renamed, subject: document.subject)
    }
}
