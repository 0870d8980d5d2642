internal import CofferModel
internal import CofferSealing
internal import CofferRecords

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
}

extension Database {
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
}
