/// How many rows are still to be passed over, and given at most.
struct RowCount {
    private var skipCount: Int
    private var remainingCount: Int

    init(skip: Int, limit: Int?) {
        skipCount = max(0, skip)
        remainingCount = max(0, limit ?? .max)
    }

    /// Whether all were given.
    var isOver: Bool { remainingCount == 0 }

    /// How many rows are needed at most, those passed over too.
    var wantedCount: Int {
        let (sum, overflows) = skipCount.addingReportingOverflow(remainingCount)
        return overflows ? .max : sum
    }

    /// Those of the next rows that are to be given.
    mutating func take<Row>(_ rows: [Row]) -> [Row] {
        let skipped = min(skipCount, rows.count)
        let taken =
            skipped == 0 && rows.count <= remainingCount
            ? rows : Array(rows.dropFirst(skipped).prefix(remainingCount))
        skipCount -= skipped
        remainingCount -= taken.count
        return taken
    }
}
