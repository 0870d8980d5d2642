internal import CofferSealing
internal import CofferRecords

/// Where the compaction of a text index is.
struct TextCompaction {
    /// The index's number.
    let index: IndexNumber
    /// The row that it went up to.
    private var term: [UInt8] = []
    private var block: Int64 = 0
    private(set) var isOver = false

    /// Rows that are looked at in one transaction.
    private static let rowStep = 2_000
    /// An index in which more numbers are dead than that many times those that are alive is rebuilt instead: the numbers themselves
    /// take room, too.
    private static let rebuildingFactor = 4
    private static let smallCount = 10_000

    /// Whether so many numbers are dead that the index is better rebuilt.
    let shouldRebuild: Bool

    /// - Returns: nil if there is nothing to remove.
    init?(of index: IndexNumber, _ tables: borrowing Snapshot) throws(CofferError) {
        let lengths = try tables.indexes.texts.lengths(of: index)
        let aliveCount = lengths.count { $0 > 0 }
        shouldRebuild = lengths.count > Self.rebuildingFactor * aliveCount + Self.smallCount
        self.index = index
        guard lengths.dropFirst().contains(0), try tables.indexes.texts.hasPostings(of: index) else { return nil }
    }

    /// Removes documents that are dead from the next rows.
    mutating func run(_ writer: borrowing Writer) throws(CofferError) {
        guard try writer.tables.indexes.areUsable() else {
            isOver = true
            return
        }
        // Those of now: if the index was emptied since the last step, its numbers begin again.
        let lengths = try writer.tables.indexes.texts.lengths(of: index)
        let rows = try writer.records.indexes.texts.blocks(of: index, after: term, block, limit: Self.rowStep)
        for row in rows {
            (term, block) = (row.term, row.block)
            guard let (rest, isEmpty) = try withoutDead(row.postings, last: row.last, lengths) else { continue }
            try writer.change { () throws(CofferError) in
                if isEmpty {
                    try writer.records.indexes.texts.removeBlock(row.block, of: row.term, in: index)
                } else {
                    try writer.records.indexes.texts.put(rest, row.block, of: row.term, in: index, isThere: true)
                }
            }
        }
        isOver = rows.count < Self.rowStep
    }

    /// - Returns: nil if all documents in the row are alive.
    private func withoutDead(
        _ postings: [UInt8], last: Int64, _ lengths: [UInt16]
    ) throws(CofferError) -> (PostingBlock, isEmpty: Bool)? {
        var reader = PostingReader(postings, last: last)
        var rest = PostingBlock()
        var (places, hasDead, isEmpty) = ([TermPlace](), false, true)
        while true {
            places.removeAll(keepingCapacity: true)
            guard let number = try reader.next({ places.append($0) }) else { break }
            if Int(number) < lengths.count && lengths[Int(number)] == 0 {
                hasDead = true
            } else {
                // What was in one row fits into it.
                guard rest.append(number, places[...]) == places.count else { throw PostingReader.damage }
                isEmpty = false
            }
        }
        return hasDead ? (rest, isEmpty) : nil
    }
}
