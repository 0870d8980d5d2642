internal import CofferModel
public import CofferSealing
internal import CofferRecords

/// A document: an id, and the revisions saved under it.
///
/// A handle that holds nothing: each property reads the database again. Safe from any thread.
public final class Document: Sendable {
    /// The database that the document is or will be in.
    public let database: Database

    /// The document's id.
    public let documentID: String

    init(database: Database, documentID: String) {
        self.database = database
        self.documentID = documentID
    }

    /// The winning revision, with its properties; nil if there isn't one, or when the document is deleted.
    ///
    /// Where revisions conflict, it is the one that every other copy of the database would choose too.
    ///
    /// - Throws: `invalidDocumentID` (400), `damaged` (500), `closed` (500).
    public var currentRevision: SavedRevision? {
        get throws(CofferError) {
            guard let winner = try winner, !winner.isDeletion else { return nil }
            return winner
        }
    }

    /// The id of the winning revision, even if it is a deletion; nil when nothing was ever saved.
    public var currentRevisionID: RevisionID? {
        get throws(CofferError) { try winner?.revisionID }
    }

    /// Whether the document was saved and then deleted.
    public var isDeleted: Bool {
        get throws(CofferError) { try winner?.isDeletion ?? false }
    }

    /// The properties of the current revision; nil if there isn't one.
    public var properties: JSONObject? {
        get throws(CofferError) { try currentRevision?.properties }
    }

    /// One property of the current revision; nil when it has none of that name, or when there is no current revision.
    ///
    /// It is a ``JSONValue``, and so never `as? Int`: write `let age: Int? = try document["age"]`, or `try
    /// document["age"]?.intValue`.
    public subscript(key: String) -> JSONValue? {
        get throws(CofferError) { try properties?[key] }
    }

    /// One property of the current revision as a value of your own type; nil if no property has that name, or if it
    /// does not fit, or when there is no current revision.
    @_disfavoredOverload
    public subscript<Value: JSONConvertible>(key: String) -> Value? {
        get throws(CofferError) { try properties?[key] }
    }

    /// The revision with that id, with its properties if they are still there; nil when there is no such revision.
    public func revision(withID id: RevisionID) throws(CofferError) -> SavedRevision? {
        let document = try checkedID
        let stored: RevisionRow? = try storage.readBriefly { (tables) throws(CofferError) in
            guard let row = try tables.document(document),
                let sequence = try tables.trees.sequence(of: id, inDocument: row.number)
            else { return nil }
            return try tables.revision(sequence: sequence, of: document)
        }
        return stored.map { SavedRevision(document: self, $0) }
    }

    // MARK: Changing

    /// A draft of the next revision, with the properties of the current one; empty when there isn't one.
    public func newRevision() throws(CofferError) -> UnsavedRevision {
        guard let winner = try winner else { return UnsavedRevision(document: self, parent: nil, properties: [:]) }
        return try UnsavedRevision(following: winner)
    }

    /// Deletes the document: saves a revision that says so, so that other copies of the database learn of it.
    ///
    /// The earlier revisions stay until the database is compacted. The id may be used again.
    ///
    /// - Returns: the revision that says so.
    /// - Throws: `documentNotFound` (404) when there isn't one, and what saving throws.
    @discardableResult
    public func delete() throws(CofferError) -> SavedRevision {
        try storage.write { (writer) throws(CofferError) in
            guard let row = try writer.tables.document(try checkedID), !row.flags.contains(.isDeleted) else {
                throw CofferError(.documentNotFound, of: subject)
            }
            return try PreparedRevision(self, parent: .winner, isDeletion: true, body: .empty).save()
        }
    }

    // MARK: Reading

    var storage: Storage { database.storage }

    var subject: String { "document \(documentID)" }

    var checkedID: DocumentID {
        get throws(CofferError) {
            let id = try DocumentID(documentID)
            guard !id.isLocal else {
                throw CofferError(
                    .invalidDocumentID, of: subject,
                    "an id that starts with _local/ names a local document, not a document")
            }
            return id
        }
    }

    /// The id, which an entry of an index says.
    func checkedID(in tables: borrowing Snapshot) throws(CofferError) -> DocumentID {
        do throws(CofferError) {
            return try checkedID
        } catch {
            throw CofferError(
                .damaged, of: tables.subject, "an index names a document that doesn't exist", cause: error)
        }
    }

    /// The winning revision, deletion or not.
    private var winner: SavedRevision? {
        get throws(CofferError) {
            let document = try checkedID
            let found = try storage.readBriefly { (tables) throws(CofferError) in try tables.winner(of: document) }
            return found.map { SavedRevision(document: self, $0.revision) }
        }
    }
}

extension Database {
    /// The document with that id, whether it exists or not. Touches no disk.
    ///
    /// An id is 1 to 900 bytes of UTF-8 that do not start with `_`, but for `_design/…`. Others are a 400 where the document
    /// is read or saved.
    public func document(withID id: String) -> Document { Document(database: self, documentID: id) }

    /// A new document with an id that nobody else has: 136 random bits. Touches no disk.
    public func createDocument() -> Document { Document(database: self, documentID: DocumentID.random().text) }

    /// The document with that id; nil if it doesn't exist or is deleted.
    ///
    /// - Throws: `invalidDocumentID` (400), `damaged` (500), `closed` (500).
    public subscript(id: String) -> Document? {
        get throws(CofferError) {
            let document = document(withID: id)
            return try document.currentRevision == nil ? nil : document
        }
    }

    /// How many documents there are, not counting deleted ones.
    ///
    /// Takes time in proportion to their number when it is first asked for after opening, or after a purge, and none to
    /// speak of after that.
    public var documentCount: Int {
        get throws(CofferError) { try storage.documentCount() }
    }

    /// The sequence of the last revision that was saved, 0 in a new database. Each saved revision has a higher one than
    /// all before.
    ///
    /// Numbers may be left out. The sequences of a transaction that was rolled back are not given again while the database
    /// is open; they may be after it was closed, or its process killed. So keep a sequence to go on from only after the commit.
    public var lastSequenceNumber: Int {
        get throws(CofferError) {
            try storage.readBriefly { (tables) throws(CofferError) in try tables.lastSequence() }.value
        }
    }
}
