internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// Reads the documents of a query, a batch at a time.
struct QueryReader {
    private let database: Database
    private let query: DocumentQuery
    private var source: QuerySource
    private var sortsInMemory: Bool
    private var count: RowCount
    /// Whether any documents were taken from the source, if only to be skipped.
    private var hasBegun = false
    /// All documents in order, where they are sorted in memory.
    private var sorted: Rows<SavedRevision>.Iterator?

    init(_ database: Database, _ query: DocumentQuery, _ planned: PlannedQuery) throws(CofferError) {
        self.database = database
        self.query = query
        source = QuerySource(database, query, planned)
        sortsInMemory = planned.plan.sortsInMemory
        count = try RowCount(skip: query.skip, limit: query.limit)
    }

    /// The next documents; none after the last.
    ///
    /// - Throws: also `invalidArgument` (400) when the index that they are read by is lost after the first were taken:
    ///   another order would repeat some of those and leave others out.
    mutating func nextBatch() throws(CofferError) -> [SavedRevision] {
        var planCount = 1
        while true {
            do throws(CofferError) {
                return try sortsInMemory ? nextSorted() : nextInOrder()
            } catch  where source.hasLostIndex && !hasBegun && planCount < Database.attemptLimit {
                planCount += 1
                try planAgain()
            }
        }
    }

    private mutating func planAgain() throws(CofferError) {
        try database.bringUpToDate(for: query)
        let planned = try database.planned(query)
        source = QuerySource(database, query, planned)
        sortsInMemory = planned.plan.sortsInMemory
    }

    private mutating func nextInOrder() throws(CofferError) -> [SavedRevision] {
        while !count.isOver {
            let found = try source.nextBatch(count.wantedCount)
            guard !found.isEmpty else { return [] }
            hasBegun = true
            let batch = count.take(found)
            if !batch.isEmpty { return batch }
        }
        return []
    }

    private mutating func nextSorted() throws(CofferError) -> [SavedRevision] {
        if sorted == nil {
            var options = AllDocumentsOptions()
            options.ids = count.isOver ? [] : try sortedIDs()
            hasBegun = true
            sorted = database.allDocuments(options).makeIterator()
        }
        let limit = BatchLimit()
        var (batch, byteCount) = ([SavedRevision](), 0)
        while batch.count < limit.rowCount, byteCount < limit.byteCount, let revision = try sorted?.next() {
            // What was changed since it was sorted may be meant no more.
            guard try query.matches(revision) else { continue }
            batch.append(revision)
            byteCount += revision.stored.body?.count ?? 0
        }
        return batch
    }

    /// The ids of the documents to give, in order.
    private mutating func sortedIDs() throws(CofferError) -> [String] {
        let wanted = count.wantedCount
        let limit = wanted > .max / 2 - 1_000 ? Int.max : 2 * wanted + 1_000
        var keys: [(key: [UInt8], id: String)] = []
        while case let batch = try source.nextBatch(.max), !batch.isEmpty {
            for revision in batch { keys.append((try query.sortKey(of: revision), revision.documentID)) }
            // What is certainly beyond the limit isn't kept.
            if keys.count > limit {
                keys.sort { $0.key.lexicographicallyPrecedes($1.key) }
                keys.removeSubrange(wanted...)
            }
        }
        keys.sort { $0.key.lexicographicallyPrecedes($1.key) }
        return count.take(keys.map(\.id))
    }
}

/// Where a query's documents are read from: an index, or all documents.
private struct QuerySource {
    private let database: Database
    private let query: DocumentQuery
    private let checksDocuments: Bool
    private var entries: EntryReader?
    private var all: Rows<SavedRevision>.Iterator
    /// The documents that were given, where one may have several entries; else nil.
    private var given: Set<ByteKey>?

    /// Whether reading ended because somebody deleted the index, or replaced it by another.
    var hasLostIndex: Bool { entries?.hasLostIndex ?? false }

    init(_ database: Database, _ query: DocumentQuery, _ planned: PlannedQuery) {
        self.database = database
        self.query = query
        checksDocuments = planned.plan.checksDocuments
        given = planned.repeatsDocuments ? [] : nil
        if let index = planned.plan.index {
            var remake: (@Sendable () throws(CofferError) -> Void)?
            if !database.isReadOnly {
                remake = { () throws(CofferError) in _ = try database.bringUpToDate(index) }
            }
            entries = EntryReader(
                database.storage, .properties, index.name, madeFor: index.definition.definition, planned.ranges,
                descending: planned.isDescending, loadsValues: false,
                remake: remake)
        }
        all = database.allDocuments().makeIterator()
    }

    /// A document that an entry leads to.
    private struct Found {
        var revision: SavedRevision
        /// Whether it is still the revision that the entry was made from.
        var isCurrent: Bool
    }

    /// The next documents that are meant; none after the last.
    ///
    /// - Parameter count: how many are needed at most.
    mutating func nextBatch(_ count: Int) throws(CofferError) -> [SavedRevision] {
        guard entries != nil else { return try nextOfAll() }
        while true {
            let found = try entries?.nextBatch(checksDocuments ? .max : count) {
                [database] (tables, entry, byteCount) throws(CofferError) -> Found? in
                let document = database.document(withID: String(decoding: entry.id, as: UTF8.self))
                // It may have been deleted since the index was brought up to date.
                guard let winner = try tables.winner(of: try document.checkedID(in: tables))?.revision,
                    !winner.isDeletion
                else {
                    return nil
                }
                byteCount += winner.body?.count ?? 0
                return Found(
                    revision: SavedRevision(document: document, winner), isCurrent: winner.sequence == entry.sequence)
            }
            guard let found, !found.isEmpty else { return [] }
            var batch: [SavedRevision] = []
            for document in found {
                // What was saved since need not be what the entry says.
                let isMeant = document.isCurrent && !checksDocuments
                if let given, given.contains(ByteKey(document.revision.documentID)) { continue }
                if try isMeant ? true : matches(document.revision) {
                    batch.append(document.revision)
                    given?.insert(ByteKey(document.revision.documentID))
                }
            }
            if !batch.isEmpty { return batch }
        }
    }

    private mutating func nextOfAll() throws(CofferError) -> [SavedRevision] {
        let limit = BatchLimit()
        var (batch, byteCount) = ([SavedRevision](), 0)
        while batch.count < limit.rowCount, byteCount < limit.byteCount, let revision = try all.next() {
            let isDesign = try revision.document.checkedID.isDesign
            guard try isDesign ? false : matches(revision) else { continue }
            batch.append(revision)
            byteCount += revision.stored.body?.count ?? 0
        }
        return batch
    }

    private func matches(_ revision: SavedRevision) throws(CofferError) -> Bool { try query.matches(revision) }
}

extension DocumentQuery {
    /// Whether the revision is what its document is asked for.
    fileprivate func matches(_ revision: SavedRevision) throws(CofferError) -> Bool {
        guard let predicate else { return true }
        return predicate.matches(try revision.properties, id: revision.documentID)
    }

    /// Bytes that sort as documents are to.
    fileprivate func sortKey(of revision: SavedRevision) throws(CofferError) -> [UInt8] {
        let (properties, id) = (try revision.properties, revision.documentID)
        var key: [UInt8] = []
        for order in self.order {
            let part = try CollationKey(of: [order.path.value(in: properties, id: id)]).bytes
            // No key begins another, so that the other way round they sort backwards.
            key += order.isDescending ? part.map { ~$0 } : part
        }
        let part = try CollationKey(.string(id)).bytes
        return key + (order.last?.isDescending == true ? part.map { ~$0 } : part)
    }
}
