internal import CofferModel
internal import CofferSealing
internal import CofferRecords

/// The terms of documents' texts, in the tables of text indexes: see ``IndexSchema``.
///
/// What a batch adds to a term is kept in memory, and written at the end in one change of the term's last row.
struct IndexedTexts: IndexedForm {
    static let limit = BatchLimit(rowCount: 4096, byteCount: 4 << 20)

    private let definition: TextDefinition
    private let analyzer: TextAnalyzer
    private let row: IndexRow
    private let database: Database

    private(set) var entryDelta = 0
    var hasRests: Bool { false }
    /// Which terms came and went is not noted: somebody who watches asks again.
    var touched: [EntryPosition]? { nil }

    /// Documents that may be in the index although they came after ``IndexRow/sequence``.
    private var visited: Set<DocumentNumber> = []
    private var lengths = ChangedLengths()
    /// What is to be added to each term.
    private var pending: [[UInt8]: PendingPostings] = [:]
    private var pendingCount = 0

    /// So many places are kept in memory, and one document's more: eight bytes each, and some for each term.
    private static let pendingLimit = 1_000_000

    init(_ definition: TextDefinition, _ analyzer: TextAnalyzer, of row: IndexRow, in database: Database) {
        self.definition = definition
        self.analyzer = analyzer
        self.row = row
        self.database = database
    }

    private struct PendingPostings {
        /// Of all documents, one after the other.
        var places: [TermPlace] = []
        /// Each document's number, and where its places end.
        var documents: [(number: UInt32, end: Int)] = []

        mutating func add(_ place: TermPlace, of number: UInt32) {
            places.append(place)
            if documents.last?.number == number {
                documents[documents.count - 1].end = places.count
            } else {
                documents.append((number, places.count))
            }
        }
    }

    mutating func remake(_ document: DocumentToIndex, _ writer: borrowing Writer) throws(CofferError) {
        var texts: [[String]] = []
        if document.isIndexed {
            let revision = SavedRevision(document: database.document(withID: document.id.text), document.winner)
            texts = definition.texts(in: try revision.properties, id: document.id.text)
        }
        try writer.change { () throws(CofferError) in
            try removeOld(document, writer)
            guard texts.contains(where: { !$0.isEmpty }) else { return }
            let number = try lengths.nextNumber(of: row.number, writer.records.indexes.texts)
            let count = DocumentTerms.forEach(in: texts, analyzer) { term, place, _, _ in
                pending[Array(term), default: PendingPostings()].add(place, of: number)
            }
            // Without a term it can't be found, and needs no number.
            guard count > 0 else { return }
            try lengths.set(count, of: number, in: row.number, writer.records.indexes.texts)
            try writer.records.indexes.texts.insert(number, of: document.number, document.id, in: row.number)
            entryDelta += 1
            pendingCount += count
            if pendingCount >= Self.pendingLimit { try writePostings(writer.records.indexes.texts) }
        }
    }

    mutating func finish(_ writer: borrowing Writer) throws(CofferError) {
        try writePostings(writer.records.indexes.texts)
        try lengths.write(of: row.number, writer.records.indexes.texts)
    }

    private mutating func removeOld(_ document: DocumentToIndex, _ writer: borrowing Writer) throws(CofferError) {
        // A document that is new to the index has no number.
        let isNew = document.number.firstSequence > row.sequence && visited.insert(document.number).inserted
        guard !isNew else { return }
        for (index, number) in try writer.records.indexes.texts.numbers(of: document.number) where index == row.number {
            try writer.records.indexes.texts.removeDocument(number, from: index)
            try lengths.set(0, of: number, in: index, writer.records.indexes.texts)
            entryDelta -= 1
        }
    }

    /// Adds what was kept in memory to the rows of its terms, in their order, so that pages are visited once.
    private mutating func writePostings(_ tables: borrowing TextChanges) throws(CofferError) {
        for (term, postings) in pending.sorted(by: { compareBytes($0.key.span, $1.key.span) < 0 }) {
            var (number, block): (Int64, PostingBlock) = (1, PostingBlock())
            var isThere = false
            if let last = try tables.lastBlock(of: term, in: row.number) {
                (number, block, isThere) = (last.number, last.1, true)
                guard let first = postings.documents.first, block.last < first.number else {
                    throw PostingReader.damage
                }
            }
            var start = 0
            for document in postings.documents {
                while start < document.end {
                    let count = block.append(document.number, postings.places[start..<document.end])
                    start += count
                    guard count == 0 || start < document.end else { break }
                    try tables.put(block, number, of: term, in: row.number, isThere: isThere)
                    (number, block, isThere) = (number + 1, PostingBlock(), false)
                }
            }
            try tables.put(block, number, of: term, in: row.number, isThere: isThere)
        }
        pending.removeAll(keepingCapacity: true)
        pendingCount = 0
    }
}

/// Rows of lengths that a batch changes, until they are written.
private struct ChangedLengths {
    private var chunks: [Int64: LengthChunk] = [:]
    private var next: UInt32?

    /// A number that no document had: given when its length is set.
    mutating func nextNumber(of index: IndexNumber, _ tables: borrowing TextChanges) throws(CofferError) -> UInt32 {
        var number = next ?? 0
        if next == nil {
            number = 1
            if let (chunk, written) = try tables.lastLengths(of: index) {
                let lengths = chunks[chunk] ?? written
                chunks[chunk] = lengths
                guard chunk >= 0, chunk < LengthChunk.lastChunk else { throw PostingReader.damage }
                number = UInt32(chunk) * UInt32(LengthChunk.count) + UInt32(lengths.usedCount)
            }
        }
        guard number < .max else {
            throw CofferError(.invalidArgument, "a text index has no more numbers: delete it, and declare it again")
        }
        next = number
        return number
    }

    mutating func set(
        _ length: Int, of number: UInt32, in index: IndexNumber, _ tables: borrowing TextChanges
    ) throws(CofferError) {
        let (chunk, place) = LengthChunk.place(of: number)
        var lengths = chunks[chunk] ?? LengthChunk()
        if chunks[chunk] == nil, let known = try tables.lengths(chunk, of: index) { lengths = known }
        lengths[place] = length
        chunks[chunk] = lengths
        if let next, number >= next { self.next = number + 1 }
    }

    mutating func write(of index: IndexNumber, _ tables: borrowing TextChanges) throws(CofferError) {
        for (chunk, lengths) in chunks { try tables.put(lengths, chunk, of: index) }
        self = ChangedLengths()
    }
}

/// Where the compaction of a text index is.
struct TextCompaction {
    /// The index's number.
    let index: IndexNumber
    /// The row that it went up to.
    private var term: [UInt8] = []
    private var block: Int64 = 0
    private(set) var isOver = false

    /// Rows that are looked at in one transaction.
    private static let rowStep = 2_000
    /// An index in which more numbers are dead than that many times those that are alive is rebuilt instead: the numbers themselves
    /// take room, too.
    private static let rebuildingFactor = 4
    private static let smallCount = 10_000

    /// Whether so many numbers are dead that the index is better rebuilt.
    let shouldRebuild: Bool

    /// - Returns: nil if there is nothing to remove.
    init?(of index: IndexNumber, _ tables: borrowing Snapshot) throws(CofferError) {
        let lengths = try tables.indexes.texts.lengths(of: index)
        let aliveCount = lengths.count { $0 > 0 }
        shouldRebuild = lengths.count > Self.rebuildingFactor * aliveCount + Self.smallCount
        self.index = index
        guard lengths.dropFirst().contains(0), try tables.indexes.texts.hasPostings(of: index) else { return nil }
    }

    /// Removes documents that are dead from the next rows.
    mutating func run(_ writer: borrowing Writer) throws(CofferError) {
        guard try writer.tables.indexes.areUsable() else {
            isOver = true
            return
        }
        // Those of now: if the index was emptied since the last step, its numbers begin again.
        let lengths = try writer.tables.indexes.texts.lengths(of: index)
        let rows = try writer.records.indexes.texts.blocks(of: index, after: term, block, limit: Self.rowStep)
        for row in rows {
            (term, block) = (row.term, row.block)
            guard let (rest, isEmpty) = try withoutDead(row.postings, last: row.last, lengths) else { continue }
            try writer.change { () throws(CofferError) in
                if isEmpty {
                    try writer.records.indexes.texts.removeBlock(row.block, of: row.term, in: index)
                } else {
                    try writer.records.indexes.texts.put(rest, row.block, of: row.term, in: index, isThere: true)
                }
            }
        }
        isOver = rows.count < Self.rowStep
    }

    /// - Returns: nil if all documents in the row are alive.
    private func withoutDead(
        _ postings: [UInt8], last: Int64, _ lengths: [UInt16]
    ) throws(CofferError) -> (PostingBlock, isEmpty: Bool)? {
        var reader = PostingReader(postings, last: last)
        var rest = PostingBlock()
        var (places, hasDead, isEmpty) = ([TermPlace](), false, true)
        while true {
            places.removeAll(keepingCapacity: true)
            guard let number = try reader.next({ places.append($0) }) else { break }
            if Int(number) < lengths.count && lengths[Int(number)] == 0 {
                hasDead = true
            } else {
                // What was in one row fits into it.
                guard rest.append(number, places[...]) == places.count else { throw PostingReader.damage }
                isEmpty = false
            }
        }
        return hasDead ? (rest, isEmpty) : nil
    }
}
