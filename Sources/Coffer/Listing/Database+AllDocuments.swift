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
    public func allDocuments(_ options: AllDocumentsOptions = AllDocumentsOptions()) -> Rows<SavedRevision> {
        Rows { [self] () throws(CofferError) in
            guard let filter = options.filter else {
                var reader = try AllDocumentsReader(self, options)
                return { () throws(CofferError) in try reader.nextBatch() }
            }
            var all = options
            (all.skip, all.limit) = (0, nil)
            var reader = try AllDocumentsReader(self, all)
            var count = try RowCount(skip: options.skip, limit: options.limit)
            return { [self] () throws(CofferError) in
                while !count.isOver, case let found = try reader.nextBatch(), !found.isEmpty {
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

/// Reads the documents of a listing, a batch at a time.
private struct AllDocumentsReader {
    private let database: Database
    private let options: AllDocumentsOptions
    private var limit = BatchLimit()
    private var skipCount: Int
    private var remainingCount: Int
    /// The last that was read.
    private var lastID: String?
    private var lastSequence: SequenceNumber?
    private var keyCount = 0
    private var isOver = false

    init(_ database: Database, _ options: AllDocumentsOptions) throws(CofferError) {
        self.database = database
        self.options = options
        skipCount = try RowCount.skipCount(options.skip)
        remainingCount = try RowCount.rowCount(options.limit)
    }

    mutating func nextBatch() throws(CofferError) -> [SavedRevision] {
        while !isOver && remainingCount > 0 {
            var batch: [SavedRevision] = []
            var next = self
            try database.storage.read { (tables) throws(CofferError) in
                // A snapshot that is given up and read again begins where the last batch ended.
                next = self
                batch = try next.read(tables)
            }
            self = next
            if !batch.isEmpty { return batch }
        }
        return []
    }

    private mutating func read(_ tables: borrowing Snapshot) throws(CofferError) -> [SavedRevision] {
        var batch = Batch(database, limit: limit, skipCount: skipCount, remainingCount: remainingCount)
        if options.ids != nil {
            try readKeys(tables, &batch)
        } else {
            switch options.order {
            case .id: try readByID(tables, &batch)
            case .sequence: try readBySequence(tables, &batch)
            }
        }
        (skipCount, remainingCount) = (batch.skipCount, batch.remainingCount)
        return batch.revisions
    }

    private mutating func readByID(_ tables: borrowing Snapshot, _ batch: inout Batch) throws(CofferError) {
        let start = lastID ?? options.startID
        var (first, last) = options.isDescending ? (options.endID, start) : (start, options.endID)
        if let prefix = options.idPrefix {
            // All that begin with it come before it with U+10FFFF behind it as often as an id can have it.
            let end = prefix + String(repeating: "\u{10FFFF}", count: DocumentID.byteLimit / 4)
            if first.map({ $0.utf8.lexicographicallyPrecedes(prefix.utf8) }) ?? true { first = prefix }
            if last.map({ end.utf8.lexicographicallyPrecedes($0.utf8) }) ?? true { last = end }
        }
        // Only the first can be the one that the last batch ended with, or that the listing starts at.
        var passedID = lastID ?? (options.includesStart ? nil : options.startID)
        var lastID = lastID
        try tables.documents(
            from: first, to: last, descending: options.isDescending, includesDeleted: options.includesDeleted,
            loadsBodies: options.loadsProperties
        ) { (winner, id, row) throws(CofferError) in
            if let passed = passedID.take(), haveSameText(id.text, passed) { return true }
            if !options.includesEnd, let end = options.endID, haveSameText(id.text, end) { return true }
            let isMeant = isMeant(id, row, isDeletion: winner.isDeletion)
            let hasRoom = isMeant ? batch.take(winner, of: id) : batch.passOver()
            if !hasRoom { lastID = id.text }
            return hasRoom
        }
        isOver = !batch.isFull
        try checkProgress(self.lastID, lastID) { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        self.lastID = lastID
    }

    private mutating func readBySequence(_ tables: borrowing Snapshot, _ batch: inout Batch) throws(CofferError) {
        var (first, last) = (
            options.startSequence.map(SequenceNumber.init), options.endSequence.map(SequenceNumber.init)
        )
        let next: Int64 = options.isDescending ? -1 : 1
        if !options.includesStart { first = first.map { $0.advanced(by: next) } }
        if !options.includesEnd { last = last.map { $0.advanced(by: -next) } }
        if let lastSequence { first = lastSequence.advanced(by: next) }
        if options.isDescending { (first, last) = (last, first) }
        var (lastSequence, visitCount) = (lastSequence, 0)
        try tables.revisions(
            from: first ?? 0, to: last ?? .max, descending: options.isDescending, loadsBodies: options.loadsProperties
        ) { (revision, id, row) throws(CofferError) in
            lastSequence = revision.sequence
            visitCount += 1
            if row.winner == revision.sequence && isMeant(id, row, isDeletion: revision.isDeletion) {
                _ = batch.take(revision, of: id)
            }
            // Replaced revisions cost time, too.
            if visitCount >= 20 * limit.rowCount { batch.isFull = true }
            return !batch.isFull
        }
        isOver = !batch.isFull
        try checkProgress(self.lastSequence, lastSequence) { $0 < $1 }
        self.lastSequence = lastSequence
    }

    /// Only rows that are not in their order could be listed for ever.
    ///
    /// - Throws: `damaged` (500) unless a batch that is not the last ends behind the one before it.
    private func checkProgress<Place>(
        _ before: Place?, _ after: Place?, _ precedes: (Place, Place) -> Bool
    ) throws(CofferError) {
        guard !isOver, let before, let after else { return }
        guard options.isDescending ? precedes(after, before) : precedes(before, after) else {
            throw CofferError(.damaged, of: database.storage.subject, "its documents are not in order")
        }
    }

    /// Whether the document is one that is asked for, wherever it stands.
    private func isMeant(_ id: DocumentID, _ row: DocumentRow, isDeletion: Bool) -> Bool {
        if isDeletion && !options.includesDeleted { return false }
        if options.onlyConflicts && !row.flags.contains(.isInConflict) { return false }
        guard let prefix = options.idPrefix, options.ids == nil else { return true }
        return id.text.utf8.starts(with: prefix.utf8)
    }

    private mutating func readKeys(_ tables: borrowing Snapshot, _ batch: inout Batch) throws(CofferError) {
        let ids = options.ids ?? []
        while keyCount < ids.count && !batch.isFull {
            let id = try database.document(withID: ids[keyCount]).checkedID
            keyCount += 1
            guard let (row, winner) = try tables.winner(of: id) else { continue }
            if isMeant(id, row, isDeletion: winner.isDeletion) { _ = batch.take(winner, of: id) }
        }
        isOver = keyCount == ids.count
    }
}

/// The documents of a batch, and how many more may come.
private struct Batch {
    private let database: Database
    private(set) var revisions: [SavedRevision] = []
    var isFull = false
    var skipCount: Int
    var remainingCount: Int
    private let limit: BatchLimit
    private var byteCount = 0
    private var visitCount = 0

    init(_ database: Database, limit: BatchLimit, skipCount: Int, remainingCount: Int) {
        self.database = database
        self.limit = limit
        self.skipCount = skipCount
        self.remainingCount = remainingCount
    }

    /// Notes a document that isn't asked for, which costs time, too.
    ///
    /// - Returns: whether there is room for another one.
    mutating func passOver() -> Bool {
        visitCount += 1
        if visitCount >= 20 * limit.rowCount { isFull = true }
        return !isFull
    }

    /// - Returns: whether there is room for another one.
    mutating func take(_ winner: consuming RevisionRow, of id: DocumentID) -> Bool {
        visitCount += 1
        if skipCount > 0 {
            skipCount -= 1
        } else {
            byteCount += winner.body?.count ?? 0
            remainingCount -= 1
            revisions.append(SavedRevision(of: id.text, in: database, winner))
        }
        isFull =
            revisions.count >= limit.rowCount || byteCount >= limit.byteCount || remainingCount == 0
            || visitCount >= 20 * limit.rowCount
        return !isFull
    }
}

private func haveSameText(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }
