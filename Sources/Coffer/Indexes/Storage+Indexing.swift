internal import CofferModel
internal import CofferSealing
internal import CofferRecords

extension Storage {
    /// Makes an index that is declared and not there, or was declared otherwise. It is filled when it is brought up to date.
    ///
    /// - Returns: whether it was made.
    func declare(_ index: IndexDefinition) throws(CofferError) -> Bool {
        try index.check()
        return try healingIndexes { () throws(CofferError) in
            try write { (writer) throws(CofferError) in
                try IndexDefinition.makeTables(in: writer)
                guard try writer.tables.row(of: index) == nil else { return false }
                _ = try index.row(in: writer)
                return true
            }
        }
    }

    /// - Returns: whether there was an index of that kind and name.
    func deleteIndex(_ kind: IndexKind, _ name: String) throws(CofferError) -> Bool {
        try healingIndexes { () throws(CofferError) in
            try write { (writer) throws(CofferError) in
                if try writer.tables.indexes.needRemaking() { try IndexDefinition.makeTables(in: writer) }
                guard try writer.state.indexTablesAreThere(in: writer.tables),
                    let row = try writer.tables.indexes.index(kind, name)
                else { return false }
                try writer.change { () throws(CofferError) in try writer.records.indexes.remove(row.number) }
                return true
            }
        }
    }

    /// What `make` makes of the indexes of a kind, sorted by the bytes of their names.
    func listIndexes<Value>(
        _ kind: IndexKind, _ make: (IndexRow, borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> [Value] {
        try readIndexes { (tables) throws(CofferError) in
            guard try tables.indexes.areUsable() else { return [] }
            return try tables.indexes.indexes(kind).map { (row) throws(CofferError) in try make(row, tables) }
        }
    }

    /// Brings an index up to date with everything that was committed when this is called; inside a transaction, with that
    /// too.
    ///
    /// Where nothing is to be done it only reads. Otherwise it takes its turn as a writer, in transactions of some thousand
    /// documents, between which others write; killed in the middle, it goes on there the next time.
    ///
    /// - Parameter making: whether it is made if it is not there, or was made for something else.
    /// - Returns: the index as it is then, and how many documents were looked at; nil if it isn't there, or is not any
    ///   more, since somebody deleted it or gave its name to another one meanwhile.
    /// - Throws: `readOnly` (403) where something is to be done and the database is open for reading only; as a save does.
    func update(
        _ index: IndexDefinition, making: Bool, in database: Database
    ) throws(CofferError) -> (row: IndexRow, documentCount: Int)? {
        try index.check()
        if let row = try upToDateRow(of: index) { return (row, 0) }
        if isReadOnly {
            throw CofferError(
                .readOnly, of: subject, "the index \(index.name) is not up to date, and can't be brought up to date")
        }
        if writerLock.isHeldByCaller {
            let update = try write { (writer) throws(CofferError) in
                try IndexUpdate.run(
                    of: index, nil, making: making, in: database, notesPlaces: false, writer, goesOn: { _ in true })
            }
            return update.map { ($0.row, $0.documentCount) }
        }
        let start = ContinuousClock.now
        let open = indexes[index.kind, index.name]
        var number: IndexNumber?
        var target: SequenceNumber?
        var documentCount = 0
        while true {
            let update = try write { (writer) throws(CofferError) in
                if target == nil { target = try writer.tables.lastSequence() }
                return try IndexUpdate.run(
                    of: index, number, making: making, in: database, notesPlaces: open.isWatched, writer
                ) { documentCount in
                    // About a second's work; less where somebody waits.
                    documentCount < (writerLock.isWaitedFor ? 500 : 20_000)
                }
            }
            guard let update else { return nil }
            for change in update.changes { open.note(change.places, of: update.row.number, number: change.number) }
            documentCount += update.documentCount
            if update.isComplete || update.row.sequence >= target ?? 0 && !update.hasDebts {
                let duration = ContinuousClock.now - start
                if duration >= CofferLog.slowQueryThreshold {
                    CofferLog.write(
                        .notice, .queries, subject, "an index was brought up to date slowly",
                        ["documents": String(documentCount), "milliseconds": duration.inMilliseconds])
                }
                return (update.row, documentCount)
            }
            number = update.row.number
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

    /// Reads what indexes say of themselves, in one snapshot.
    func readIndexes<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        try healingIndexes { () throws(CofferError) in try read(body) }
    }

    /// Makes the tables of indexes that are there no more, since they were damaged or are another version's.
    func remakeIndexTables() throws(CofferError) {
        let isNeeded = try read { (tables) throws(CofferError) in try tables.indexes.needRemaking() }
        if isNeeded { try write { (writer) throws(CofferError) in try IndexDefinition.makeTables(in: writer) } }
    }

    /// Runs `body`; should it meet damage that is in the entries of indexes, drops those, and runs it once more.
    ///
    /// - Parameter remake: makes those again that `body` needs, where it doesn't do so itself; nil if nobody may, so
    ///   that nothing is dropped.
    func healingIndexes<Value>(
        afterDropping remake: (() throws(CofferError) -> Void)? = { () throws(CofferError) in },
        _ body: () throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        let healingCount = indexes.healingCount
        do throws(CofferError) {
            return try body()
        } catch  where error.code == .damaged && !isReadOnly && !writerLock.isHeldByCaller {
            guard let remake, try dropDamagedIndexes(metAfter: healingCount) else { throw error }
            try remake()
            return try body()
        }
    }

    /// - Parameter healingCount: how often indexes had been healed before the damage was met.
    /// - Returns: whether the entries of indexes were damaged, and are gone now.
    private func dropDamagedIndexes(metAfter healingCount: Int) throws(CofferError) -> Bool {
        guard try besideReaders({ () throws(CofferError) in damageOfIndexes() }) != .none else {
            // Another thread may have met the same damage, and have healed it meanwhile.
            guard indexes.healingCount != healingCount else { return false }
            try remakeIndexTables()
            return true
        }
        try exclusively { () throws(CofferError) in
            // By then somebody else may have.
            let damage = damageOfIndexes()
            if damage != .none { try abandonIndexes(damage) }
            // Where the writer itself met the damage it calls good pages bad.
            try renewWriter()
        }
        do throws(CofferError) {
            try remakeIndexTables()
        } catch  where error.code == .damaged {
            throw CofferError(
                .damaged, of: subject,
                "damaged pages of indexes can't be replaced until the key is changed", cause: error)
        }
        return true
    }

    /// Takes the tables of damaged indexes out of the schema.
    private func abandonIndexes(_ damage: IndexDamage) throws(CofferError) {
        clock.willCommit()
        defer { clock.didCommit() }
        indexes.noteHealing(losesDefinitions: damage == .definitions)
        do throws(CofferError) {
            try databaseFile.abandonIndexes(losesDefinitions: damage == .definitions)
        } catch {
            // Whether it is on the disk is open, as after every write that failed.
            noteFailure(error)
            throw error
        }
    }

    /// What can't be read of indexes.
    enum IndexDamage {
        case none
        case entries
        /// Not even what indexes there are.
        case definitions
    }

    /// Takes time in proportion to the entries.
    func damageOfIndexes() -> IndexDamage {
        guard isWhole({ (tables) throws(CofferError) in _ = try tables.lastSequence() }) else { return .none }
        if !isWhole({ (tables) throws(CofferError) in
            if try tables.indexes.areUsable() { try tables.indexes.readDefinitions() }
        }) {
            return .definitions
        }
        return isWhole { (tables) throws(CofferError) in
            if try tables.indexes.areUsable() { try tables.indexes.readEverything() }
        } ? .none : .entries
    }

    /// Whether `body` reads in a snapshot without meeting damage.
    private func isWhole(_ body: (borrowing Snapshot) throws(CofferError) -> Void) -> Bool {
        do throws(CofferError) {
            let tables = try databaseFile.openSnapshot(cacheByteCount: 1 << 20)
            try tables.hold()
            try body(tables)
            try tables.confirmReads()
            return true
        } catch {
            return error.code != .damaged
        }
    }
}
