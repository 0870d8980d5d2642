internal import CofferModel
internal import CofferRecords
public import CofferSealing

extension Database {
    // MARK: Search

    /// The documents whose texts have what a query looks for, the best first.
    ///
    /// ```swift
    /// for hit in try database.search("notes", for: #"caf* -noir "crème brûlée""#).all {
    ///     list.add(hit.documentID, try hit.snippet(of: "body") { "<b>\($0)</b>" })
    /// }
    /// ```
    ///
    /// Documents are ranked by BM25: those in which rare words stand often, and which are short, come first; those that are as good
    /// come by the bytes of their ids. The index is brought up to date first.
    ///
    /// - Parameters:
    ///   - name: the text index's, see ``createTextIndex(named:on:ignoresAccents:language:)``.
    ///   - query: what somebody typed, or a ``SearchQuery``.
    ///   - predicate: what documents must be like besides. Default: nil, anything.
    ///   - weights: how much words count in each of the index's properties. Default: 1 in those that are not named. Zero is nothing;
    ///     others are from 0.000001 to 1,000,000.
    ///   - skip: how many of the best are left out. Default: 0.
    ///   - limit: how many are given at most; nil for all. Default: 20.
    /// - Returns: hits. Errors come when they are taken: `invalidArgument` (400) if there is no such index, for a property that it is
    ///   not over, for other weights, and for more than 1,000 words in the query; `readOnly` (403) if the index is not up to date
    ///   in a database that is open for reading only; `busy` (503), `noSpace` (507), `damaged` and `closed` (500).
    public func search(
        _ name: String, for query: SearchQuery, where predicate: DocumentPredicate? = nil,
        weights: [PropertyPath: Double] = [:], skip: Int = 0, limit: Int? = 20
    ) -> Rows<SearchHit> {
        let search = Search(
            index: name, query: query, predicate: predicate, weights: weights, skip: skip, limit: limit)
        return Rows(waitingIn: storage) { [self] () throws(CofferError) in
            if !isReadOnly { _ = try bringTextIndexUpToDate(name) }
        } batches: { [self] () throws(CofferError) in
            var reader = SearchReader(self, search)
            return QueryClock.timed(storage.subject, "a search was slow", [:]) { () throws(CofferError) in
                try reader.nextBatch()
            }
        }
    }

    /// The hits of a search again and again, as they change.
    ///
    /// Every commit counts as a change. The parameters are those of ``search(_:for:where:weights:skip:limit:)``.
    public func liveSearch(
        _ name: String, for query: SearchQuery, where predicate: DocumentPredicate? = nil,
        weights: [PropertyPath: Double] = [:], skip: Int = 0, limit: Int? = 20
    ) -> LiveQuery<SearchHit> {
        let hits = search(name, for: query, where: predicate, weights: weights, skip: skip, limit: limit)
        return LiveQuery(
            LiveSource(database: self, rows: hits) { [self] () throws(CofferError) in
                if isReadOnly { return LiveState(sequence: try lastSequenceNumber) }
                return LiveState(sequence: try bringTextIndexUpToDate(name).row.sequence.value)
            })
    }

    /// How many documents a query finds.
    ///
    /// - Throws: as taking hits of ``search(_:for:where:weights:skip:limit:)`` does.
    public func searchCount(_ name: String, for query: SearchQuery) throws(CofferError) -> Int {
        try SearchReader(
            self, Search(index: name, query: query, predicate: nil, weights: [:], skip: 0, limit: nil)
        ).matchCount()
    }
}

/// What is looked for, and how much of it.
struct Search: Sendable {
    var index: String
    var query: SearchQuery
    var predicate: DocumentPredicate?
    var weights: [PropertyPath: Double]
    var skip: Int
    var limit: Int?
}

/// Reads the hits of a search, a batch at a time.
struct SearchReader {
    private let database: Database
    private let search: Search
    /// The ids of what was found, the best first; nil before the index was read. Numbers in the index are not kept: another
    /// snapshot may have others.
    private var found: [(id: [UInt8], score: Float)]?
    /// How many of them were read.
    private var readCount = 0
    private var text: (definition: TextDefinition, analyzer: TextAnalyzer)?
    private var count: RowCount?

    init(_ database: Database, _ search: Search) {
        self.database = database
        self.search = search
    }

    /// The next hits; none after the last.
    mutating func nextBatch() throws(CofferError) -> [SearchHit] {
        if found == nil { try find() }
        guard var count, let text, let found else { return [] }
        defer { self.count = count }
        while !count.isOver, readCount < found.count {
            var (hits, position) = ([SearchHit](), readCount)
            try database.storage.read { (tables) throws(CofferError) in
                (hits, position) = ([], readCount)
                let limit = BatchLimit()
                var byteCount = 0
                while hits.count < min(limit.rowCount, count.wantedCount), position < found.count {
                    let match = found[position]
                    position += 1
                    // It may have been deleted since.
                    guard let id = String(validating: match.id, as: UTF8.self), let documentID = try? DocumentID(id),
                        let (_, winner) = try tables.winner(of: documentID), !winner.isDeletion
                    else { continue }
                    byteCount += winner.body?.count ?? 0
                    let revision = SavedRevision(document: database.document(withID: id), winner)
                    if let predicate = search.predicate {
                        guard predicate.matches(try revision.properties, id: id) else { continue }
                    }
                    hits.append(
                        SearchHit(
                            revision, score: Double(match.score), search.query, text.definition, text.analyzer))
                    if byteCount >= limit.byteCount { break }
                }
            }
            readCount = position
            let batch = count.take(hits)
            if !batch.isEmpty { return batch }
        }
        return []
    }

    /// How many documents the query finds.
    func matchCount() throws(CofferError) -> Int {
        try inIndex { (searcher, _, tables) throws(CofferError) in try searcher.matches(search.query, tables).count }
    }

    /// Finds the documents, and puts them in order as far as they will be read.
    private mutating func find() throws(CofferError) {
        let count = try RowCount(skip: search.skip, limit: search.limit)
        // How many of them a predicate lets through, nobody knows.
        let wanted = search.predicate == nil ? count.wantedCount : .max
        (text, found) = try inIndex { (searcher, index, tables) throws(CofferError) in
            var ranked = RankedMatches(try searcher.matches(search.query, tables))
            var found: [(id: [UInt8], score: Float)] = []
            while found.count < wanted,
                let match = try ranked.next({ (number) throws(CofferError) in
                    try tables.indexes.texts.documentID(number, of: index.number)
                })
            {
                found.append(match)
            }
            return ((searcher.definition, searcher.analyzer), found)
        }
        self.count = count
    }

    /// Reads the index in a snapshot in which it has all that was committed when this is called.
    private func inIndex<Value>(
        _ body: (TextSearcher, IndexRow, borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        let (storage, isReadOnly) = (database.storage, database.isReadOnly)
        /// Up to which revision it was brought.
        var reached: SequenceNumber?
        for _ in 0..<Database.attemptLimit {
            let value = try storage.readIndexes { (tables) throws(CofferError) -> Value? in
                guard try tables.indexes.areUsable(), let index = try tables.indexes.index(.text, search.index) else {
                    throw storage.missingTextIndex(search.index)
                }
                if let reached {
                    // Since then it was damaged and emptied, or declared otherwise.
                    guard index.sequence >= reached else { return nil }
                } else if try !tables.isUpToDate(index) {
                    guard !isReadOnly else {
                        throw CofferError(
                            .readOnly, of: storage.subject,
                            "the text index \(index.name) is not up to date, and can't be brought up to date")
                    }
                    return nil
                }
                let definition = try TextDefinition(of: index, storage.subject)
                let searcher = try TextSearcher(
                    index, definition, try definition.analyzer(storage.indexes),
                    weights: try definition.weights(search.weights), tables)
                return try body(searcher, index, tables)
            }
            if let value { return value }
            reached = try database.bringTextIndexUpToDate(search.index).row.sequence
        }
        throw CofferError(.damaged, of: storage.subject, "a text index is emptied again and again")
    }
}

extension TextDefinition {
    /// How much places count in each of the properties.
    fileprivate func weights(_ weights: [PropertyPath: Double]) throws(CofferError) -> [Float] {
        for (path, weight) in weights {
            guard paths.contains(path) else {
                throw CofferError(.invalidArgument, "the text index is not over the property \(path)")
            }
            guard weight == 0 || (1e-6...1e6).contains(weight) else {
                throw CofferError(.invalidArgument, "a property's weight must be zero, or from 0.000001 to 1,000,000")
            }
        }
        return paths.map { Float(weights[$0] ?? 1) }
    }
}
