internal import CofferModel
internal import CofferSealing
internal import CofferSQLite

extension Storage {
    /// Brings an index up to date with everything that was committed when this is called; inside a transaction, with that
    /// too.
    ///
    /// Where nothing is to be done it only reads. Otherwise it takes its turn as a writer, in transactions of some thousand
    /// documents, between which others write; killed in the middle, it goes on there the next time.
    ///
    /// - Returns: the index as it is then, and how many documents were looked at.
    /// - Throws: `readOnly` (403) where something is to be done and the database is open for reading only; as a save does.
    func update(
        _ index: IndexDefinition, in database: Database
    ) throws(CofferError) -> (row: IndexRow, documentCount: Int) {
        try index.check()
        if let row = try upToDateRow(of: index) { return (row, 0) }
        if isReadOnly {
            throw CofferError(
                .readOnly, of: subject, "the index \(index.name) is not up to date, and can't be brought up to date")
        }
        if writerLock.isHeldByCaller {
            return try write { (writer) throws(CofferError) in
                try writer.update(index, in: database, notesPlaces: false, goesOn: { _ in true }).result
            }
        }
        let open = indexes[index.kind, index.name]
        var target: Int64?
        var documentCount = 0
        while true {
            let update = try write { (writer) throws(CofferError) in
                if target == nil { target = writer.lastSequence }
                return try writer.update(index, in: database, notesPlaces: open.isWatched) { documentCount in
                    // About a second's work; less where somebody waits.
                    documentCount < (writerLock.isWaitedFor ? 500 : 20_000)
                }
            }
            for change in update.changes { open.note(change.places, number: change.number) }
            documentCount += update.result.documentCount
            if update.isComplete || update.result.row.sequence >= target ?? 0 && !update.hasDebts {
                return (update.result.row, documentCount)
            }
            letOthersWrite()
        }
    }

    /// The index's row, if it has everything that was committed.
    private func upToDateRow(of index: IndexDefinition) throws(CofferError) -> IndexRow? {
        try read { (tables) throws(CofferError) in
            guard let row = try tables.row(of: index) else { return nil }
            return try tables.isUpToDate(row) ? row : nil
        }
    }

    /// Runs `body`; should it meet damage that is in the entries of indexes, drops those, and runs it once more.
    ///
    /// - Parameter remake: makes those anew that `body` needs, where it doesn't do so itself; nil where nobody may, so that
    ///   nothing is dropped.
    func healingIndexes<Value>(
        afterDropping remake: (() throws(CofferError) -> Void)? = { () throws(CofferError) in },
        _ body: () throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        do throws(CofferError) {
            return try body()
        } catch  where error.code == .damaged && !isReadOnly && !writerLock.isHeldByCaller {
            guard let remake, try dropDamagedIndexes() else { throw error }
            try remake()
            return try body()
        }
    }

    /// - Returns: whether the entries of indexes were damaged, and are gone now.
    private func dropDamagedIndexes() throws(CofferError) -> Bool {
        guard areIndexesDamaged() else { return false }
        try alone { (writer) throws(CofferError) in
            // By then somebody else may have.
            if areIndexesDamaged() {
                let connection = try databaseFile.connect(.readWrite, cacheByteCount: 1 << 20)
                defer { try? connection.close() }
                clock.willCommit()
                defer { clock.didCommit() }
                try connection.execute("PRAGMA synchronous = FULL")
                try connection.changeSchemaDirectly(IndexSchema.abandonment)
            }
            // Where the writer itself met the damage it calls good pages bad.
            try renewWriter(writer)
        }
        return true
    }

    /// Whether the entries of indexes can't all be read. Takes time in proportion to them.
    func areIndexesDamaged() -> Bool {
        guard let connection = try? databaseFile.connect(.readOnly, cacheByteCount: 1 << 20) else { return false }
        defer { try? connection.close() }
        do throws(CofferError) {
            try connection.execute("BEGIN")
            let tables = DocumentTables(connection)
            guard try tables.indexes.areUsable() else { return false }
            try tables.indexes.readEverything()
            try tables.confirmReads()
            return false
        } catch {
            return error.code == .damaged
        }
    }
}

extension DocumentTables {
    /// The index's row, if it is there with this definition.
    func row(of index: IndexDefinition) throws(CofferError) -> IndexRow? {
        guard try indexes.areUsable(), let row = try indexes.index(index.kind, index.name),
            row.definition.utf8.elementsEqual(index.definition.utf8)
        else { return nil }
        return row
    }

    /// Whether the index has every document.
    func isUpToDate(_ row: IndexRow) throws(CofferError) -> Bool {
        guard try row.sequence >= lastSequence() else { return false }
        return try indexes.debts(of: row.number, limit: 1).isEmpty
    }
}

/// Part of an index's update, in one transaction.
private struct IndexUpdate {
    var result: (row: IndexRow, documentCount: Int)
    var isComplete: Bool
    var hasDebts: Bool
    /// What each step touched, and the index's number of changes since then.
    var changes: [(places: [EntryPosition]?, number: Int64)]
}

extension Writer {
    /// - Parameter goesOn: whether to take another step in this transaction, after so many documents.
    fileprivate func update(
        _ index: IndexDefinition, in database: Database, notesPlaces: Bool, goesOn: (Int) -> Bool
    ) throws(CofferError) -> IndexUpdate {
        var documentCount = 0
        var changes: [(places: [EntryPosition]?, number: Int64)] = []
        while true {
            let step = try updateStep(of: index, in: database, notesPlaces: notesPlaces)
            documentCount += step.documentCount
            changes.append((step.touched, step.row.changeCount))
            if step.isComplete || !goesOn(documentCount) {
                let debts = step.isComplete ? [] : try tables.indexes.debts(of: step.row.number, limit: 1)
                return IndexUpdate(
                    result: (step.row, documentCount), isComplete: step.isComplete, hasDebts: !debts.isEmpty,
                    changes: changes)
            }
        }
    }
}
