internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// Reads the entries of an index from some places to others, a batch at a time.
struct EntryReader {
    private let storage: Storage
    private let kind: IndexKind
    private let name: String
    private let isDescending: Bool
    private let loadsValues: Bool
    /// Brings the index up to date, once it was found damaged and dropped; nil if nobody knows how.
    private let remake: (@Sendable () throws(CofferError) -> Void)?
    /// What the index was made for, once that is known.
    private var definition: String?
    /// The sequence that it had when reading began: one that is rebuilt begins below it.
    private var sequence: SequenceNumber = 0
    /// Those that aren't over yet.
    private var ranges: ArraySlice<EntryRange>
    /// The place of the last entry that was read of the first of them, and how many were read there.
    private var last: (place: EntryPosition, count: Int)?
    /// Whether reading ended because somebody deleted the index, or replaced it by another.
    private(set) var hasLostIndex = false

    private static let limit = BatchLimit()

    /// - Parameter definition: what the index is to be made for; nil if that doesn't matter.
    init(
        _ storage: Storage, _ kind: IndexKind, _ name: String, madeFor definition: String?, _ ranges: [EntryRange],
        descending: Bool, loadsValues: Bool, remake: (@Sendable () throws(CofferError) -> Void)?
    ) {
        self.storage = storage
        self.kind = kind
        self.name = name
        self.definition = definition
        self.ranges = ranges[...]
        isDescending = descending
        self.loadsValues = loadsValues
        self.remake = remake
    }

    /// What `make` makes of the next entries, without nil; empty after the last.
    ///
    /// - Parameters:
    ///   - count: how many at most.
    ///   - make: is called in the snapshot that the entries are read in, and perhaps once more for an entry that it has seen. It
    ///     adds how many bytes it has read beside the entry.
    mutating func nextBatch<Row>(
        _ count: Int = .max, _ make: (borrowing Snapshot, IndexEntry, inout Int) throws(CofferError) -> Row?
    ) throws(CofferError) -> [Row] {
        var remakeCount = 0
        while !ranges.isEmpty && count > 0 {
            var batch: [Row] = []
            var next = self
            let isThere = try storage.healingIndexes(afterDropping: remake) { () throws(CofferError) in
                try storage.read { (tables) throws(CofferError) in
                    (next, batch) = (self, [])
                    return try next.read(tables, count, make, &batch)
                }
            }
            guard isThere else {
                // Somebody deleted it, or has it rebuilt.
                guard let remake, remakeCount < 3 else {
                    hasLostIndex = true
                    throw CofferError(
                        .invalidArgument, of: storage.subject, "the index \(name) was deleted or replaced")
                }
                remakeCount += 1
                try remake()
                sequence = 0
                continue
            }
            self = next
            if !batch.isEmpty { return batch }
        }
        return []
    }

    /// - Returns: false where the index isn't there, or isn't what it was.
    private mutating func read<Row>(
        _ tables: borrowing Snapshot, _ count: Int,
        _ make: (borrowing Snapshot, IndexEntry, inout Int) throws(CofferError) -> Row?, _ batch: inout [Row]
    ) throws(CofferError) -> Bool {
        guard try tables.indexes.areUsable(), let index = try tables.indexes.index(kind, name) else {
            // Where nobody may make it, and nobody has, it has no entries.
            guard definition == nil else { return false }
            ranges = []
            return true
        }
        guard definition?.utf8.elementsEqual(index.definition.utf8) ?? true, index.sequence >= sequence else {
            return false
        }
        definition = index.definition
        sequence = index.sequence
        var (byteCount, visitCount, isFull) = (0, 0, false)
        while var range = ranges.first, !isFull {
            if let last {
                if isDescending { range.upper = last.place } else { range.lower = last.place }
            }
            // Entries at the last one's place that are still to be skipped, and how many were seen at the one of now.
            var passingCount = last?.count ?? 0
            var here = (place: last?.place, count: passingCount)
            try tables.indexes.entries(of: index, in: range, descending: isDescending, loadsValues: loadsValues) {
                (entry) throws(CofferError) in
                if passingCount > 0 {
                    if entry.isAt(here.place) {
                        passingCount -= 1
                        return true
                    }
                    passingCount = 0
                }
                visitCount += 1
                byteCount += entry.key.count + (entry.value?.count ?? 0)
                if let row = try make(tables, entry, &byteCount) { batch.append(row) }
                here = entry.isAt(here.place) ? (here.place, here.count + 1) : (entry.place, 1)
                isFull =
                    batch.count >= min(count, Self.limit.rowCount) || byteCount >= Self.limit.byteCount
                    || visitCount >= 20 * Self.limit.rowCount
                return !isFull
            }
            if isFull {
                // Only entries that are not in their order could be read for ever.
                if let place = here.place, let last,
                    place == last.place ? here.count <= last.count : (place < last.place) != isDescending
                {
                    throw CofferError(.damaged, of: storage.subject, "the entries of an index are not in order")
                }
                last = here.place.map { ($0, here.count) }
            } else {
                ranges.removeFirst()
                last = nil
            }
        }
        return true
    }
}

extension IndexEntry {
    fileprivate func isAt(_ place: EntryPosition?) -> Bool {
        guard let place else { return false }
        return key == place.key && id == place.id
    }
}
