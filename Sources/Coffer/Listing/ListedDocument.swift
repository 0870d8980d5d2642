public import CofferModel
internal import CofferRecords
internal import CofferSealing

/// A document of a listing by its current revision, with its bytes where they were read: see
/// ``Database/forEachDocument(_:_:)``.
///
/// It can't be kept for longer than the call that it was lent for: the compiler refuses that. What should last has to be
/// copied out, by ``documentID`` or ``revisionID``, or by `Data` or an array of the bytes.
public struct ListedDocument: ~Escapable {
    private let bytes: RawSpan
    private let element: DocumentBatch.Element

    @_lifetime(copy bytes)
    init(_ element: DocumentBatch.Element, in bytes: RawSpan) {
        self.element = element
        self.bytes = bytes
    }

    /// The bytes of the document's id, in UTF-8: 1 to 900.
    public var idBytes: RawSpan {
        @_lifetime(copy self) get { bytes.extracting(element.id) }
    }

    /// The document's id. Makes a string each time.
    public var documentID: String { unsafe idBytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) } }

    /// The properties as JSON in UTF-8, in the canonical form of RFC 8785, as ``SavedRevision/json`` has them. Empty where
    /// ``AllDocumentsOptions/loadsProperties`` is false, or where compaction dropped them.
    public var json: RawSpan {
        @_lifetime(copy self) get { bytes.extracting(element.body ?? element.id.upperBound..<element.id.upperBound) }
    }

    /// The id of the current revision.
    public var revisionID: RevisionID { element.revisionID }

    /// The revision's number in the order in which the database got them.
    public var sequence: Int { element.sequence.value }

    /// Whether the current revision deletes the document: only where ``AllDocumentsOptions/includesDeleted`` is true.
    public var isDeletion: Bool { element.isDeletion }
}

extension Database {
    /// Lends all documents to `body`, one after another, each by its current revision: as ``allDocuments(_:)``, but with
    /// their bytes where they were read, and without an object for each.
    ///
    /// ```swift
    /// var byteCount = 0
    /// try database.forEachDocument { document in byteCount += document.json.byteCount }
    /// ```
    ///
    /// Each batch of some dozen documents is what was committed when it is read, and has been checked before its first
    /// document is lent. Nothing is kept open or locked meanwhile: `body` may save, delete and read.
    ///
    /// - Parameters:
    ///   - options: which documents, and in which order. Default: all that are not deleted, by their ids. With
    ///     ``AllDocumentsOptions/filter`` an object is made for each after all.
    ///   - body: what is done with each. An error that it throws ends the listing.
    /// - Throws: what `body` throws; otherwise as ``Rows/all``.
    public func forEachDocument(
        _ options: AllDocumentsOptions = AllDocumentsOptions(), _ body: (borrowing ListedDocument) throws -> Void
    ) throws {
        var request = options
        var count: RowCount?
        if options.filter != nil {
            (request.skip, request.limit) = (0, nil)
            count = try RowCount(skip: options.skip, limit: options.limit)
        }
        var (reader, batch) = (try AllDocumentsReader(self, request), DocumentBatch())
        while count?.isOver != true, try reader.nextBatch(&batch) {
            if let filter = options.filter {
                let passing = try reader.revisions(of: batch).passing(filter, of: storage.subject)
                batch = DocumentBatch(batch, only: Set((count?.take(passing) ?? []).map(\.stored.sequence)))
            }
            for element in batch.elements { try unsafe body(ListedDocument(element, in: batch.bytes.span.bytes)) }
        }
    }
}
