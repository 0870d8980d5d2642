internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// What `putExistingRevision(json:withID:history:attachments:)` made of a revision of another database.
public struct ExistingRevisionResult: Sendable {
    /// The revision as it is here.
    public let revision: SavedRevision

    /// Whether it was here before, with its properties or only as an ancestor of others. Nothing was changed then.
    public let wasKnown: Bool

    /// Whether it is the current one now.
    public let isCurrent: Bool

    /// Whether it made a branch: it follows a revision that has been replaced here, or none that is known here.
    ///
    /// With more than one branch that is not deleted the document has a conflict.
    public let isBranch: Bool
}

/// A revision of another database that is to be taken over: checked as far as that goes without the database.
///
/// Never changes. A class, since each closure that a struct of so many parts went through would copy it.
final class ExistingRevision: Sendable {
    let document: Document
    let documentID: DocumentID
    let history: RevisionHistory
    let isDeletion: Bool
    let content: RevisionBody
    /// Contents that it brings.
    let staged: [StagedContent]
    /// The database that a pull brings it from.
    let source: String?

    /// - Parameters:
    ///   - parsed: what the other database says.
    ///   - id: the document's id; nil if `parsed` says it.
    ///   - history: the revision's id and its ancestors' ids, the newest first; nil if `parsed` says it.
    ///   - contents: of attachments, by name.
    ///   - areContentsChecked: whether `contents` are known to have the digests that `parsed` says.
    ///   - staged: of blobs.
    ///   - source: the database that a pull brings it from. Default: nil, no pull does.
    /// - Throws: `invalidDocumentID`, `invalidJSON`, `invalidArgument`, `invalidAttachment` (400).
    init(
        _ parsed: DocumentBody, in database: Database, withID id: String?, history ids: [RevisionID]?,
        isDeletion: Bool = false, contents: [ByteKey: Blob], areContentsChecked: Bool = false,
        staged blobs: [StagedContent] = [], source: String? = nil
    ) throws(CofferError) {
        guard let id = id ?? parsed.id else {
            throw CofferError(.invalidArgument, "a revision must say which document it belongs to")
        }
        document = database.document(withID: id)
        documentID = try document.checkedID
        self.source = source
        let subject = document.subject
        do throws(CofferError) {
            try document.checkID(parsed)
            history = try Self.history(parsed, ids)
            guard !isDeletion || parsed.statedDeletion != false else {
                throw CofferError(.invalidArgument, "the revision is a deletion, and its _deleted is false")
            }
            self.isDeletion = isDeletion || parsed.isDeletion
            guard parsed.attachments != nil || !contents.isEmpty else {
                content = try RevisionBody(parsed.body, subject: subject)
                staged = blobs
                return
            }
            let attachments = try ForeignAttachments(
                parsed.attachments ?? [:], contents: contents, areContentsChecked: areContentsChecked,
                generation: history.newest.generation, in: database.storage)
            var object = try JSONObject(parsed.body)
            object["_attachments"] = attachments.json.map { .object($0) }
            content = try RevisionBody(DocumentBody(object).body, attachments: attachments.stubs, subject: subject)
            staged = blobs + attachments.staged
        } catch {
            throw error.about(subject)
        }
    }

    /// A revision whose properties say nothing of themselves but `_attachments`: it is written once, and not read again.
    ///
    /// - Parameters:
    ///   - contents: of attachments, by name. They are known to have the digests that `properties` say.
    ///   - staged: of blobs.
    ///   - source: the database that a pull brings it from; nil if a peer pushed it.
    /// - Throws: `invalidDocumentID`, `invalidJSON`, `invalidAttachment` (400).
    init(
        _ properties: JSONObject, in database: Database, withID id: String, history: RevisionHistory, isDeletion: Bool,
        contents: [ByteKey: Blob], staged blobs: [StagedContent], source: String?
    ) throws(CofferError) {
        document = database.document(withID: id)
        documentID = try document.checkedID
        self.history = history
        self.isDeletion = isDeletion
        self.source = source
        let subject = document.subject
        do throws(CofferError) {
            let attachments = try ForeignAttachments(
                properties["_attachments"]?.objectValue ?? [:], contents: contents, areContentsChecked: true,
                generation: history.newest.generation, in: database.storage)
            var properties = properties
            properties["_attachments"] = attachments.json.map { .object($0) }
            content = try RevisionBody(
                DocumentBody(properties).body, attachments: attachments.stubs, blobs: properties.blobReferences,
                subject: subject)
            staged = blobs + attachments.staged
        } catch {
            throw error.about(subject)
        }
    }

    /// The history that the caller or the revision itself says: both must say the same, as far as both say something.
    private static func history(_ parsed: DocumentBody, _ ids: [RevisionID]?) throws(CofferError) -> RevisionHistory {
        var history = try ids.map { (ids) throws(CofferError) in try RevisionHistory(newestFirst: ids) }
        if let json = parsed.revisions {
            let stated = try RevisionHistory(json: json)
            guard history == nil || history == stated else {
                throw CofferError(.invalidArgument, "_revisions differs from the history that was given")
            }
            history = stated
        }
        guard let text = parsed.revision else {
            if let history { return history }
            throw CofferError(.invalidArgument, "a revision without an id")
        }
        guard let revision = RevisionID(text) else { throw CofferError(.invalidJSON, "_rev is not a revision id") }
        guard let history else { return try RevisionHistory(newestFirst: [revision]) }
        guard history.newest == revision else {
            throw CofferError(.invalidArgument, "_rev is not the newest revision of the history")
        }
        return history
    }

    /// Takes the revision over, in a transaction of its own or in the one that the calling thread is in.
    func put() throws(CofferError) -> ExistingRevisionResult {
        let storage = document.storage
        let result = try storage.write { (writer) throws(CofferError) in
            try put(in: writer, SaveContext(of: storage))
        }
        return ExistingRevisionResult(
            revision: SavedRevision(document: document, result.revision), wasKnown: result.wasKnown,
            isCurrent: result.isCurrent, isBranch: result.isBranch)
    }

    // MARK: The rules

    /// Takes the revision over, as part of the transaction under way.
    private func put(
        in writer: borrowing Writer, _ context: SaveContext
    ) throws(CofferError) -> (revision: RevisionRow, wasKnown: Bool, isCurrent: Bool, isBranch: Bool) {
        let row = try writer.tables.document(documentID)
        var known: RevisionReference?
        var distance: Int?
        if let row {
            distance = try history.distance { (id) throws(CofferError) in
                guard let sequence = try writer.tables.trees.sequence(of: id, inDocument: row.number) else {
                    return false
                }
                known = RevisionReference(sequence: sequence, id: id)
                return true
            }
        }
        if let row, let known, distance == 0 {
            let revision = try writer.tables.revision(sequence: known.sequence, of: documentID)
            return (revision, wasKnown: true, isCurrent: row.winner == known.sequence, isBranch: false)
        }
        let content = try content.withPresentNames(context.renamedContents, in: writer.tables, document.subject)
        try content.checkContents(
            bringing: staged, generation: history.newest.generation, missing: .awaited, in: writer, document.subject)
        try context.functions.validate(
            history.newest, content.body, isDeletion: isDeletion, of: document, number: row?.number,
            parent: distance == 1 ? known?.sequence : nil, isFromPeer: true, in: writer)
        var isBranch = false
        if let row {
            isBranch = true
            if let known { isBranch = try !DocumentTree(row.number).isLeaf(known, row, in: writer.tables) }
        }
        let (stored, after) = try writer.change { () throws(CofferError) in
            try insert(content, row, after: known, distance: distance, in: writer)
        }
        try content.useContents(by: stored.sequence, in: writer)
        writer.state.noteSaved(
            stored.id, stored.sequence, isDeletion: stored.isDeletion, of: documentID, before: row?.flags,
            after: after, isFromPeer: true, source: source)
        return (stored, wasKnown: false, isCurrent: after.winner == stored.sequence, isBranch: isBranch)
    }

    /// Adds the revision, and before it those of its ancestors that are missing.
    ///
    /// - Parameters:
    ///   - known: its nearest ancestor that is here.
    ///   - distance: how many generations before it that is.
    private func insert(
        _ content: RevisionBody, _ row: DocumentRow?, after known: RevisionReference?, distance: Int?,
        in writer: borrowing Writer
    ) throws(CofferError) -> (RevisionRow, DocumentRow) {
        let depth = try Pruning(in: writer).depth
        // Ancestors that would be pruned at once are left out, and so is the link to one that is further back.
        var parent = distance.map { $0 <= depth } == true ? known?.sequence : nil
        var number = row?.number
        for id in history.missingAncestors(toKnown: distance, depth: depth) {
            let ancestor = NewRevision(id: id, isDeletion: false, content: nil, isForeign: true)
            parent = try ancestor.insertRow(of: documentID, number: number, parent: parent, in: writer)
            number = number ?? parent.map(DocumentNumber.init(first:))
        }
        let new = NewRevision(id: history.newest, isDeletion: isDeletion, content: content, isForeign: true)
        let sequence = try new.insertRow(of: documentID, number: number, parent: parent, in: writer)
        if let known { try new.noteReclaimable(of: known.sequence, in: writer) }
        let after: DocumentRow
        if let row {
            after = try DocumentTree(row.number).place(new.leaf(sequence), after: known, row, in: writer)
            try writer.records.update(after, of: documentID)
        } else {
            after = DocumentRow(
                number: number ?? DocumentNumber(first: sequence), winner: sequence,
                flags: new.isDeletion ? .isDeleted : [])
            _ = try writer.records.insert(after, of: documentID)
        }
        let stored = RevisionRow(
            sequence: sequence, document: after.number, parent: parent, isDeletion: new.isDeletion, id: new.id,
            body: content.body.bytes)
        return (stored, after)
    }
}
