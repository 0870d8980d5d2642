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
    /// The places of entries that came or went, where that was asked for; nil when there are too many.
    var touched: [EntryPosition]?
}

extension Writer {
    /// Whether the tables of views and declared indexes are there. Made anew, empty, when they are of another version.
    func indexTablesAreThere() throws(CofferError) -> Bool {
        if let hasIndexTables { return hasIndexTables }
        let areThere = try tables.indexes.areUsable()
        hasIndexTables = areThere
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
        whenRolledBack { [weak self] in self?.hasIndexTables = nil }
        hasIndexTables = true
    }

    /// The index's row, with the definition that is asked for: made, or emptied, where it was another.
    func row(of index: IndexDefinition) throws(CofferError) -> IndexRow {
        try makeIndexTables()
        if let row = try tables.indexes.index(index.kind, index.name),
            row.definition.utf8.elementsEqual(index.definition.utf8)
        {
            return row
        }
        return try change { () throws(CofferError) in
            if let row = try tables.indexes.index(index.kind, index.name) {
                try indexing.redefine(row.number, as: index.definition)
            } else {
                try indexing.insert(index.kind, index.name, definition: index.definition)
            }
            guard let row = try tables.indexes.index(index.kind, index.name) else {
                throw CofferError(.damaged, of: connection.subject, "an index that was just made is not there")
            }
            return row
        }
    }

    /// Removes an index with its entries.
    ///
    /// - Returns: whether there was one.
    func removeIndex(_ kind: IndexKind, _ name: String) throws(CofferError) -> Bool {
        guard try indexTablesAreThere(), let row = try tables.indexes.index(kind, name) else { return false }
        try change { () throws(CofferError) in try indexing.remove(row.number) }
        return true
    }

    /// Makes the entries of the next documents that an index has not.
    ///
    /// - Parameter notesPlaces: whether to return which entries came and went.
    func updateStep(
        of index: IndexDefinition, in database: Database, notesPlaces: Bool
    ) throws(CofferError) -> IndexStep {
        let row = try row(of: index)
        var step = IndexUpdateStep(
            writer: self, index: index, row: row, database: database, notesPlaces: notesPlaces)
        return try step.run()
    }
}

/// One step of an index's update: a batch of documents, in a transaction of the writer.
private struct IndexUpdateStep {
    let writer: Writer
    let index: IndexDefinition
    let row: IndexRow
    let database: Database
    let notesPlaces: Bool

    private var touched: [EntryPosition] = []
    private var entryDelta = 0
    private var hasRests = false
    /// Documents that may have entries although they came after ``IndexRow/sequence``.
    private var visited: Set<Int64> = []

    init(writer: Writer, index: IndexDefinition, row: IndexRow, database: Database, notesPlaces: Bool) {
        self.writer = writer
        self.index = index
        self.row = row
        self.database = database
        self.notesPlaces = notesPlaces
    }

    /// A document whose entries are to be made anew; without a winner, where there is nothing any more to make them of.
    private struct Work {
        var number: Int64
        var id: DocumentID
        var winner: StoredRevision
    }

    private static let limit = BatchLimit()

    mutating func run() throws(CofferError) -> IndexStep {
        let tables = writer.tables
        // An index that has nothing yet owes nothing.
        let debts = row.sequence == 0 ? [] : try tables.indexes.debts(of: row.number, limit: Self.limit.rowCount)
        var (position, isComplete) = (row.sequence, false)
        var work: [Work] = []
        if debts.isEmpty {
            (work, position, isComplete) = try readNext()
        } else {
            for debt in debts {
                guard let id = try? DocumentID(debt.id), let (document, winner) = try tables.winner(of: id),
                    document.number == debt.document
                else { continue }
                work.append(Work(number: debt.document, id: id, winner: winner))
            }
        }
        let isUnchanged = work.isEmpty && debts.isEmpty && position == row.sequence
        for document in work { try remake(document) }
        try writer.change { () throws(CofferError) in
            for debt in debts { try writer.indexing.removeDebt(of: row.number, debt.document) }
            guard !isUnchanged else { return }
            try writer.indexing.advance(row.number, to: position, entryDelta: entryDelta, hasRests: hasRests)
        }
        var after = row
        after.sequence = position
        after.entryCount += entryDelta
        after.changeCount += isUnchanged ? 0 : 1
        after.hasRests = after.hasRests || hasRests
        return IndexStep(
            row: after, isComplete: isComplete, documentCount: work.count,
            touched: touched.count > OpenIndex.placeLimit ? nil : touched)
    }

    /// - Returns: what comes next, the sequence up to which it goes, and whether that is the last.
    private func readNext() throws(CofferError) -> ([Work], Int64, Bool) {
        let tables = writer.tables
        var work: [Work] = []
        var elsewhere: [(number: Int64, id: DocumentID, winner: Int64)] = []
        var (position, byteCount, visitCount) = (row.sequence, 0, 0)
        var isComplete = true
        guard row.sequence < writer.lastSequence else { return ([], row.sequence, true) }
        try tables.revisions(from: row.sequence + 1, to: .max, descending: false, loadsBodies: true) {
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
        for document in elsewhere {
            let winner = try tables.revision(sequence: document.winner, of: document.id)
            work.append(Work(number: document.number, id: document.id, winner: winner))
        }
        // Where the last revisions were purged no rows say that there is nothing more.
        if isComplete { position = writer.lastSequence }
        return (work, position, isComplete)
    }

    private mutating func remake(_ document: Work) throws(CofferError) {
        var mapped: [MappedEntry] = []
        var hasFailed = false
        if !document.winner.isDeletion && !document.id.isDesign {
            writer.isInFunction = true
            defer { writer.isInFunction = false }
            do {
                mapped = try index.map(
                    SavedRevision(document: database.document(withID: document.id.text), document.winner))
            } catch {
                hasFailed = true
            }
        }
        try writer.change { () throws(CofferError) in
            try removeEntries(of: document)
            let id = SplitBytes(Array(document.id.text.utf8))
            if hasFailed {
                try writer.indexing.insert(
                    of: row.number, document: document.number, sequence: document.winner.sequence, key: nil, id: id,
                    value: nil)
            }
            for entry in mapped {
                let key = SplitBytes(entry.key)
                if key.rest != nil || id.rest != nil { hasRests = true }
                try writer.indexing.insert(
                    of: row.number, document: document.number, sequence: document.winner.sequence, key: key, id: id,
                    value: entry.value)
                note(EntryPosition(key: entry.key, id: Array(document.id.text.utf8)))
            }
            entryDelta += mapped.count
        }
    }

    private mutating func removeEntries(of document: Work) throws(CofferError) {
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
        if notesPlaces && touched.count <= OpenIndex.placeLimit { touched.append(place) }
    }
}
