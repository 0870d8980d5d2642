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
        batch.map { (id, revision) in SavedRevision(of: id, in: database, revision) }
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
        let selection = DocumentSelection(options)
        // Only the first can be the one that the last batch ended with, or that the listing starts at.
        var passedID = (lastID ?? (options.includesStart ? nil : options.startID)).map { Array($0.utf8) }
        let excludedID = options.includesEnd ? nil : options.endID.map { Array($0.utf8) }
        var lastID = lastID
        try tables.appendDocuments(
            from: first, to: last, descending: options.isDescending, includesDeleted: options.includesDeleted,
            loadsBodies: options.loadsProperties, to: &batch
        ) { (batch) throws(CofferError) in
            if let passed = passedID.take(), batch.isLast(passed) {
                batch.removeLast()
                return true
            }
            if let excludedID, batch.isLast(excludedID) {
                batch.removeLast()
                return true
            }
            let stays = count.takesLast(of: batch, isMeant: selection.includesLast(of: batch))
            if count.isFull { lastID = batch.lastID }
            if !stays { batch.removeLast() }
            return !count.isFull
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
        let selection = DocumentSelection(options)
        var lastSequence = lastSequence
        try tables.appendRevisions(
            from: first ?? 0, to: last ?? .max, descending: options.isDescending, loadsBodies: options.loadsProperties,
            to: &batch
        ) { (batch) throws(CofferError) in
            lastSequence = batch.elements[batch.elements.count - 1].sequence
            // Replaced revisions cost time, too.
            if !count.takesLast(of: batch, isMeant: selection.includesLast(of: batch)) { batch.removeLast() }
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

    private mutating func readKeys(
        _ tables: borrowing Snapshot, _ batch: inout DocumentBatch, _ count: inout BatchCount
    ) throws(CofferError) {
        let (ids, selection) = (options.ids ?? [], DocumentSelection(options))
        while keyCount < ids.count && !count.isFull {
            let id = try database.document(withID: ids[keyCount]).checkedID
            keyCount += 1
            guard let (row, winner) = try tables.winner(of: id) else { continue }
            batch.append(id, row, winner)
            if !count.takesLast(of: batch, isMeant: selection.includesLast(of: batch)) { batch.removeLast() }
        }
        isOver = keyCount == ids.count
    }
}

/// Which documents are asked for, wherever they stand. Small, since it is looked at for each.
private struct DocumentSelection {
    private let includesDeleted, onlyConflicts: Bool
    private let prefix: [UInt8]?

    init(_ options: AllDocumentsOptions) {
        includesDeleted = options.includesDeleted
        onlyConflicts = options.onlyConflicts
        prefix = options.ids == nil ? options.idPrefix.map { Array($0.utf8) } : nil
    }

    func includesLast(of batch: borrowing DocumentBatch) -> Bool {
        let place = batch.elements.count - 1
        if !batch.elements[place].isWinner || batch.elements[place].isDeletion && !includesDeleted { return false }
        if onlyConflicts && !batch.elements[place].flags.contains(.isInConflict) { return false }
        guard let prefix else { return true }
        return batch.doesLastStart(with: prefix)
    }
}

/// How many documents a batch has, and how many more may come.
private struct BatchCount {
    private(set) var isFull = false
    private(set) var skipCount: Int
    private(set) var remainingCount: Int
    private let limit: BatchLimit
    private var visitCount = 0

    init(limit: BatchLimit, skipCount: Int, remainingCount: Int) {
        self.limit = limit
        self.skipCount = skipCount
        self.remainingCount = remainingCount
    }

    /// Whether the document that was added last stays. One that doesn't costs time, too.
    mutating func takesLast(of batch: borrowing DocumentBatch, isMeant: Bool) -> Bool {
        visitCount += 1
        var stays = isMeant
        if isMeant && skipCount > 0 {
            skipCount -= 1
            stays = false
        }
        if stays { remainingCount -= 1 }
        isFull =
            batch.elements.count - (stays ? 0 : 1) >= limit.rowCount || batch.bytes.count >= limit.byteCount
            || remainingCount == 0 || visitCount >= 20 * limit.rowCount
        return stays
    }
}
