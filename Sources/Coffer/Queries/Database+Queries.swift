internal import CofferModel
public import CofferSealing
internal import CofferRecords

extension Database {
    // MARK: Queries

    /// The documents that a query asks for, each by its current revision. Deleted documents and those whose id starts with
    /// `_design/` are never among them.
    ///
    /// An index of `createIndex(named:on:)` is used where one narrows or sorts what is to be read (``explain(_:)`` tells),
    /// and brought up to date first. Documents are read as they are taken; what is committed meanwhile may be among them.
    ///
    /// - Parameter query: errors come when rows are taken: `invalidJSON` (400) for a value in it that JSON can't say;
    ///   `invalidArgument` (400) when the index in use is deleted or replaced after the first rows were taken; `busy` (503),
    ///   `noSpace` (507) where an index has to be brought up to date; `damaged` and `closed` (500).
    public func documents(_ query: DocumentQuery) -> Rows<SavedRevision> {
        Rows(waitingIn: storage) { [self] () throws(CofferError) in
            try bringUpToDate(for: query)
        } batches: { [self] () throws(CofferError) in
            // An index that somebody has just made may serve it better, and has nothing yet.
            var planned = try planned(query)
            for _ in 0..<Self.attemptLimit {
                guard let index = planned.plan.index, index.isStale, !index.hasBeenMade else { break }
                try bringUpToDate(for: query)
                planned = try self.planned(query)
            }
            var reader = try QueryReader(self, query, planned)
            return QueryClock.timed(storage.subject, "a query was slow", planned.plan.logDetails) {
                () throws(CofferError) in try reader.nextBatch()
            }
        }
    }

    /// How ``documents(_:)`` would find what a query asks for.
    ///
    /// - Throws: `invalidJSON` (400) for a value in it that JSON can't say; `damaged` and `closed` (500).
    public func explain(_ query: DocumentQuery) throws(CofferError) -> QueryPlan { try planned(query).plan }

    func planned(_ query: DocumentQuery) throws(CofferError) -> PlannedQuery {
        let planner = try QueryPlanner(query)
        return planner.plan(try usableIndexes())
    }

    /// Those that can be brought up to date, or are.
    private func usableIndexes() throws(CofferError) -> [PropertyIndex] {
        try storage.readIndexes { (tables) throws(CofferError) in try usableIndexes(tables) }
    }

    private func usableIndexes(_ tables: borrowing Snapshot) throws(CofferError) -> [PropertyIndex] {
        guard try tables.indexes.areUsable() else { return [] }
        var usable: [PropertyIndex] = []
        for row in try tables.indexes.indexes(.properties) {
            let index = try PropertyIndex(row, in: tables)
            if !storage.isReadOnly || !index.isStale { usable.append(index) }
        }
        return usable
    }

    // MARK: Indexes

    /// Declares an index over properties, so that ``documents(_:)`` finds documents by them without reading all.
    ///
    /// It serves predicates that say what its first properties are equal to, and between which values the next one is; and
    /// orders by the properties that follow those that are equal. Entries are kept in the database, encrypted as it is, and
    /// survive a change of its key. They are brought up to date by the queries that use them.
    ///
    /// One path may say `tags[]`: the index has an entry for each element of that list then, and serves what is said of one
    /// element (``Property/hasElement(_:)``, ``Property/anyElement(_:)``). Documents without the list are not in it.
    ///
    /// - Parameters:
    ///   - name: 1 to 400 bytes. An index of that name over other properties is replaced.
    ///   - paths: one property at least, and no more than some dozen.
    /// - Returns: whether there wasn't one over these properties by that name.
    /// - Throws: `invalidArgument` (400) for no properties, for more than one path with `[]`, and for a name or paths that are
    ///   too long; `readOnly` (403), `busy`
    ///   (503), `noSpace` (507).
    @discardableResult
    public func createIndex(named name: String, on paths: PropertyPath...) throws(CofferError) -> Bool {
        try createIndex(named: name, on: paths)
    }

    /// Declares an index over properties: see the form with paths one after another.
    @discardableResult
    public func createIndex(named name: String, on paths: [PropertyPath]) throws(CofferError) -> Bool {
        guard !paths.isEmpty else {
            throw CofferError(.invalidArgument, of: "index \(name)", "it needs at least one property")
        }
        guard paths.count(where: \.isOverElements) <= 1 else {
            throw CofferError(.invalidArgument, of: "index \(name)", "it can be over the elements of one list")
        }
        return try storage.declare(IndexDefinition(named: name, on: paths))
    }

    /// Drops an index that was declared over properties.
    ///
    /// - Returns: whether there was one of that name.
    /// - Throws: `readOnly` (403), `busy` (503).
    @discardableResult
    public func deleteIndex(named name: String) throws(CofferError) -> Bool {
        try storage.deleteIndex(.properties, name)
    }

    /// The indexes that were declared over properties, sorted by the bytes of their names.
    public var indexes: [PropertyIndex] {
        get throws(CofferError) {
            try storage.listIndexes(.properties) { (row, tables) throws(CofferError) in
                try PropertyIndex(row, in: tables)
            }
        }
    }

    /// Brings all indexes that were declared over properties up to date, which queries that use them do automatically.
    ///
    /// - Returns: how many documents were looked at, in all indexes together.
    /// - Throws: `readOnly` (403), `busy` (503), `noSpace` (507), `damaged` (500).
    @discardableResult
    public func updateIndexes() throws(CofferError) -> Int {
        var documentCount = 0
        for index in try indexes {
            documentCount += try storage.healingIndexes { () throws(CofferError) in
                try storage.update(index.definition, making: false, in: self)?.documentCount ?? 0
            }
        }
        return documentCount
    }

    /// Brings the index that serves a query up to date, unless the database is open for reading only.
    func bringUpToDate(for query: DocumentQuery) throws(CofferError) {
        guard !isReadOnly else { return }
        // Where it was deleted meanwhile, another one serves, or none.
        for _ in 0..<Self.attemptLimit {
            guard let index = try planned(query).plan.index, try bringUpToDate(index) == nil else { return }
        }
        throw CofferError(.damaged, of: storage.subject, "a listed index can't be found")
    }

    /// How often an index that serves a query is looked for: nobody deletes that many meanwhile.
    static let attemptLimit = 16

    /// - Returns: nil if the index isn't there any more.
    @discardableResult
    func bringUpToDate(_ index: PropertyIndex) throws(CofferError) -> IndexRow? {
        try storage.healingIndexes { () throws(CofferError) in
            try storage.update(index.definition, making: false, in: self)?.row
        }
    }
}

extension PropertyIndex {
    /// The index that a row of `indexes` says.
    init(_ row: IndexRow, in tables: borrowing Snapshot) throws(CofferError) {
        guard let paths = try? JSONValue(json: row.definition.utf8).arrayValue,
            case let texts = paths.compactMap(\.stringValue), texts.count == paths.count, !texts.isEmpty
        else {
            throw CofferError(
                .damaged, of: tables.subject, "the index \(row.name) doesn't state its properties")
        }
        self.init(
            name: row.name, paths: texts.map { PropertyPath($0) }, documentCount: row.entryCount,
            isStale: try !tables.isUpToDate(row), hasBeenMade: row.sequence > 0)
        // It would not be found by what it is over.
        guard definition.definition.utf8.elementsEqual(row.definition.utf8) else {
            throw CofferError(
                .damaged, of: tables.subject,
                "the index \(row.name) states its properties in an unknown form")
        }
    }

    /// What it holds.
    var definition: IndexDefinition { IndexDefinition(named: name, on: paths) }
}

extension IndexDefinition {
    /// The entries of a declared index, without values: one for each document, or one for each different element where a path
    /// is over those.
    init(named name: String, on paths: [PropertyPath]) {
        self.init(kind: .properties, name: name, definition: paths.map(\.description).jsonValue.description) {
            revision in
            let (properties, id) = (try revision.properties, revision.documentID)
            guard let place = paths.firstIndex(where: \.isOverElements) else {
                let key = try CollationKey(of: paths.map { $0.value(in: properties, id: id) })
                return [MappedEntry(key: key.bytes, value: nil)]
            }
            let before = try CollationKey(of: paths[..<place].map { $0.value(in: properties, id: id) }).bytes
            let after = try CollationKey(of: paths[(place + 1)...].map { $0.value(in: properties, id: id) }).bytes
            var keys: Set<[UInt8]> = []
            for value in paths[place].values(in: properties, id: id) {
                keys.insert(try CollationKey(of: [value]).bytes)
            }
            return keys.map { MappedEntry(key: before + $0 + after, value: nil) }
        }
    }
}
