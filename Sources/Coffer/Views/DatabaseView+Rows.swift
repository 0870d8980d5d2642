internal import CofferModel
internal import CofferRecords
public import CofferSealing
internal import Dispatch

/// A row of a view.
public struct ViewRow: Sendable {
    /// The key that the view's function emitted.
    public let key: JSONValue

    /// The value that it emitted.
    public let value: JSONValue

    /// The id of the document that it was emitted for.
    public let documentID: String

    /// The sequence of the revision that it was emitted for.
    public let sequence: Int

    /// That document's current revision as it was when the row was read, where ``ViewOptions/loadsDocuments`` asks for it.
    public let revision: SavedRevision?

    private let json: [UInt8]?
    private let view: DatabaseView

    /// The document that it was emitted for. Touches no disk.
    public var document: Document { view.database.document(withID: documentID) }

    init(
        _ entry: IndexEntry, of documentID: String, in view: DatabaseView, revision: SavedRevision? = nil
    ) throws(CofferError) {
        do throws(CofferError) {
            key = try CollationKey.value(entry.key)
            value = try entry.value.map { (json) throws(CofferError) in try JSONValue(canonicalJSON: json) } ?? .null
        } catch {
            throw error.about(view.database.storage.subject)
        }
        json = entry.value
        self.documentID = documentID
        self.view = view
        sequence = entry.sequence.value
        self.revision = revision
    }

    /// The value as your own type.
    ///
    /// - Throws: `DecodingError` when it does not fit.
    public func decodeValue<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try Value(canonical: json ?? Array("null".utf8))
    }
}

/// A row that a view's reduction made of other rows.
public struct ReducedRow: Sendable {
    /// The common part of the rows' keys: the key, or as much of a list as ``ViewOptions/groupLevel`` says. Null where
    /// all rows are reduced to one.
    public let key: JSONValue

    /// The reduced value.
    public let value: JSONValue
}

extension DatabaseView {
    // MARK: Rows

    /// The view's rows, sorted by key unless `options` say otherwise.
    ///
    /// They are read as they are taken, so that a million of them needs no memory; what is committed meanwhile may be among
    /// them.
    ///
    /// - Parameter options: which rows, and how. Errors come when rows are taken: `invalidArgument` (400) when the view was
    ///   given no function, unless it is not to be brought up to date; `invalidJSON` (400) for a key that JSON can't say; as
    ///   `updateIndex()`; what ``ViewOptions/filter`` throws, as `rejected` (403) unless it is Coffer's.
    public func rows(_ options: ViewOptions = ViewOptions()) -> Rows<ViewRow> {
        Rows(waitingIn: database.storage) { [self] () throws(CofferError) in
            try prepare(options)
        } batches: { [self] () throws(CofferError) in
            var reader = try ViewReader(self, options)
            return QueryClock.timed(database.storage.subject, "a view was slow", [:]) { () throws(CofferError) in
                try reader.nextBatch()
            }
        }
    }

    /// The reduced rows of the view, one for each group of ``ViewOptions/groupLevel``, by key.
    ///
    /// Groups are counted by ``ViewOptions/skip`` and ``ViewOptions/limit``. ``ViewOptions/loadsDocuments`` and
    /// ``ViewOptions/sort`` mean nothing here. Where there are no rows there are no groups.
    ///
    /// - Parameter options: as for ``rows(_:)``. `invalidArgument` (400) also when the view was given no reduction; what the
    ///   reduction throws comes as `rejected` (403).
    public func reducedRows(_ options: ViewOptions = ViewOptions()) -> Rows<ReducedRow> {
        Rows(waitingIn: database.storage) { [self] () throws(CofferError) in
            try prepare(options)
        } batches: { [self] () throws(CofferError) in
            var reader = try GroupReader(self, options, try reduction())
            return QueryClock.timed(database.storage.subject, "a reduction was slow", [:]) { () throws(CofferError) in
                try reader.nextBatch()
            }
        }
    }

    /// The reduced value of all rows that `options` ask for; nil if there aren't any.
    ///
    /// - Throws: as ``reducedRows(_:)``.
    public func reduce(_ options: ViewOptions = ViewOptions()) throws(CofferError) -> JSONValue? {
        var options = options
        options.groupLevel = nil
        return try reducedRows(options).all.first?.value
    }

    /// Reads the entries that are asked for, of the function that the view has.
    func entryReader(_ options: ViewOptions, loadsValues: Bool) throws(CofferError) -> EntryReader {
        let ranges = try options.ranges()
        if case .never = options.update {
            return EntryReader(
                database.storage, .view, name, madeFor: nil, ranges, descending: options.isDescending,
                loadsValues: loadsValues, remake: nil)
        }
        // While it is brought up to date in the background its entries are those of the last time.
        let definition: String? = if case .after = options.update { nil } else { try self.definition().definition }
        return EntryReader(
            database.storage, .view, name, madeFor: definition, ranges, descending: options.isDescending,
            loadsValues: loadsValues
        ) { [self] () throws(CofferError) in
            _ = try updateIndex()
        }
    }

    /// Brings the view up to date, where that is asked for.
    private func prepare(_ options: ViewOptions) throws(CofferError) {
        switch options.update {
        case .never: break
        case .before: try updateIndex()
        case .after:
            _ = try definition()
            let index = database.storage.indexes[.view, name]
            guard index.beginBackgroundUpdate() else { return }
            DispatchQueue.global().async { [self] in
                defer { index.endBackgroundUpdate() }
                // Whoever asks next finds what is wrong.
                _ = try? updateIndex()
            }
        }
    }
}

/// Reads a view's rows, a batch at a time.
private struct ViewReader {
    private let view: DatabaseView
    private let options: ViewOptions
    private var entries: EntryReader
    private var count: RowCount
    /// All rows, where they are sorted again; the rest of them once some were given.
    private var sorted: ArraySlice<ViewRow>?

    init(_ view: DatabaseView, _ options: ViewOptions) throws(CofferError) {
        self.view = view
        self.options = options
        entries = try view.entryReader(options, loadsValues: true)
        count = try RowCount(skip: options.skip, limit: options.limit)
    }

    mutating func nextBatch() throws(CofferError) -> [ViewRow] {
        guard let sort = options.sort, !count.isOver || sorted != nil else { return try nextCounted() }
        if sorted == nil {
            var all: [ViewRow] = []
            while case let batch = try nextFiltered(.max), !batch.isEmpty { all += batch }
            all.sort(by: sort)
            sorted = count.take(all)[...]
        }
        let batch = Array((sorted ?? []).prefix(1024))
        sorted?.removeFirst(batch.count)
        return batch
    }

    private mutating func nextCounted() throws(CofferError) -> [ViewRow] {
        while !count.isOver {
            let found = try nextFiltered(count.wantedCount)
            guard !found.isEmpty else { return [] }
            let batch = count.take(found)
            if !batch.isEmpty { return batch }
        }
        return []
    }

    /// The next rows that pass the filter; none after the last.
    private mutating func nextFiltered(_ count: Int) throws(CofferError) -> [ViewRow] {
        while true {
            let found = try entries.nextBatch(options.filter == nil ? count : .max) {
                [view, options] (tables, entry, byteCount) throws(CofferError) in
                let id = String(decoding: entry.id, as: UTF8.self)
                guard options.loadsDocuments else { return try ViewRow(entry, of: id, in: view) }
                let document = view.database.document(withID: id)
                let winner = try tables.winner(of: try document.checkedID(in: tables))?.revision
                byteCount += winner?.body?.count ?? 0
                return try ViewRow(
                    entry, of: id, in: view, revision: winner.map { SavedRevision(document: document, $0) })
            }
            guard let filter = options.filter, !found.isEmpty else { return found }
            let passed = try found.passing(filter, of: view.subject)
            if !passed.isEmpty { return passed }
        }
    }
}
