internal import CofferModel
internal import CofferRecords
public import CofferSealing
internal import CofferVault

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

/// A document to be changed and saved as a whole, in the style of Couchbase Lite 2.
///
/// ```swift
/// let task = MutableDocument(id: "task-1", ["type": "task"])
/// task["title"] = "Water the plants"
/// try database.saveDocument(task)
/// ```
///
/// A save brings it up to date, so that it can be changed and saved again. For one thread, or task, at a time: it is not
/// `Sendable`, since two that change one document would overwrite each other.
public final class MutableDocument: EditableProperties {
    /// The document's id.
    public let id: String

    /// The properties, to be changed at will: see ``EditableProperties/properties``.
    public var properties: JSONObject

    /// The revision that was last saved or read; nil for a document that is new.
    public private(set) var revisionID: RevisionID?

    /// Where it was saved or read. Another database is refused: its revisions are not this one's.
    private weak var database: Database?

    /// A new document.
    ///
    /// - Parameters:
    ///   - id: its id. Default: nil, one that nobody else has.
    ///   - properties: what it holds at first. Default: nothing.
    public init(id: String? = nil, _ properties: JSONObject = [:]) {
        self.id = id ?? DocumentID.random().text
        self.properties = properties
    }

    /// A new document that holds the members of a dictionary.
    ///
    /// - Parameters:
    ///   - id: its id. Default: nil, one that nobody else has.
    ///   - properties: what it holds at first.
    @_disfavoredOverload
    public convenience init(id: String? = nil, _ properties: [String: JSONValue]) {
        self.init(id: id, JSONObject(uniqueKeysWithValues: properties.map { ($0.key, $0.value) }))
    }

    init(_ revision: SavedRevision) throws(CofferError) {
        id = revision.documentID
        properties = try revision.properties
        revisionID = revision.revisionID
        database = revision.database
    }

    /// - Throws: `invalidArgument` (400) when it belongs to another database.
    func checkBelongs(to database: Database) throws(CofferError) {
        if let own = self.database, own !== database {
            throw CofferError(.invalidArgument, of: "document \(id)", "it belongs to another database")
        }
    }

    func noteSaved(_ revision: SavedRevision) -> SavedRevision {
        let stated = properties["_rev"]
        revision.database.storage.whenRolledBack { [weak self, weak own = database, revisionID] in
            self?.revisionID = revisionID
            self?.database = own
            if stated != nil { self?.properties["_rev"] = stated }
        }
        revisionID = revision.isDeletion ? nil : revision.revisionID
        if stated != nil { properties["_rev"] = revisionID.map { .string($0.description) } }
        database = revision.database
        return revision
    }
}

/// How to proceed when somebody else has saved the document in the meantime.
public enum ConcurrencyControl: Sendable {
    /// The save is refused with `conflict` (409).
    case failOnConflict
    /// The save replaces what is there.
    case lastWriteWins
}

extension Document {
    /// The current revision as a document to be changed; a new one with this id when there isn't one.
    public func toMutable() throws(CofferError) -> MutableDocument {
        guard let revision = try currentRevision else { return MutableDocument(id: documentID) }
        return try MutableDocument(revision)
    }
}

/// The attachments of a draft: those of the revision that it was made from, and what was changed since.
struct DraftAttachments {
    struct Entry {
        var name: String
        var contentType: String?
        var content: Content
        /// What the revision before said; nil for one that is new.
        var stub: AttachmentStub?
    }

    private(set) var entries: [Entry] = []
    /// Whether a new one may have an empty name, as in CouchDB. What comes from there may; an app has no use for it.
    var takesEmptyNames = false

    init() {}

    /// Those of a saved revision.
    init(of revision: SavedRevision) throws(CofferError) {
        let storage = revision.database.storage
        entries = try revision.attachmentStubs.map { name, stub in
            Entry(
                name: name, contentType: stub.contentType,
                content: Content(in: storage, digest: stub.digest, byteCount: stub.byteCount),
                stub: stub)
        }
    }

    subscript(name: String) -> Entry? {
        get { index(of: name).map { entries[$0] } }
        set {
            switch (index(of: name), newValue) {
            case (let index?, let entry?): entries[index] = entry
            case (let index?, nil): entries.remove(at: index)
            case (nil, let entry?): entries.append(entry)
            case (nil, nil): break
            }
        }
    }

    private func index(of name: String) -> Int? {
        entries.firstIndex { $0.name.utf8.elementsEqual(name.utf8) }
    }

    /// Makes sure that the store has all contents.
    ///
    /// - Returns: what a revision with this generation says of them, and what is to be installed with it.
    func stage(
        in storage: Storage, generation: Int
    ) throws(CofferError) -> (stubs: [(name: String, stub: AttachmentStub)], staged: [StagedContent]) {
        var stubs: [(name: String, stub: AttachmentStub)] = []
        var staged: [StagedContent] = []
        for entry in entries {
            guard !entry.name.isEmpty || entry.stub != nil || takesEmptyNames else {
                throw CofferError(.invalidAttachment, "an attachment without a name")
            }
            if let stub = entry.stub {
                stubs.append((entry.name, stub))
                continue
            }
            staged += try StagedContent(entry.content, in: storage).map { [$0] } ?? []
            guard let digest = entry.content.digest, let byteCount = entry.content.length else {
                throw CofferError(.invalidAttachment, of: "attachment \(entry.name)", "its content is unknown")
            }
            let stub = AttachmentStub(
                contentType: entry.contentType, digest: digest, byteCount: byteCount, changedInGeneration: generation)
            stubs.append((entry.name, stub))
        }
        return (stubs, staged)
    }

    /// Notes that all of this was saved, and what the revision says of it.
    mutating func noteSaved(as stubs: [(name: String, stub: AttachmentStub)]) {
        for (name, stub) in stubs {
            guard var entry = self[name] else { continue }
            entry.stub = stub
            self[name] = entry
        }
    }
}
