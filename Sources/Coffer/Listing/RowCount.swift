internal import CofferRecords
internal import CofferSealing

/// How many rows are still to be skipped, and given at most.
struct RowCount {
    private var skipCount: Int
    private var remainingCount: Int

    /// - Throws: `invalidArgument` (400) for a count below zero.
    init(skip: Int, limit: Int?) throws(CofferError) {
        skipCount = try Self.skipCount(skip)
        remainingCount = try Self.rowCount(limit)
    }

    /// How many rows are skipped.
    ///
    /// - Throws: `invalidArgument` (400) where that is below zero.
    static func skipCount(_ skip: Int) throws(CofferError) -> Int {
        guard skip >= 0 else { throw CofferError(.invalidArgument, "\(skip) rows can't be skipped") }
        return skip
    }

    /// How many rows a limit lets through.
    ///
    /// - Throws: `invalidArgument` (400) for a limit below zero.
    static func rowCount(_ limit: Int?) throws(CofferError) -> Int {
        guard let limit else { return .max }
        guard limit >= 0 else { throw CofferError(.invalidArgument, "a limit of \(limit)") }
        return limit
    }

    /// Whether all were given.
    var isOver: Bool { remainingCount == 0 }

    /// How many rows are needed at most, those skipped too.
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

extension Array {
    /// Those that pass a filter of the app's.
    ///
    /// - Throws: what the filter throws, as `rejected` (403) of `subject` unless it is Coffer's.
    func passing(_ filter: (Element) throws -> Bool, of subject: String) throws(CofferError) -> [Element] {
        do {
            return try self.filter(filter)
        } catch let error as CofferError {
            throw error
        } catch {
            throw CofferError(.rejected, of: subject, "the filter failed", cause: error)
        }
    }
}
