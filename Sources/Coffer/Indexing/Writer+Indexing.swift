internal import CofferModel
internal import CofferSealing
internal import CofferSQLite

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

extension Writer {
    /// Whether the tables of views and declared indexes are there. Made again, empty, when they are of another version.
    func indexTablesAreThere() throws(CofferError) -> Bool {
        if let hasIndexTables = state.hasIndexTables { return hasIndexTables }
        let areThere = try tables.indexes.areUsable()
        state.hasIndexTables = areThere
        return areThere
    }

    /// Makes the tables of views and declared indexes, unless they are there.
    func makeIndexTables() throws(CofferError) {
        guard try !indexTablesAreThere() else { return }
        try change { () throws(CofferError) in
            // What another version made, if anything.
            try connection.execute("DROP TABLE IF EXISTS index_entries")
            try connection.execute(IndexSchema.creation)
            try connection.execute(IndexSchema.emptying)
        }
        // The state outlives the transaction; what is referred to weakly is slower to pass around for good.
        whenRolledBack { [unowned state] in state.hasIndexTables = nil }
        state.hasIndexTables = true
    }

    /// The index's row, with the definition that is asked for: made, or emptied, where it was another.
    func row(of index: IndexDefinition) throws(CofferError) -> IndexRow {
        try makeIndexTables()
        if let row = try tables.row(of: index), try row.sequence <= tables.lastSequence() { return row }
        return try change { () throws(CofferError) in
            if let row = try tables.indexes.index(index.kind, index.name) {
                try indexing.redefine(row.number, as: index.definition)
            } else {
                try indexing.insert(index.kind, index.name, definition: index.definition)
            }
            guard let row = try tables.indexes.index(index.kind, index.name) else {
                throw CofferError(.damaged, of: connection.subject, "an index that was just made is missing")
            }
            return row
        }
    }

    /// Removes an index with its entries.
    ///
    /// - Returns: whether there was one.
    func removeIndex(_ kind: IndexKind, _ name: String) throws(CofferError) -> Bool {
        if try tables.indexes.needRemaking() { try makeIndexTables() }
        guard try indexTablesAreThere(), let row = try tables.indexes.index(kind, name) else { return false }
        try change { () throws(CofferError) in try indexing.remove(row.number) }
        return true
    }

    /// Makes the entries of the next documents that an index has not.
    ///
    /// - Parameters:
    ///   - row: the index as it is.
    ///   - notesPlaces: whether to return which entries came and went.
    func updateStep(
        of index: IndexDefinition, _ row: IndexRow, in database: Database, notesPlaces: Bool
    ) throws(CofferError) -> IndexStep {
        try checkNotInFunction()
        var step = IndexUpdateStep(index: index, row: row, database: database, notesPlaces: notesPlaces)
        return try step.run(self)
    }
}

/// One step of an index's update: a batch of documents, in a transaction of the writer.
private struct IndexUpdateStep {
    let index: IndexDefinition
    let row: IndexRow
    let database: Database
    let notesPlaces: Bool

    private var touched: [EntryPosition]? = []
    private var touchedByteCount = 0
    private var entryDelta = 0
    private var hasRests = false
    /// Documents that may have entries although they came after ``IndexRow/sequence``.
    private var visited: Set<Int64> = []

    init(index: IndexDefinition, row: IndexRow, database: Database, notesPlaces: Bool) {
        self.index = index
        self.row = row
        self.database = database
        self.notesPlaces = notesPlaces
    }

    /// A document whose entries are to be rebuilt.
    private struct Work {
        var number: Int64
        var id: DocumentID
        var winner: StoredRevision
    }

    private static let limit = BatchLimit()

    mutating func run(_ writer: borrowing Writer) throws(CofferError) -> IndexStep {
        // Debts of documents that come later anyway are paid then.
        let debts = try writer.tables.indexes.debts(of: row.number, limit: Self.limit.rowCount)
        var (position, isComplete, documentCount) = (row.sequence, false, 0)
        for debt in debts where debt.document <= row.sequence {
            guard let id = try? DocumentID(debt.id), let (document, winner) = try writer.tables.winner(of: id),
                document.number == debt.document
            else { continue }
            try remake(writer, Work(number: debt.document, id: id, winner: winner))
            documentCount += 1
        }
        if debts.isEmpty { (position, isComplete, documentCount) = try makeNext(writer) }
        let hasChanged = documentCount > 0 || !debts.isEmpty || position != row.sequence
        try writer.change { () throws(CofferError) in
            for debt in debts { try writer.indexing.removeDebt(of: row.number, debt.document) }
            guard hasChanged else { return }
            try writer.indexing.advance(row.number, to: position, entryDelta: entryDelta, hasRests: hasRests)
        }
        var after = row
        after.sequence = position
        after.entryCount += entryDelta
        after.changeCount += hasChanged ? 1 : 0
        after.hasRests = after.hasRests || hasRests
        return IndexStep(
            row: after, isComplete: isComplete, documentCount: documentCount, hasChanged: hasChanged,
            touched: notesPlaces ? touched : nil)
    }

    /// Makes the entries of what comes next.
    ///
    /// - Returns: the sequence up to which it goes, whether that is the last, and how many documents these were.
    private mutating func makeNext(
        _ writer: borrowing Writer
    ) throws(CofferError) -> (Int64, isComplete: Bool, documentCount: Int) {
        var work: [Work] = []
        var elsewhere: [(number: Int64, id: DocumentID, winner: Int64)] = []
        var (position, byteCount, visitCount) = (row.sequence, 0, 0)
        var isComplete = true
        // Not the writer's own count, which goes on after what was rolled back.
        let last = try writer.tables.lastSequence()
        guard row.sequence < last else { return (row.sequence, true, 0) }
        try writer.tables.revisions(from: row.sequence + 1, to: .max, descending: false, loadsBodies: true) {
            (revision, id, document) throws(CofferError) in
            guard work.count + elsewhere.count < Self.limit.rowCount, byteCount < Self.limit.byteCount,
                visitCount < 20 * Self.limit.rowCount
            else {
                isComplete = false
                return false
            }
            position = revision.sequence
            visitCount += 1
            if document.winner == revision.sequence {
                byteCount += revision.body?.count ?? 0
                work.append(Work(number: document.number, id: id, winner: revision))
            } else if document.winner < revision.sequence {
                // It ended another branch, or lost against one: the one that counts now came before.
                elsewhere.append((document.number, id, document.winner))
            }
            return true
        }
        for document in work { try remake(writer, document) }
        for document in elsewhere {
            let winner = try writer.tables.revision(sequence: document.winner, of: document.id)
            try remake(writer, Work(number: document.number, id: document.id, winner: winner))
        }
        // Where the last revisions were purged no rows say that there is nothing more.
        return (isComplete ? last : position, isComplete, work.count + elsewhere.count)
    }

    private mutating func remake(_ writer: borrowing Writer, _ document: Work) throws(CofferError) {
        var mapped: [MappedEntry] = []
        var hasFailed = false
        if !document.winner.isDeletion && !document.id.isDesign {
            let isInAnother = writer.state.isInFunction
            writer.state.isInFunction = true
            defer { writer.state.isInFunction = isInAnother }
            do {
                mapped = try index.map(
                    SavedRevision(document: database.document(withID: document.id.text), document.winner))
            } catch {
                hasFailed = true
            }
        }
        try writer.change { () throws(CofferError) in
            try removeEntries(writer, of: document)
            let id = SplitBytes(Array(document.id.text.utf8))
            if hasFailed {
                try writer.indexing.insert(
                    writer.nextNumber(in: .indexEntries), of: row.number, document: document.number,
                    sequence: document.winner.sequence, key: nil, id: id, value: nil)
            }
            for entry in mapped {
                let key = SplitBytes(entry.key)
                if key.rest != nil || id.rest != nil { hasRests = true }
                try writer.indexing.insert(
                    writer.nextNumber(in: .indexEntries), of: row.number, document: document.number,
                    sequence: document.winner.sequence, key: key, id: id, value: entry.value)
                note(EntryPosition(key: entry.key, id: Array(document.id.text.utf8)))
            }
            entryDelta += mapped.count
        }
    }

    private mutating func removeEntries(_ writer: borrowing Writer, of document: Work) throws(CofferError) {
        // A document that is new to the index has none.
        let isNew = document.number > row.sequence && visited.insert(document.number).inserted
        guard !isNew else { return }
        let places = try writer.indexing.places(of: document.number, in: row.number)
        guard !places.isEmpty else { return }
        for place in places {
            guard let place else { continue }
            entryDelta -= 1
            note(place)
        }
        try writer.indexing.removeEntries(of: document.number, from: row.number)
    }

    private mutating func note(_ place: EntryPosition) {
        guard notesPlaces, let count = touched?.count else { return }
        touchedByteCount += place.key.count + place.id.count
        let isTooMuch = count >= OpenIndex.placeLimit || touchedByteCount > OpenIndex.placeByteLimit
        if isTooMuch { touched = nil } else { touched?.append(place) }
    }
}
