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
        let storage = document.storage
        let stored = try storage.write { (writer) throws(CofferError) in
            try save(in: writer, SaveContext(of: storage))
        }
        return SavedRevision(document: document, stored)
    }

    // MARK: The rules

    /// Saves the revision, as part of the transaction under way.
    ///
    /// - Throws: `documentNotFound` (404), `conflict` (409). Nothing was changed then.
    private func save(in writer: borrowing Writer, _ context: SaveContext) throws(CofferError) -> RevisionRow {
        // Most documents without a parent are new: no need to look first.
        if case .none = parent, let new = try saveFirst(in: writer, context) { return new }
        guard let row = try writer.tables.document(documentID) else {
            if case .winner = parent, let new = try saveFirst(in: writer, context) { return new }
            throw CofferError(.documentNotFound, of: document.subject)
        }
        switch parent {
        case .none where row.flags.contains(.isDeleted), .winner:
            let id = try writer.tables.revisionID(sequence: row.winner)
            return try add(to: row, after: RevisionReference(sequence: row.winner, id: id), in: writer, context)
        case .none:
            guard allowsConflict, !isDeletion else {
                throw CofferError(
                    .conflict, of: document.subject,
                    "the document exists already; update it, or make the draft from its current revision")
            }
            return try add(to: row, after: nil, in: writer, context)
        case .revision(let id):
            return try add(to: row, after: stored(parent: id, row, in: writer.tables), in: writer, context)
        }
    }

    /// Saves the first revision of a document that is not there; nil when it is, or when there is nothing to delete.
    private func saveFirst(in writer: borrowing Writer, _ context: SaveContext) throws(CofferError) -> RevisionRow? {
        guard !isDeletion else { return nil }
        let content = try content.withPresentNames(context.renamedContents, in: writer.tables, document.subject)
        let body = content.body
        let id = try RevisionID.make(parent: nil, isDeletion: false, body: body, digest: &writer.state.digest)
        try check(content, generation: id.generation, in: writer)
        // A save that is about to be refused is nothing to look at.
        if context.functions.hasValidations, try writer.tables.document(documentID) == nil {
            try context.functions.validate(
                id, body, isDeletion: false, of: document, number: nil, parent: nil, in: writer)
        }
        let new = NewRevision(id: id, isDeletion: false, content: content)
        guard let sequence = try new.insertDocument(documentID, in: writer) else { return nil }
        try content.useContents(by: sequence, in: writer)
        let number = DocumentNumber(first: sequence)
        writer.state.noteSaved(
            id, sequence, isDeletion: false, of: documentID, before: nil,
            after: DocumentRow(number: number, winner: sequence, flags: []))
        return RevisionRow(
            sequence: sequence, document: number, parent: nil, isDeletion: false, id: id, body: body.bytes)
    }

    /// Saves the revision of a document that is there.
    private func add(
        to row: DocumentRow, after parent: RevisionReference?, in writer: borrowing Writer, _ context: SaveContext
    ) throws(CofferError) -> RevisionRow {
        let content = try content(inheritedFrom: parent, in: writer.tables)
            .withPresentNames(context.renamedContents, in: writer.tables, document.subject)
        let body = content.body
        let id = try RevisionID.make(
            parent: parent?.id, isDeletion: isDeletion, body: body, digest: &writer.state.digest)
        let extendsWinner = parent?.sequence == row.winner && !row.flags.contains(.isBranched)
        if !extendsWinner, let twin = try writer.tables.trees.sequence(of: id, inDocument: row.number) {
            // The same edit of the same revision is the same revision, even where only its id was known.
            var found = try writer.tables.revision(sequence: twin, of: documentID)
            found.body = found.body ?? body.bytes
            return found
        }
        try check(content, generation: id.generation, in: writer)
        try context.functions.validate(
            id, body, isDeletion: isDeletion, of: document, number: row.number, parent: parent?.sequence, in: writer)
        let new = NewRevision(id: id, isDeletion: isDeletion, content: content)
        let (sequence, after) = try new.insert(into: documentID, row, after: parent, in: writer)
        try content.useContents(by: sequence, in: writer)
        writer.state.noteSaved(
            id, sequence, isDeletion: isDeletion, of: documentID, before: row.flags, after: after)
        return RevisionRow(
            sequence: sequence, document: row.number, parent: parent?.sequence, isDeletion: isDeletion, id: id,
            body: body.bytes)
    }

    /// Notes which files the revision brings, and makes sure that every content it names is among them or is saved.
    ///
    /// - Throws: as ``RevisionBody/checkContents(bringing:generation:missing:in:_:)``. Nothing was changed then.
    private func check(
        _ content: RevisionBody, generation: Int, in writer: borrowing Writer
    ) throws(CofferError) {
        try content.checkContents(
            bringing: staged, generation: generation, missing: .refused, in: writer, document.subject)
    }

    /// The content, with the attachments that it has from its parent.
    private func content(
        inheritedFrom parent: RevisionReference?, in tables: borrowing Snapshot
    ) throws(CofferError) -> RevisionBody {
        guard inheritsAttachments, let parent,
            try tables.flags(sequence: parent.sequence).contains(.hasAttachments),
            let parentBody = try tables.revision(sequence: parent.sequence, of: documentID).body
        else { return content }
        var object = try JSONObject(content.body)
        object["_attachments"] = try JSONObject(canonical: parentBody.span)["_attachments"]
        return try RevisionBody(DocumentBody(object).body, subject: document.subject)
    }

    /// The parent, if it may have a child now: a leaf, or, where conflicts are allowed, any revision.
    ///
    /// - Throws: `conflict` (409) where it was replaced; where conflicts are allowed, `revisionNotFound` (404) for none.
    private func stored(
        parent id: RevisionID, _ row: DocumentRow, in tables: borrowing Snapshot
    ) throws(CofferError) -> RevisionReference {
        // Most often it is the winner.
        if try tables.revisionID(sequence: row.winner) == id { return RevisionReference(sequence: row.winner, id: id) }
        let subject = document.subject
        if allowsConflict || row.flags.contains(.isBranched),
            let sequence = try tables.trees.sequence(of: id, inDocument: row.number)
        {
            let parent = RevisionReference(sequence: sequence, id: id)
            if allowsConflict { return parent }
            if try tables.trees.isLeaf(parent, ofDocument: row.number) { return parent }
        } else if allowsConflict {
            throw CofferError(.revisionNotFound, of: subject, "revision \(id) doesn't exist, so none can follow it")
        }
        throw CofferError(.conflict, of: subject, "revision \(id) has been replaced")
    }
}

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
