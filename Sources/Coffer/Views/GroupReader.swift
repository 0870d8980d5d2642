internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// Reads a view's rows and reduces each group of them, a batch of groups at a time.
struct GroupReader {
    private let view: DatabaseView
    private let options: ViewOptions
    private let reduction: Reduction
    private var entries: EntryReader
    private var skipCount: Int
    private var remainingCount: Int

    /// The group that is being read.
    private struct Group {
        /// The key of its last row, so that an equal one needs no reading.
        var lastKey: [UInt8]
        var key: JSONValue
        var reducer: Reducer
    }

    private var group: Group?
    private var isOver = false

    init(_ view: DatabaseView, _ options: ViewOptions, _ reduction: Reduction) throws(CofferError) {
        self.view = view
        self.options = options
        self.reduction = reduction
        entries = try view.entryReader(options, loadsValues: reduction.needsValues || options.filter != nil)
        skipCount = try RowCount.skipCount(options.skip)
        remainingCount = try RowCount.rowCount(options.limit)
    }

    mutating func nextBatch() throws(CofferError) -> [ReducedRow] {
        var groups: [ReducedRow] = []
        do {
            while groups.isEmpty && !isOver && remainingCount > 0 {
                let batch = try entries.nextBatch { (_, entry, _) throws(CofferError) in entry }
                for entry in batch where try passes(entry) {
                    try add(entry, &groups)
                    if remainingCount == 0 { break }
                }
                if batch.isEmpty {
                    isOver = true
                    try endGroup(&groups)
                }
            }
        } catch let error as CofferError {
            throw error.about(view.database.storage.subject)
        } catch {
            throw CofferError(.rejected, of: view.subject, "the reduction or the filter failed", cause: error)
        }
        return groups
    }

    private func passes(_ entry: IndexEntry) throws -> Bool {
        guard let filter = options.filter else { return true }
        let id = String(decoding: entry.id, as: UTF8.self)
        return try filter(try ViewRow(entry, of: id, in: view))
    }

    private mutating func add(_ entry: IndexEntry, _ groups: inout [ReducedRow]) throws {
        if group?.lastKey != entry.key {
            let key = try groupKey(of: entry.key)
            if group?.key != key {
                try endGroup(&groups)
                if remainingCount == 0 { return }
                group = Group(lastKey: entry.key, key: key, reducer: Reducer(reduction))
            } else {
                group?.lastKey = entry.key
            }
        }
        try group?.reducer.add(entry)
    }

    private func groupKey(of key: [UInt8]) throws(CofferError) -> JSONValue {
        guard let level = options.groupLevel, level > 0 else { return .null }
        let value = try CollationKey.value(key)
        guard case .array(let elements) = value, elements.count > level else { return value }
        return .array(Array(elements[..<level]))
    }

    private mutating func endGroup(_ groups: inout [ReducedRow]) throws {
        guard var ended = group else { return }
        group = nil
        if skipCount > 0 {
            skipCount -= 1
        } else {
            groups.append(ReducedRow(key: ended.key, value: try ended.reducer.finish()))
            remainingCount -= 1
        }
    }
}
