internal import CofferModel
internal import CofferRecords
public import CofferSealing
public import Foundation
internal import Synchronization

/// One revision of a document, as it was saved. It never changes. Safe from any thread.
public final class SavedRevision: Sendable {
    /// The document that this is a revision of.
    public var document: Document { database.document(withID: documentID) }

    /// The document's id.
    public let documentID: String

    /// The revision's id: its generation, and a digest of its parent and content. The same edit has the same id anywhere.
    public var revisionID: RevisionID { stored.id }

    /// Whether this revision deletes the document.
    public var isDeletion: Bool { stored.isDeletion }

    /// The revision's number in the order in which the database got them.
    public var sequence: Int { stored.sequence.value }

    let database: Database
    let stored: RevisionRow

    /// The properties, once they were asked for: reading them out of their bytes costs more than anything else here.
    private let decoded = DecodedOnce()

    /// Made of the parts of a ``Document``, since listing would make one for each revision that nobody asks for.
    init(of documentID: String, in database: Database, _ stored: consuming RevisionRow) {
        self.documentID = documentID
        self.database = database
        self.stored = stored
    }

    convenience init(document: Document, _ stored: consuming RevisionRow) {
        self.init(of: document.documentID, in: document.database, stored)
    }

    // MARK: Content

    /// The properties as JSON in UTF-8, in the canonical form of RFC 8785: members sorted, no white space.
    ///
    /// - Throws: `revisionNotFound` (404) when compaction dropped them, `damaged` (500), `closed` (500).
    public var json: Data {
        get throws(CofferError) { Data(try body) }
    }

    /// The properties. Without those whose name starts with `_`, which are Coffer's own.
    ///
    /// They come in the canonical order of RFC 8785, whatever the order in which they were set.
    ///
    /// - Throws: as ``json``.
    public var properties: JSONObject {
        get throws(CofferError) { try content.properties }
    }

    /// What the revision says of its attachments.
    var attachmentStubs: [(name: String, stub: AttachmentStub)] {
        get throws(CofferError) { try content.attachments }
    }

    private var content: DecodedBody {
        get throws(CofferError) {
            if let content = decoded.content { return content }
            return decoded.keep(try decodedBody())
        }
    }

    /// One property; nil if none has that name.
    public subscript(key: String) -> JSONValue? {
        get throws(CofferError) { try properties[key] }
    }

    /// One property as your own type; nil if no property has that name, or if it does not fit.
    @_disfavoredOverload
    public subscript<Value: JSONConvertible>(key: String) -> Value? {
        get throws(CofferError) { try properties[key] }
    }

    /// Whether the properties are there. Compaction drops those of revisions that were replaced, and those of an ancestor of
    /// which another database told only the id were never here.
    public var propertiesAvailable: Bool {
        get throws(CofferError) { try loadedBody != nil }
    }

    // MARK: History

    /// The revision that this one was made from; nil for a first one, and where the parent was pruned.
    public var parentRevision: SavedRevision? {
        get throws(CofferError) {
            guard let parent = stored.parent else { return nil }
            let id = try document.checkedID
            let found = try read { (tables) throws(CofferError) in try tables.revision(ifThere: parent, of: id) }
            return found.map { SavedRevision(document: document, $0) }
        }
    }

    /// The id of the revision that this one was made from; nil for a first one, and where the parent was pruned.
    public var parentRevisionID: RevisionID? {
        get throws(CofferError) {
            guard let parent = stored.parent else { return nil }
            return try read { (tables) throws(CofferError) in
                try tables.trees.revision(sequence: parent, inDocument: stored.document)?.id
            }
        }
    }

    /// This revision and those it was made from, the oldest first. Their properties are read when they are asked for.
    ///
    /// Goes back ``Database/maxRevTreeDepth`` revisions.
    public var history: [SavedRevision] {
        get throws(CofferError) {
            let history = try read { (tables) throws(CofferError) in
                try tables.trees.history(from: stored.sequence, inDocument: stored.document)
            }
            return history.reversed().map { SavedRevision(document: document, $0) }
        }
    }

    // MARK: Changing

    /// A draft of the next revision, with this one's properties.
    ///
    /// Saving it is a 409 when this revision has been replaced by then.
    public func createRevision() throws(CofferError) -> UnsavedRevision {
        try UnsavedRevision(following: self)
    }

    /// Saves a revision that deletes the document, made from this one.
    ///
    /// - Throws: `conflict` (409) when this revision has been replaced.
    @discardableResult
    public func deleteDocument() throws(CofferError) -> SavedRevision {
        try PreparedRevision(document, parent: .revision(revisionID), isDeletion: true, body: .empty).save()
    }

    // MARK: Bytes

    /// Reads more about this revision.
    ///
    /// - Throws: `revisionNotFound` (404) where it is not there any more, as after its transaction was rolled back.
    private func read<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        try database.storage.readBriefly { (tables) throws(CofferError) in
            guard try tables.hasRevision(sequence: stored.sequence) else {
                throw CofferError(
                    .revisionNotFound, of: document.subject,
                    "revision \(revisionID) was pruned, or the transaction that saved it was rolled back")
            }
            return try body(tables)
        }
    }

    /// The body, read again where this revision came without.
    private var loadedBody: [UInt8]? {
        get throws(CofferError) {
            if let body = stored.body { return body }
            let id = try document.checkedID
            return try read { (tables) throws(CofferError) in
                try tables.revision(sequence: stored.sequence, of: id).body
            }
        }
    }

    private func decodedBody() throws(CofferError) -> DecodedBody {
        let body = try body
        do throws(CofferError) {
            var object = try JSONObject(canonical: body.span)
            let attachments = try object.attachmentStubs()
            object["_attachments"] = nil
            if CanonicalBody.mayHoldBlobs(body) {
                let storage = database.storage
                object = object.replacingReferences { Blob($0, in: storage) }
            }
            return DecodedBody(properties: object, attachments: attachments)
        } catch {
            // What is there was written by a save, which lets nothing else through.
            throw CofferError(.damaged, of: document.subject, "its body is not what was written", cause: error)
        }
    }

    var body: [UInt8] {
        get throws(CofferError) {
            guard let body = try loadedBody else {
                throw CofferError(
                    .revisionNotFound, of: document.subject,
                    "its properties were compacted away, or never reached this database")
            }
            return body
        }
    }
}

/// What a body says, read out of its bytes.
private final class DecodedBody: Sendable {
    let properties: JSONObject
    let attachments: [(name: String, stub: AttachmentStub)]

    init(properties: JSONObject, attachments: [(name: String, stub: AttachmentStub)]) {
        self.properties = properties
        self.attachments = attachments
    }
}

/// A place for what one of several threads has decoded first. It holds one reference to that, from ``keep(_:)`` to its own end,
/// and never gives it up before: so whoever finds it may use it.
///
/// `AtomicLazyReference` does the same, but looks its type up at run time, with 600 instructions a call: an index reads
/// thousands of revisions.
@safe private struct DecodedOnce: ~Copyable {
    private let place = unsafe Atomic<Unmanaged<DecodedBody>?>(nil)

    deinit { unsafe place.load(ordering: .acquiring)?.release() }

    /// What was kept; nil until then.
    var content: DecodedBody? { unsafe place.load(ordering: .acquiring)?.takeUnretainedValue() }

    /// Keeps the content unless there is one.
    ///
    /// - Returns: what is kept, which may be another thread's.
    func keep(_ content: DecodedBody) -> DecodedBody {
        let ours = unsafe Unmanaged.passRetained(content)
        let exchange = unsafe place.compareExchange(expected: nil, desired: ours, ordering: .acquiringAndReleasing)
        guard let theirs = unsafe exchange.original else { return content }
        unsafe ours.release()
        return unsafe theirs.takeUnretainedValue()
    }
}

extension SavedRevision: Equatable {
    /// Whether both are the same revision of the same document.
    public static func == (left: SavedRevision, right: SavedRevision) -> Bool {
        left.revisionID == right.revisionID && left.database === right.database
            && left.documentID.utf8.elementsEqual(right.documentID.utf8)
    }
}

/// A revision that was read: a plain value, none of whose properties throws, so that they can be key paths.
///
/// ```swift
/// let notes = try database.allDocuments().map { try $0.snapshot }
/// let sorted = notes.sorted { ($0["title"] ?? .null) < ($1["title"] ?? .null) }
/// ForEach(notes) { note in Text(note["title"]?.stringValue ?? "") }     // in SwiftUI
/// ```
public struct RevisionSnapshot: Sendable, Hashable, Identifiable {
    /// The document's id.
    public let documentID: String

    /// The revision's id.
    public let revisionID: RevisionID

    /// The revision's number in the order in which the database got them.
    public let sequence: Int

    /// Whether the revision deletes the document.
    public let isDeletion: Bool

    /// The properties.
    public let properties: JSONObject

    /// The document's id.
    public var id: String { documentID }

    /// The property of that name, or nil if it does not exist.
    public subscript(key: String) -> JSONValue? { properties[key] }
}

extension SavedRevision {
    /// The revision with its properties as a plain value.
    ///
    /// - Throws: `revisionNotFound` (404) when compaction dropped its properties, `damaged` (500), `closed` (500).
    public var snapshot: RevisionSnapshot {
        get throws(CofferError) {
            RevisionSnapshot(
                documentID: documentID, revisionID: revisionID, sequence: sequence, isDeletion: isDeletion,
                properties: try properties)
        }
    }
}
