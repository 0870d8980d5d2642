internal import CofferModel
internal import CofferSealing
internal import CofferRecords

/// What a step of an index's update did.
struct IndexStep {
    /// The index as it is after it.
    var row: IndexRow
    /// Whether it has every document now.
    var isComplete: Bool
    var documentCount: Int
    /// Whether it changed the index.
    var hasChanged: Bool
    /// The places of entries that came or went; nil when there are too many, and where nobody asked.
    var touched: [EntryPosition]?
}

/// What an index makes of documents, and keeps in its tables: see ``IndexUpdateStep``.
protocol IndexedForm {
    /// How many documents are taken in at once.
    static var limit: BatchLimit { get }

    /// By how much the index's number of entries grows.
    var entryDelta: Int { get }
    /// Whether an entry has a rest: see ``SplitBytes``.
    var hasRests: Bool { get }
    /// The places of entries that came or went; nil when there are too many, and where nobody asked.
    var touched: [EntryPosition]? { get }

    /// Replaces what the index has of a document.
    mutating func remake(_ document: DocumentToIndex, _ writer: borrowing Writer) throws(CofferError)

    /// Writes what ``remake(_:_:)`` has not written yet.
    mutating func finish(_ writer: borrowing Writer) throws(CofferError)
}

/// A document whose entries are to be rebuilt.
struct DocumentToIndex {
    var number: DocumentNumber
    var id: DocumentID
    var winner: RevisionRow

    /// Whether indexes have it.
    var isIndexed: Bool { !winner.isDeletion && !id.isDesign }
}

/// One step of an index's update: a batch of documents, in a transaction of the writer.
struct IndexUpdateStep<Form: IndexedForm> {
    private let row: IndexRow
    private var form: Form

    init(row: IndexRow, of form: Form) {
        self.row = row
        self.form = form
    }

    /// - Parameter work: room for the documents of the step, which the next one uses again.
    mutating func run(_ writer: borrowing Writer, _ work: inout DocumentBatch) throws(CofferError) -> IndexStep {
        // Debts of documents that come later anyway are paid then.
        let debts = try writer.tables.indexes.debts(of: row.number, limit: Form.limit.rowCount)
        var (position, isComplete, documentCount) = (row.sequence, false, 0)
        for debt in debts where debt.document.firstSequence <= row.sequence {
            guard let id = try? DocumentID(debt.id), let (document, winner) = try writer.tables.winner(of: id),
                document.number == debt.document
            else { continue }
            try form.remake(DocumentToIndex(number: debt.document, id: id, winner: winner), writer)
            documentCount += 1
        }
        if debts.isEmpty { (position, isComplete, documentCount) = try remakeNext(writer, &work) }
        let hasChanged = documentCount > 0 || !debts.isEmpty || position != row.sequence
        try writer.change { () throws(CofferError) in
            try form.finish(writer)
            for debt in debts { try writer.records.indexes.removeDebt(of: row.number, debt.document) }
            guard hasChanged else { return }
            try writer.records.indexes.advance(
                row.number, to: position, entryDelta: form.entryDelta, hasRests: form.hasRests)
        }
        var after = row
        after.sequence = position
        after.entryCount += form.entryDelta
        after.changeCount += hasChanged ? 1 : 0
        after.hasRests = after.hasRests || form.hasRests
        return IndexStep(
            row: after, isComplete: isComplete, documentCount: documentCount, hasChanged: hasChanged,
            touched: form.touched)
    }

    /// Makes the entries of what comes next.
    ///
    /// - Returns: the sequence up to which it goes, whether that is the last, and how many documents these were.
    private mutating func remakeNext(
        _ writer: borrowing Writer, _ work: inout DocumentBatch
    ) throws(CofferError) -> (SequenceNumber, isComplete: Bool, documentCount: Int) {
        defer { work.removeAll() }
        var elsewhere: [(number: DocumentNumber, id: DocumentID, winner: SequenceNumber)] = []
        var (position, visitCount, isComplete) = (row.sequence, 0, true)
        // Not the writer's own count, which goes on after what was rolled back.
        let last = try writer.tables.lastSequence()
        guard row.sequence < last else { return (row.sequence, true, 0) }
        try writer.tables.appendRevisions(
            from: row.sequence.next, to: .max, descending: false, loadsBodies: true, to: &work
        ) { (work) throws(CofferError) in
            let revision = work.last
            guard work.elements.count + elsewhere.count <= Form.limit.rowCount,
                revision.byteCount < Form.limit.byteCount, visitCount < 20 * Form.limit.rowCount
            else {
                isComplete = false
                work.removeLast()
                return false
            }
            position = revision.sequence
            visitCount += 1
            if !revision.isWinner {
                // It ended another branch, or lost against one: the winning revision came before.
                if revision.winner < revision.sequence {
                    elsewhere.append((revision.document, try work.documentID(of: revision), revision.winner))
                }
                work.removeLast()
            }
            return true
        }
        try work.forEach { (id, winner) throws(CofferError) in
            try form.remake(DocumentToIndex(number: winner.document, id: id, winner: winner), writer)
        }
        for document in elsewhere {
            let winner = try writer.tables.revision(sequence: document.winner, of: document.id)
            try form.remake(DocumentToIndex(number: document.number, id: document.id, winner: winner), writer)
        }
        // Where the last revisions were purged no rows say that there is nothing more.
        return (isComplete ? last : position, isComplete, work.elements.count + elsewhere.count)
    }
}
