internal import CofferRecords
internal import CofferSealing

extension Storage {
    /// Reads in one snapshot: the newest, or, inside a transaction of the calling thread, the transaction's own.
    func read<Value>(_ body: (borrowing Snapshot) throws(CofferError) -> Value) throws(CofferError) -> Value {
        try checkUsable()
        if let found = try readInTransaction(body) { return found }
        return try readCommitted(body)
    }

    /// Reads a few rows as ``read(_:)`` does. While nobody has needed a reader yet, and nobody writes, the writer's connection
    /// serves: opening a second one takes as long as opening the first. `body` must call nothing that writes.
    func readBriefly<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        try checkUsable()
        if let found = try readInTransaction(body) { return found }
        let (generation, entry) = try enter(isBrief: true)
        if entry.mayBorrow {
            let found: Value?
            do throws(CofferError) {
                found = try readThroughIdleWriter(body)
            } catch {
                generation.leave()
                throw error
            }
            if let found {
                generation.leave()
                return found
            }
        }
        return try generation.read(body)
    }

    /// Reads as part of the transaction that the calling thread is in.
    ///
    /// - Returns: nil if it is in none.
    private func readInTransaction<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value? {
        guard writerLock.isHeldByCaller else { return nil }
        return try writer.lend { (writer) throws(CofferError) in
            try writer.withinTransaction { () throws(CofferError) in
                let value = try body(writer.tables)
                try writer.tables.confirmReads()
                return value
            }
        }
    }

    /// Reads what was committed through the writer's connection, unless somebody has it.
    ///
    /// - Returns: nil if somebody has, or if the store is open for reading only.
    private func readThroughIdleWriter<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value? {
        guard writer.acquireBriefly() else { return nil }
        defer { writer.release() }
        return try writer.lendToRead(body)
    }

    /// Reads what was committed, in the newest snapshot, whoever is in a transaction.
    func readCommitted<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        try enter().generation.read(body)
    }

    /// Announces a reading, and looks whether the cache should be shared out again.
    private func enter(
        isBrief: Bool = false
    ) throws(CofferError) -> (generation: OpenGeneration, entry: ReaderPool.Entry) {
        let (generation, entry) = try generations.enter(isBrief: isBrief)
        if entry.endsSpan { considerCache() }
        return (generation, entry)
    }

    /// Runs `body`, which reads through connections of its own, so that a close and the end of the generation wait for it.
    ///
    /// - Throws: what `body` throws; `closed` (500).
    func besideReaders<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        let (generation, _) = try generations.enter()
        defer { generation.leave() }
        return try body()
    }
}
