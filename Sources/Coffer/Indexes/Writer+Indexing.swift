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
            try records.makeIndexTables()
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
                try records.indexes.redefine(row.number, as: index.definition)
            } else {
                try records.indexes.insert(index.kind, index.name, definition: index.definition)
            }
            guard let row = try tables.indexes.index(index.kind, index.name) else {
                throw CofferError(.damaged, of: records.subject, "an index that was just made is missing")
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
        try change { () throws(CofferError) in try records.indexes.remove(row.number) }
        return true
    }

    /// Empties an index, so that it is rebuilt when it is next asked.
    func emptyIndex(_ number: IndexNumber) throws(CofferError) {
        try change { () throws(CofferError) in try records.indexes.restart(number) }
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
        switch index.content {
        case .entries(let map):
            let entries = IndexedEntries(map, of: row, in: database, notesPlaces: notesPlaces)
            var step = IndexUpdateStep(row: row, of: entries)
            return try step.run(self)
        case .text(let definition, let analyzer):
            var step = IndexUpdateStep(row: row, of: IndexedTexts(definition, analyzer, of: row, in: database))
            return try step.run(self)
        }
    }
}
