internal import CofferModel
internal import CofferSealing
internal import CofferRecords

/// Reads the documents that ``AllDocumentsOptions`` ask for, a batch at a time.
struct AllDocumentsReader {
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

    /// Puts the next documents in the place of those in `batch`.
    ///
    /// - Returns: whether there are any.
    mutating func nextBatch(_ batch: inout DocumentBatch) throws(CofferError) -> Bool {
        batch.removeAll()
        while !isOver && remainingCount > 0 {
            var next = self
            try database.storage.read { (tables) throws(CofferError) in
                // A snapshot that is given up and read again begins where the last batch ended.
                next = self
                batch.removeAll()
                try next.read(tables, &batch)
            }
            self = next
            if !batch.isEmpty { return true }
        }
        return false
    }

    /// The next documents as objects.
    mutating func nextRevisions(_ batch: inout DocumentBatch) throws(CofferError) -> [SavedRevision] {
        try nextBatch(&batch) ? revisions(of: batch) : []
    }

    func revisions(of batch: borrowing DocumentBatch) -> [SavedRevision] {
        batch.elements.map { SavedRevision(of: batch.id(of: $0), in: database, batch.revision($0)) }
    }

    private mutating func read(_ tables: borrowing Snapshot, _ batch: inout DocumentBatch) throws(CofferError) {
        var count = BatchCount(limit: limit, skipCount: skipCount, remainingCount: remainingCount)
        if options.ids != nil {
            try readKeys(tables, &batch, &count)
        } else {
            switch options.order {
            case .id: try readByID(tables, &batch, &count)
            case .sequence: try readBySequence(tables, &batch, &count)
            }
        }
        (skipCount, remainingCount) = (count.skipCount, count.remainingCount)
    }

    private mutating func readByID(
        _ tables: borrowing Snapshot, _ batch: inout DocumentBatch, _ count: inout BatchCount
    ) throws(CofferError) {
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
        try tables.appendDocuments(
            from: first, to: last, descending: options.isDescending, includesDeleted: options.includesDeleted,
            loadsBodies: options.loadsProperties, to: &batch
        ) { (batch, document) throws(CofferError) in
            let id = batch.bytes[document.id]
            if let passed = passedID.take(), id.elementsEqual(passed.utf8) {
                batch.removeLast()
                return true
            }
            if !options.includesEnd, let end = options.endID, id.elementsEqual(end.utf8) {
                batch.removeLast()
                return true
            }
            let isMeant = isMeant(document, id)
            let hasRoom = isMeant ? count.take(lastOf: &batch) : count.passOver(lastOf: &batch)
            // The slice keeps the bytes of one that the batch has lost.
            if !hasRoom { lastID = String(decoding: id, as: UTF8.self) }
            return hasRoom
        }
        isOver = !count.isFull
        try checkProgress(self.lastID, lastID) { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        self.lastID = lastID
    }

    private mutating func readBySequence(
        _ tables: borrowing Snapshot, _ batch: inout DocumentBatch, _ count: inout BatchCount
    ) throws(CofferError) {
        var (first, last) = (
            options.startSequence.map(SequenceNumber.init), options.endSequence.map(SequenceNumber.init)
        )
        let next: Int64 = options.isDescending ? -1 : 1
        if !options.includesStart { first = first.map { $0.advanced(by: next) } }
        if !options.includesEnd { last = last.map { $0.advanced(by: -next) } }
        if let lastSequence { first = lastSequence.advanced(by: next) }
        if options.isDescending { (first, last) = (last, first) }
        var (lastSequence, visitCount) = (lastSequence, 0)
        try tables.appendRevisions(
            from: first ?? 0, to: last ?? .max, descending: options.isDescending, loadsBodies: options.loadsProperties,
            to: &batch
        ) { (batch, revision) throws(CofferError) in
            lastSequence = revision.sequence
            visitCount += 1
            if revision.isWinner && isMeant(revision, batch.bytes[revision.id]) {
                _ = count.take(lastOf: &batch)
            } else {
                batch.removeLast()
            }
            // Replaced revisions cost time, too.
            if visitCount >= 20 * limit.rowCount { count.isFull = true }
            return !count.isFull
        }
        isOver = !count.isFull
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
    private func isMeant(_ document: DocumentBatch.Element, _ id: ArraySlice<UInt8>) -> Bool {
        if document.isDeletion && !options.includesDeleted { return false }
        if options.onlyConflicts && !document.flags.contains(.isInConflict) { return false }
        guard let prefix = options.idPrefix, options.ids == nil else { return true }
        return id.starts(with: prefix.utf8)
    }

    private mutating func readKeys(
        _ tables: borrowing Snapshot, _ batch: inout DocumentBatch, _ count: inout BatchCount
    ) throws(CofferError) {
        let ids = options.ids ?? []
        while keyCount < ids.count && !count.isFull {
            let id = try database.document(withID: ids[keyCount]).checkedID
            keyCount += 1
            guard let (row, winner) = try tables.winner(of: id) else { continue }
            let document = batch.append(id, row, winner)
            if isMeant(document, batch.bytes[document.id]) {
                _ = count.take(lastOf: &batch)
            } else {
                batch.removeLast()
            }
        }
        isOver = keyCount == ids.count
    }
}

/// How many documents a batch has, and how many more may come.
private struct BatchCount {
    var isFull = false
    private(set) var skipCount: Int
    private(set) var remainingCount: Int
    private let limit: BatchLimit
    private var visitCount = 0

    init(limit: BatchLimit, skipCount: Int, remainingCount: Int) {
        self.limit = limit
        self.skipCount = skipCount
        self.remainingCount = remainingCount
    }

    /// Takes a document out again that isn't asked for, which costs time, too.
    ///
    /// - Returns: whether there is room for another one.
    mutating func passOver(lastOf batch: inout DocumentBatch) -> Bool {
        batch.removeLast()
        visitCount += 1
        if visitCount >= 20 * limit.rowCount { isFull = true }
        return !isFull
    }

    /// - Returns: whether there is room for another one.
    mutating func take(lastOf batch: inout DocumentBatch) -> Bool {
        visitCount += 1
        if skipCount > 0 {
            skipCount -= 1
            batch.removeLast()
        } else {
            remainingCount -= 1
        }
        isFull =
            batch.elements.count >= limit.rowCount || batch.bytes.count >= limit.byteCount || remainingCount == 0
            || visitCount >= 20 * limit.rowCount
        return !isFull
    }
}
