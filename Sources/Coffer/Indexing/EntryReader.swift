internal import CofferModel
internal import CofferSealing

/// Reads the entries of an index from some places to others, a batch at a time.
struct EntryReader {
    private let storage: Storage
    private let kind: IndexKind
    private let name: String
    private let isDescending: Bool
    private let loadsValues: Bool
    /// Brings the index up to date, once it was found damaged and dropped; nil where nobody knows how.
    private let remake: (@Sendable () throws(CofferError) -> Void)?
    /// Those that aren't over yet.
    private var ranges: ArraySlice<EntryRange>
    /// The last entry that was read of the first of them.
    private var last: (place: EntryPosition, number: Int64)?

    private static let limit = BatchLimit()

    init(
        _ storage: Storage, _ kind: IndexKind, _ name: String, _ ranges: [EntryRange], descending: Bool,
        loadsValues: Bool, remake: (@Sendable () throws(CofferError) -> Void)?
    ) {
        self.storage = storage
        self.kind = kind
        self.name = name
        self.ranges = ranges[...]
        isDescending = descending
        self.loadsValues = loadsValues
        self.remake = remake
    }

    /// What `make` makes of the next entries, without nil; empty after the last.
    ///
    /// - Parameters:
    ///   - count: how many at most.
    ///   - make: is called in the snapshot that the entries are read in, and perhaps once more for an entry that it has seen.
    mutating func nextBatch<Row>(
        _ count: Int = .max, _ make: (DocumentTables, IndexEntry) throws(CofferError) -> Row?
    ) throws(CofferError) -> [Row] {
        while !ranges.isEmpty && count > 0 {
            var batch: [Row] = []
            var next = self
            try storage.healingIndexes(afterDropping: remake) { () throws(CofferError) in
                try storage.read { (tables) throws(CofferError) in
                    (next, batch) = (self, [])
                    try next.read(tables, count, make, &batch)
                }
            }
            self = next
            if !batch.isEmpty { return batch }
        }
        return []
    }

    private mutating func read<Row>(
        _ tables: DocumentTables, _ count: Int, _ make: (DocumentTables, IndexEntry) throws(CofferError) -> Row?,
        _ batch: inout [Row]
    ) throws(CofferError) {
        guard try tables.indexes.areUsable(), let index = try tables.indexes.index(kind, name) else {
            ranges = []
            return
        }
        var (byteCount, visitCount, isFull) = (0, 0, false)
        while var range = ranges.first, !isFull {
            // Entries at the last one's place that were read before it.
            var seen = last
            if let last {
                if isDescending { range.upper = last.place } else { range.lower = last.place }
            }
            try tables.indexes.entries(of: index, in: range, descending: isDescending, loadsValues: loadsValues) {
                (entry) throws(CofferError) in
                if let last = seen {
                    let isBefore = isDescending ? entry.number >= last.number : entry.number <= last.number
                    if isBefore && last.place == entry.place { return true }
                    seen = nil
                }
                visitCount += 1
                byteCount += entry.key.count + (entry.value?.count ?? 0)
                if let row = try make(tables, entry) { batch.append(row) }
                isFull =
                    batch.count >= min(count, Self.limit.rowCount) || byteCount >= Self.limit.byteCount
                    || visitCount >= 20 * Self.limit.rowCount
                if isFull { last = (entry.place, entry.number) }
                return !isFull
            }
            if !isFull {
                ranges.removeFirst()
                last = nil
            }
        }
    }
}

extension IndexEntry {
    fileprivate var place: EntryPosition { EntryPosition(key: key, id: id) }
}
