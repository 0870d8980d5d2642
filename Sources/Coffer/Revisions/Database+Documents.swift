internal import CofferModel
internal import CofferRecords
internal import CofferSealing

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
