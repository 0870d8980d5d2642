public import CofferModel
internal import CofferRecords
package import CofferSealing

/// Which documents ``Database/allDocuments(_:)`` lists, and in which order.
public struct AllDocumentsOptions: Sendable {
    /// The order of documents.
    public enum Order: Sendable {
        /// The bytes of their ids.
        case id
        /// When their current revisions came into the database.
        case sequence
    }

    /// The order of the documents. Default: ``Order/id``.
    public var order = Order.id

    /// Whether the last comes first. Default: false. Starts and ends are where the listing starts and ends, either way.
    public var isDescending = false

    /// The first id, in the order of ids. Default: nil, at the first document.
    public var startID: String?

    /// The last id, in the order of ids. Default: nil, at the last document.
    public var endID: String?

    /// The first sequence, in the order of sequences. Default: nil, at the first document.
    public var startSequence: Int?

    /// The last sequence, in the order of sequences. Default: nil, at the last document.
    public var endSequence: Int?

    /// Whether the document at the start is listed. Default: true.
    public var includesStart = true

    /// Whether the document at the end is listed. Default: true.
    public var includesEnd = true

    /// A prefix of the ids of the documents to list, compared byte for byte. Default: nil, all ids.
    public var idPrefix: String?

    /// Whether only documents in conflict are listed: those of which more than one revision is not a deletion and not replaced.
    /// Default: false.
    public var onlyConflicts = false

    /// The ids of the documents to list, in the order to list them in; those that are not there are left out. Default: nil,
    /// all documents. With it, order, bounds and prefix mean nothing.
    public var ids: [String]?

    /// How many documents are skipped before the first. Default: 0. Skipping them takes as long as listing them.
    public var skip = 0

    /// How many documents are listed at most. Default: nil, all. As with ``skip``, a count below zero is `invalidArgument` (400)
    /// when they are taken.
    public var limit: Int?

    /// Whether deleted documents are listed too, by the revisions that delete them. Default: false.
    public var includesDeleted = false

    /// Whether properties are read together with the documents. Default: true. Otherwise each revision reads its own when it
    /// is asked for them.
    public var loadsProperties = true

    /// Says which documents are listed; ``skip`` and ``limit`` count those. Default: nil, all. An error that it throws comes as
    /// `rejected` (403), unless it is Coffer's.
    public var filter: (@Sendable (SavedRevision) throws -> Bool)?

    /// The options that are their defaults.
    public init() {}
}

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

    /// Whether the document may have attachments or blobs: true wherever it does, and seldom elsewhere. Looks through ``json``, and is
    /// true where that is empty, since nothing is known then.
    public var mayHaveContents: Bool {
        guard !json.isEmpty else { return true }
        return unsafe json.withUnsafeBytes { bytes in
            let text = unsafe Span(_unsafeElements: bytes.assumingMemoryBound(to: UInt8.self))
            return CanonicalBody.mayHoldAttachments(text) || CanonicalBody.mayHoldBlobs(text)
        }
    }

    /// Whether more than one of the document's revisions is not a deletion and not replaced.
    package var isInConflict: Bool { element.flags.contains(.isInConflict) }

    /// The current revision's row, with a copy of its body.
    fileprivate var row: RevisionRow {
        var row = element.revision
        row.body = element.body.map { unsafe bytes.extracting($0).withUnsafeBytes { unsafe Array($0) } }
        return row
    }
}

extension Database {
    // MARK: Listing

    /// All documents, each by its current revision, sorted by the bytes of their ids unless `options` say otherwise.
    ///
    /// ``forEachDocument(_:_:)`` is for those who want the bytes of many documents, and no object for each.
    public func allDocuments(_ options: AllDocumentsOptions = AllDocumentsOptions()) -> Rows<SavedRevision> {
        Rows { [self] () throws(CofferError) in
            guard let filter = options.filter else {
                var (reader, batch) = (try AllDocumentsReader(self, options), DocumentBatch())
                return { () throws(CofferError) in try reader.nextRevisions(&batch) }
            }
            var all = options
            (all.skip, all.limit) = (0, nil)
            var (reader, batch) = (try AllDocumentsReader(self, all), DocumentBatch())
            var count = try RowCount(skip: options.skip, limit: options.limit)
            return { [self] () throws(CofferError) in
                while !count.isOver, case let found = try reader.nextRevisions(&batch), !found.isEmpty {
                    let batch = count.take(try found.passing(filter, of: storage.subject))
                    if !batch.isEmpty { return batch }
                }
                return []
            }
        }
    }

    /// Lends all documents to `body`, one after another, each by its current revision: as ``allDocuments(_:)``, but with
    /// their bytes where they were read, and without an object for each.
    ///
    /// ```swift
    /// var byteCount = 0
    /// try database.forEachDocument { document in byteCount += document.json.byteCount }
    /// ```
    ///
    /// Each batch of up to 256 documents is what was committed when it is read, and has been checked before its first document is
    /// lent. Nothing is kept open or locked meanwhile: `body` may save, delete and read. What it saves further on in the order is
    /// listed too: in that of sequences it is all that `body` saves, without end unless ``AllDocumentsOptions/endSequence`` or
    /// ``AllDocumentsOptions/limit`` says where.
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

    /// A listed document's current revision as an object, with a copy of its bytes: for what the document doesn't say itself, such
    /// as its attachments.
    ///
    /// - Parameter document: one that this database lends.
    public func revision(of document: borrowing ListedDocument) -> SavedRevision {
        SavedRevision(of: document.documentID, in: self, document.row)
    }

    /// The ids of documents that are not deleted, sorted by their bytes.
    ///
    /// - Parameters:
    ///   - id: only ids after this one. Default: nil, from the first.
    ///   - limit: how many at most. To read all in pieces, ask again with the last id until none come.
    /// - Throws: `invalidArgument` (400) for a limit below zero, `damaged` and `closed` (500).
    public func documentIDs(after id: String? = nil, limit: Int = 10_000) throws(CofferError) -> [String] {
        let count = try RowCount.rowCount(limit)
        return try storage.read { (tables) throws(CofferError) in
            try tables.documentIDs(after: id ?? "", limit: count)
        }
    }
}

extension Database {
    /// How many documents, not counting deleted ones, a listing by id has before it comes to this id. Takes time in proportion
    /// to their number.
    ///
    /// - Throws: `damaged` and `closed` (500).
    package func documentCount(before id: String, isDescending: Bool) throws(CofferError) -> Int {
        try storage.read { (tables) throws(CofferError) in
            try tables.documentCount(before: id, isDescending: isDescending)
        }
    }

    /// How many documents are deleted, as long as they are not purged. Takes time in proportion to the number of documents.
    ///
    /// - Throws: `damaged` and `closed` (500).
    package var deletedDocumentCount: Int {
        get throws(CofferError) {
            try storage.read { (tables) throws(CofferError) in
                try tables.deletedDocumentCount()
            }
        }
    }
}
