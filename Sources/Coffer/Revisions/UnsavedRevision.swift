internal import CofferModel
internal import CofferRecords
public import CofferSealing

/// What has properties to be changed and then saved: ``MutableDocument`` and ``UnsavedRevision``.
///
/// For one thread, or task, at a time.
public protocol EditableProperties: AnyObject {
    /// The properties, to be changed at will.
    ///
    /// Names that start with `_` are Coffer's own, and none of them is a property. `_id` may be there if it is this document's
    /// id, and `_rev` if it is the revision that this was made from, as CouchDB has them: another `_id` is a 400 when it is
    /// saved, another `_rev` a 409. Every other such name, `_deleted` too, is a 400.
    var properties: JSONObject { get set }
}

extension EditableProperties {
    /// One property. Setting nil removes it; setting `.null` keeps it as JSON's null.
    public subscript(key: String) -> JSONValue? {
        get { properties[key] }
        set { properties[key] = newValue }
    }

    /// One property as your own type; nil if no property has that name, or if it does not fit.
    @_disfavoredOverload
    public subscript<Value: JSONConvertible>(key: String) -> Value? {
        get { properties[key] }
        set { properties[key] = newValue }
    }
}

/// A draft of a document's next revision.
///
/// ```swift
/// let draft = try document.newRevision()
/// draft["name"] = "Robin"
/// draft["nickname"] = nil
/// let saved = try draft.save()
/// ```
///
/// A save brings the draft up to date, so that it can be changed and saved again; where the transaction around the save is
/// rolled back, the draft is what it was made from again, with the properties that it has. Drafts are for one thread, or task, at
/// a time: they are not `Sendable`, since two that change one draft would overwrite each other.
public final class UnsavedRevision: EditableProperties {
    /// The document that this becomes a revision of.
    public let document: Document

    /// The revision that this one is made from; nil when it is to be the document's first.
    public private(set) var parentRevisionID: RevisionID?

    /// The properties, to be changed at will: see ``EditableProperties/properties``.
    public var properties: JSONObject

    /// Whether saving this deletes the document, with the properties as what stays known of it. Default: false.
    public var isDeletion = false

    var draftAttachments = DraftAttachments()

    init(document: Document, parent: RevisionID?, properties: JSONObject) {
        self.document = document
        parentRevisionID = parent
        self.properties = properties
    }

    /// A draft of what follows `revision`, with all that it has; with nothing where it deletes the document.
    init(following revision: SavedRevision) throws(CofferError) {
        document = revision.document
        parentRevisionID = revision.revisionID
        properties = revision.isDeletion ? [:] : try revision.properties
        if !revision.isDeletion { draftAttachments = try DraftAttachments(of: revision) }
    }

    /// Saves the draft as the document's next revision. It is on the disk when this returns.
    ///
    /// - Throws: `invalidDocumentID` and `invalidJSON` (400), `readOnly` (403), `documentNotFound` (404) when the
    ///   document it was made from is gone, `conflict` (409) when that revision has been replaced or is not the one that
    ///   `_rev` among the properties says, `closed` (500),
    ///   `busy` (503), `noSpace` (507). Nothing is saved then, and the draft stays as it was.
    @discardableResult
    public func save() throws(CofferError) -> SavedRevision {
        let draft = try draft(allowsConflict: false)
        return try noteSaved(draft.save(), draft)
    }

    /// Saves the draft even if the revision that it was made from has been replaced: then the document has a conflict.
    ///
    /// The document has a branch more then: see ``Document/conflictingRevisions``. Saving the same as a revision that is there
    /// makes no branch, and returns that one.
    ///
    /// - Throws: as `save()`, `conflict` only for a `_rev` among the properties; `revisionNotFound` (404) when the revision that it was made from is not
    ///   there any more.
    @discardableResult
    public func saveAllowingConflict() throws(CofferError) -> SavedRevision {
        let draft = try draft(allowsConflict: true)
        return try noteSaved(draft.save(), draft)
    }

    func draft(allowsConflict: Bool) throws(CofferError) -> PreparedRevision {
        let storage = document.storage
        let parent = try document.parent(of: properties, madeFrom: parentRevisionID)
        // None follows the last one, which is for the save to say.
        let generation = min(parent?.generation ?? 0, .max - 1) + 1
        var staged = try StagedContent.stage(properties.blobs, in: storage)
        var content = properties
        // A tombstone has no attachments.
        var attachments: [(name: String, stub: AttachmentStub)]?
        if !isDeletion, !draftAttachments.entries.isEmpty {
            guard content["_attachments"] == nil else {
                throw CofferError(
                    .invalidJSON, of: document.subject, "_attachments is reserved and can't be a property")
            }
            let (stubs, contents) = try draftAttachments.stage(in: storage, generation: generation)
            content["_attachments"] = .object(JSONObject(stubs))
            attachments = stubs
            staged += contents
        }
        return try PreparedRevision(
            document, parent: parent.map { .revision($0) } ?? .none, isDeletion: isDeletion,
            body: try document.checkedBody(content, hasAttachments: !isDeletion), attachments: attachments,
            staged: staged, allowsConflict: allowsConflict)
    }

    func noteSaved(_ revision: SavedRevision, _ draft: PreparedRevision) throws(CofferError) -> SavedRevision {
        let stated = properties["_rev"]
        document.storage.whenRolledBack { [weak self, parentRevisionID, draftAttachments] in
            self?.parentRevisionID = parentRevisionID
            self?.draftAttachments = draftAttachments
            if stated != nil { self?.properties["_rev"] = stated }
        }
        parentRevisionID = revision.revisionID
        if stated != nil { properties["_rev"] = .string(revision.revisionID.description) }
        // Contents that had another name before they came have their own now.
        let isAsDrafted = revision.stored.body == draft.content.body.bytes
        draftAttachments.noteSaved(as: isAsDrafted ? draft.content.attachments : try revision.attachmentStubs)
        return revision
    }
}
