internal import CofferModel
internal import CofferRecords
public import CofferSealing
public import Foundation
internal import Synchronization

extension Database {
    // MARK: Documents to be changed

    /// Saves a document as its next revision, and brings it up to date. It is on the disk when this returns.
    ///
    /// - Parameters:
    ///   - document: the document. A new one must have an id that no document has.
    ///   - concurrencyControl: what happens when somebody else saved it since. Default: ``ConcurrencyControl/failOnConflict``.
    /// - Returns: the revision that it became.
    /// - Throws: `invalidDocumentID`, `invalidJSON` and, for a document of another database, `invalidArgument` (400);
    ///   `readOnly` (403), `documentNotFound` (404) when it is gone, `conflict` (409), also for a `_rev` among the properties
    ///   that is another revision than the one that it was made from, `closed` (500), `busy` (503), `noSpace` (507). Nothing
    ///   is saved then.
    @discardableResult
    public func saveDocument(
        _ document: MutableDocument, concurrencyControl: ConcurrencyControl = .failOnConflict
    ) throws(CofferError) -> SavedRevision {
        document.noteSaved(try draft(of: document, concurrencyControl).save())
    }

    /// Deletes a document: see `delete()`.
    ///
    /// - Throws: as `saveDocument(_:concurrencyControl:)`; `documentNotFound` (404) for one that was never saved.
    @discardableResult
    public func deleteDocument(
        _ document: MutableDocument, concurrencyControl: ConcurrencyControl = .failOnConflict
    ) throws(CofferError) -> SavedRevision {
        document.noteSaved(try deletion(of: document, concurrencyControl).save())
    }

    // MARK: JSON

    /// Saves JSON as a document's next revision: bytes in, no value in between.
    ///
    /// - Parameters:
    ///   - json: one object in UTF-8. A top-level `_id` is the document's id, and `_rev` the revision that this replaces;
    ///     where they are given beside the JSON too, both must agree. `_attachments`, as ``SavedRevision/json`` has them, says
    ///     which of the attachments in this database the revision has; without it, it keeps those of the revision before.
    ///     Other top-level names that start with `_`, `_deleted` too, are refused.
    ///   - id: the document's id. Default: the JSON's `_id`, or one that nobody else has.
    ///   - revisionID: the revision that this one replaces, which must be the current one. Default: the JSON's `_rev`; with
    ///     neither, there must be no such document.
    /// - Returns: the revision that it became.
    /// - Throws: `invalidJSON` (400) where it is not JSON, with the offset in bytes; where a number does not fit 64 bits or a
    ///   double, a key comes twice in an object, the nesting is deeper than 512, the text longer than 64 MiB, or where
    ///   it has more than 1,048,576 values, elements, members and containers each counted once. And as
    ///   `saveDocument(_:concurrencyControl:)`.
    @discardableResult
    public func save(
        json: Data, withID id: String? = nil, replacing revisionID: RevisionID? = nil
    ) throws(CofferError) -> SavedRevision {
        try draft(ofJSON: json, id, revisionID).save()
    }

    /// Saves properties as a document's next revision, so that a dictionary literal with values of several kinds can be given.
    ///
    /// - Parameters:
    ///   - properties: a top-level `_id`, `_rev` and `_attachments` mean what they do in `save(json:withID:replacing:)`. The
    ///     contents of its blobs are saved with it.
    ///   - id: the document's id. Default: the properties' `_id`, or one that nobody else has.
    ///   - revisionID: the revision that this one replaces, which must be the current one. Default: the properties' `_rev`; with
    ///     neither, there must be no such document.
    /// - Returns: the revision that it became.
    /// - Throws: `invalidJSON` (400) for a number that is not finite, and as `save(json:withID:replacing:)`.
    @discardableResult
    public func save(
        _ properties: JSONObject, withID id: String? = nil, replacing revisionID: RevisionID? = nil
    ) throws(CofferError) -> SavedRevision {
        try draft(of: properties, id, revisionID).save()
    }

    // MARK: Your own types

    /// Saves a value as a document's next revision.
    ///
    /// Dates are stored as text in RFC 3339, in UTC and without loss down to the nanosecond; `Data` as base64; integers
    /// exactly.
    ///
    /// - Parameters:
    ///   - value: what encodes to a JSON object.
    ///   - id: the document's id. Default: one that nobody else has.
    ///   - revisionID: the revision that this one replaces, which must be the current one. Default: nil; then there must be
    ///     no such document.
    /// - Returns: the revision that it became.
    /// - Throws: `invalidJSON` (400) for a value that is not a JSON object, has more than 1,048,576 values in it or 64 MiB
    ///   as JSON, or holds a number that is not finite; what the value itself throws as it encodes; and as
    ///   `saveDocument(_:concurrencyControl:)`.
    @discardableResult
    public func save(
        _ value: some Encodable, withID id: String? = nil, replacing revisionID: RevisionID? = nil
    ) throws -> SavedRevision {
        try draft(of: value, id, revisionID).save()
    }
}

extension Document {
    /// The current revision's properties as your own type.
    ///
    /// - Throws: `documentNotFound` (404) if it doesn't exist or is deleted; `DecodingError` when it does not fit.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        guard let revision = try currentRevision else { throw CofferError(.documentNotFound, of: subject) }
        return try revision.decode(type)
    }
}

extension SavedRevision {
    /// The properties as your own type.
    ///
    /// - Throws: `DecodingError` when they do not fit; as ``json``.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        do {
            let storage = database.storage
            return try Value(
                canonical: try body,
                userInfo: [
                    BlobCoding.key: BlobCoding(
                        prepare: { _ in }, resolve: { reference in Blob(reference, in: storage) })
                ])
        } catch let error as CofferError {
            throw error.about(document.subject)
        }
    }
}

extension Database {
    func draft(
        of document: MutableDocument, _ concurrencyControl: ConcurrencyControl
    ) throws(CofferError) -> PreparedRevision {
        try draft(of: document, following: parent(of: document, concurrencyControl))
    }

    /// The revision that a document is to replace.
    func parent(
        of document: MutableDocument, _ concurrencyControl: ConcurrencyControl = .failOnConflict
    ) throws(CofferError) -> PreparedRevision.Parent {
        try document.checkBelongs(to: self)
        return try document.parent(in: self.document(withID: document.id), under: concurrencyControl)
    }

    func draft(
        of document: MutableDocument, following parent: PreparedRevision.Parent
    ) throws(CofferError) -> PreparedRevision {
        let target = self.document(withID: document.id)
        let staged = try StagedContent.stage(document.properties.blobs, in: storage)
        return try PreparedRevision(
            target, parent: parent,
            body: target.checkedBody(document.properties), inheritsAttachments: true, staged: staged)
    }

    func deletion(
        of document: MutableDocument, _ concurrencyControl: ConcurrencyControl
    ) throws(CofferError) -> PreparedRevision {
        try document.checkBelongs(to: self)
        let target = self.document(withID: document.id)
        guard document.revisionID != nil || concurrencyControl == .lastWriteWins else {
            throw CofferError(.documentNotFound, of: target.subject, "it was never saved")
        }
        return try PreparedRevision(
            target, parent: document.parent(in: target, under: concurrencyControl), isDeletion: true, body: .empty)
    }

    func draft(ofJSON json: Data, _ id: String?, _ revisionID: RevisionID?) throws(CofferError) -> PreparedRevision {
        let parsed = try parse(for: id) { () throws(CofferError) in
            try DocumentBody(json: unsafe json.withUnsafeBytes { unsafe Array($0) })
        }
        return try draft(of: parsed, id, revisionID)
    }

    func draft(
        of properties: JSONObject, _ id: String?, _ revisionID: RevisionID?
    ) throws(CofferError) -> PreparedRevision {
        let staged = try StagedContent.stage(properties.blobs, in: storage)
        let parsed = try parse(for: id) { () throws(CofferError) in try DocumentBody(properties) }
        return try draft(of: parsed, id, revisionID, staged: staged)
    }

    /// What `body` parses; what is wrong there is said of the document, where its id is known beforehand.
    private func parse(
        for id: String?, _ body: () throws(CofferError) -> DocumentBody
    ) throws(CofferError) -> DocumentBody {
        do throws(CofferError) {
            return try body()
        } catch {
            throw id.map { error.about("document \($0)") } ?? error
        }
    }

    func draft(of value: some Encodable, _ id: String?, _ revisionID: RevisionID?) throws -> PreparedRevision {
        let contents = Lock<[StagedContent]>([])
        let storage = storage
        @Sendable func stage(_ blob: Blob) throws {
            let staged = try StagedContent.stage([blob], in: storage)
            contents.withLock { $0 += staged }
        }
        let body = try DocumentBody(
            encoding: value,
            userInfo: [
                BlobCoding.key: BlobCoding(prepare: stage, resolve: { reference in Blob(reference, in: storage) })
            ])
        return try draft(of: body, id, revisionID, staged: contents.withLock { $0 })
    }

    /// A draft of what says itself which document it is, or of one with a new id.
    func draft(
        of parsed: DocumentBody, _ id: String?, _ revisionID: RevisionID?, isDeletion: Bool = false,
        staged: [StagedContent] = []
    ) throws(CofferError) -> PreparedRevision {
        let document = document(withID: id ?? parsed.id ?? DocumentID.random().text)
        try document.check(parsed)
        var body = parsed.body
        if parsed.attachments?.isEmpty == true {
            // None, said in another way than by leaving them out.
            var object = try JSONObject(body)
            object["_attachments"] = nil
            body = try DocumentBody(object).body
        }
        return try PreparedRevision(
            document, parent: document.parent(replacing: revisionID, stated: parsed.revision),
            isDeletion: isDeletion, body: body, inheritsAttachments: parsed.attachments == nil && !isDeletion,
            staged: staged)
    }
}

extension Document {
    /// The revision to be replaced, as the caller or the JSON says it.
    fileprivate func parent(
        replacing revisionID: RevisionID?, stated text: String?
    ) throws(CofferError) -> PreparedRevision.Parent {
        guard let text else { return revisionID.map { .revision($0) } ?? .none }
        guard let stated = RevisionID(text) else {
            throw CofferError(.invalidJSON, of: subject, "_rev is not a revision id")
        }
        guard revisionID == nil || revisionID == stated else {
            throw CofferError(.invalidArgument, of: subject, "_rev is not the revision to be replaced")
        }
        return .revision(stated)
    }

    /// The revision that a draft with these properties replaces: what it was made from, or, where it was made from none,
    /// what `_rev` says.
    ///
    /// - Throws: `invalidJSON` (400) where `_rev` is not a revision id, `conflict` (409) where it is another revision than the one
    ///   that the draft was made from.
    func parent(of properties: JSONObject, madeFrom revisionID: RevisionID?) throws(CofferError) -> RevisionID? {
        guard let value = properties["_rev"] else { return revisionID }
        guard let stated = value.stringValue.flatMap(RevisionID.init) else {
            throw CofferError(.invalidJSON, of: subject, "_rev is not a revision id")
        }
        guard revisionID == nil || revisionID == stated else {
            throw CofferError(.conflict, of: subject, "_rev is not the revision that this was made from")
        }
        return stated
    }

    /// - Throws: `invalidJSON` (400) where a body says of itself what contradicts this document or can't be saved.
    func check(_ parsed: DocumentBody) throws(CofferError) {
        try checkID(parsed)
        guard parsed.statedDeletion == nil else {
            throw CofferError(.invalidJSON, of: subject, "_deleted is not saved with a document; delete it instead")
        }
    }

    /// - Throws: `invalidJSON` (400) where a body says that it is another document's.
    func checkID(_ parsed: DocumentBody) throws(CofferError) {
        if let stated = parsed.id, !stated.utf8.elementsEqual(documentID.utf8) {
            throw CofferError(.invalidJSON, of: subject, "_id is not the id of this document")
        }
    }

    /// The body that `properties` make.
    ///
    /// - Parameter hasAttachments: whether `_attachments` is among them, put there by Coffer.
    func checkedBody(_ properties: JSONObject, hasAttachments: Bool = false) throws(CofferError) -> CanonicalBody {
        let parsed: DocumentBody
        do throws(CofferError) {
            parsed = try DocumentBody(properties)
        } catch {
            throw error.about(subject)
        }
        try check(parsed)
        guard hasAttachments || parsed.attachments == nil else {
            throw CofferError(.invalidJSON, of: subject, "_attachments is reserved and can't be a property")
        }
        return parsed.body
    }
}

extension MutableDocument {
    fileprivate func parent(
        in document: Document, under concurrencyControl: ConcurrencyControl
    ) throws(CofferError) -> PreparedRevision.Parent {
        let parent = try document.parent(of: properties, madeFrom: revisionID)
        return switch concurrencyControl {
        case .failOnConflict: parent.map { .revision($0) } ?? .none
        case .lastWriteWins: .winner
        }
    }
}
