internal import CofferModel
internal import CofferSealing
internal import CofferRecords

extension Snapshot {
    /// The index's row, if it is there with this definition.
    func row(of index: IndexDefinition) throws(CofferError) -> IndexRow? {
        guard try indexes.areUsable(), let row = try indexes.index(index.kind, index.name),
            row.definition.utf8.elementsEqual(index.definition.utf8)
        else { return nil }
        return row
    }

    /// Whether the index has every document.
    func isUpToDate(_ row: IndexRow) throws(CofferError) -> Bool {
        guard try row.sequence == lastSequence() else { return false }
        return try indexes.debts(of: row.number, limit: 1).isEmpty
    }
}

extension IndexDefinition {
    /// Makes the tables of views and declared indexes, unless they are there. Made again, empty, when they are of another
    /// version.
    static func makeTables(in writer: borrowing Writer) throws(CofferError) {
        guard try !writer.state.indexTablesAreThere(in: writer.tables) else { return }
        try writer.change { () throws(CofferError) in
            // What another version made, if anything.
            try writer.records.makeIndexTables()
        }
        writer.state.noteIndexTablesMade()
    }

    /// The index's row, with the definition that is asked for: made, or emptied, where it was another.
    func row(in writer: borrowing Writer) throws(CofferError) -> IndexRow {
        try Self.makeTables(in: writer)
        if let row = try writer.tables.row(of: self), try row.sequence <= writer.tables.lastSequence() { return row }
        return try writer.change { () throws(CofferError) in
            if let row = try writer.tables.indexes.index(kind, name) {
                try writer.records.indexes.redefine(row.number, as: definition)
            } else {
                try writer.records.indexes.insert(kind, name, definition: definition)
            }
            guard let row = try writer.tables.indexes.index(kind, name) else {
                throw CofferError(.damaged, of: writer.records.subject, "an index that was just made is missing")
            }
            return row
        }
    }

    /// Makes the entries of the next documents that the index has not.
    ///
    /// - Parameters:
    ///   - row: the index as it is.
    ///   - notesPlaces: whether to return which entries came and went.
    ///   - work: room for the documents of a step.
    fileprivate func updateStep(
        _ row: IndexRow, in database: Database, notesPlaces: Bool, _ writer: borrowing Writer,
        _ work: inout DocumentBatch
    ) throws(CofferError) -> IndexStep {
        try writer.checkNotInFunction()
        switch content {
        case .entries(let map):
            let entries = IndexedEntries(map, of: row, in: database, notesPlaces: notesPlaces)
            var step = IndexUpdateStep(row: row, of: entries)
            return try step.run(writer, &work)
        case .text(let definition, let analyzer):
            var step = IndexUpdateStep(row: row, of: IndexedTexts(definition, analyzer, of: row, in: database))
            return try step.run(writer, &work)
        }
    }
}

/// Part of an index's update, in one transaction: what it did, in one or more steps.
struct IndexUpdate {
    let row: IndexRow
    let documentCount: Int
    let isComplete: Bool
    let hasDebts: Bool
    /// What each step touched, and the index's number of changes since then.
    let changes: [(places: [EntryPosition]?, number: Int64)]

    /// Updates an index, as part of the transaction under way.
    ///
    /// - Parameters:
    ///   - number: the index's, where the update is under way.
    ///   - making: whether it is made if it is not there, or was made for something else.
    ///   - goesOn: whether to take another step in this transaction, after so many documents.
    /// - Returns: nil if the index isn't there, or is another one by now.
    static func run(
        of index: IndexDefinition, _ number: IndexNumber?, making: Bool, in database: Database, notesPlaces: Bool,
        _ writer: borrowing Writer, goesOn: (Int) -> Bool
    ) throws(CofferError) -> IndexUpdate? {
        let known = try number == nil && making ? index.row(in: writer) : writer.tables.row(of: index)
        guard var row = known, number == nil || number == row.number else { return nil }
        // Made from what is not there any more: it can't be true of what is.
        if try row.sequence > writer.tables.lastSequence() { row = try index.row(in: writer) }
        var documentCount = 0
        var changes: [(places: [EntryPosition]?, number: Int64)] = []
        var work = DocumentBatch(reserving: 96 << 10)
        while true {
            let step = try index.updateStep(row, in: database, notesPlaces: notesPlaces, writer, &work)
            row = step.row
            documentCount += step.documentCount
            if step.hasChanged { changes.append((step.touched, step.row.changeCount)) }
            if step.isComplete || !goesOn(documentCount) {
                let debts = step.isComplete ? [] : try writer.tables.indexes.debts(of: row.number, limit: 1)
                return IndexUpdate(
                    row: row, documentCount: documentCount, isComplete: step.isComplete, hasDebts: !debts.isEmpty,
                    changes: changes)
            }
        }
    }
}
