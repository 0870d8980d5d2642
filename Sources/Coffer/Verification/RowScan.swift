internal import CofferSealing
internal import CofferSQLite

/// Goes through a table by its integer key, and on around what can't be read.
///
/// Reading in order stops at the first damaged page. So a stretch that can't be read is halved, until what is left of it is
/// single keys: every row is reached that is on a page of its own right, below pages that lead to it.
struct RowScan {
    /// Selects the rows from ?1 up to, but without, ?2, in the order of their keys.
    let rows: StaticString
    /// Selects the highest key.
    let last: StaticString

    /// Keys that are read at once.
    private static let stretch: Int64 = 1024

    /// Hands what `read` makes of each row that can be read to `take`, once its page is known to be right.
    ///
    /// - Parameter connect: opens a snapshot; a new one after one that met damage, which is of no use any more.
    /// - Returns: the keys that can't be read, or would be on a page that can't; nil when it can't be told where the table
    ///   ends.
    func run<Row>(
        connect: () throws(CofferError) -> DocumentTables, read: (Statement) throws(CofferError) -> Row,
        take: (Row) throws(CofferError) -> Void
    ) throws(CofferError) -> [ClosedRange<Int64>]? {
        var tables = try connect()
        defer { try? tables.connection.close() }
        guard let end = try lastKey(tables) else { return nil }
        var damaged: [ClosedRange<Int64>] = []
        for start in stride(from: 0, through: end, by: Int64.Stride(Self.stretch)) {
            var work = [start..<start + Self.stretch]
            while let range = work.popLast() {
                if let rows = try rows(in: range, tables, read) {
                    for row in rows { try take(row) }
                    continue
                }
                try? tables.connection.close()
                tables = try connect()
                if range.count > 1 {
                    let middle = range.lowerBound + Int64(range.count / 2)
                    work.append(middle..<range.upperBound)
                    work.append(range.lowerBound..<middle)
                } else if let last = damaged.last, last.upperBound == range.lowerBound - 1 {
                    damaged[damaged.count - 1] = last.lowerBound...range.lowerBound
                } else {
                    damaged.append(range.lowerBound...range.lowerBound)
                }
            }
        }
        return damaged
    }

    private func lastKey(_ tables: DocumentTables) throws(CofferError) -> Int64? {
        let statement = Statement(tables.connection, last)
        defer { statement.finalize() }
        return try withoutDamage { () throws(CofferError) in
            let key = try statement.first { $0.integer(0) } ?? 0
            try tables.confirmReads()
            return key
        }
    }

    /// - Returns: nil when it met damage.
    private func rows<Row>(
        in range: Range<Int64>, _ tables: DocumentTables, _ read: (Statement) throws(CofferError) -> Row
    ) throws(CofferError) -> [Row]? {
        let statement = Statement(tables.connection, rows)
        defer { statement.finalize() }
        return try withoutDamage { () throws(CofferError) in
            try statement.bind(1, range.lowerBound)
            try statement.bind(2, range.upperBound)
            var rows: [Row] = []
            while try statement.step() { rows.append(try read(statement)) }
            try tables.confirmReads()
            return rows
        }
    }
}

/// What `body` returns; nil when it finds damage.
func withoutDamage<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value? {
    do throws(CofferError) {
        return try body()
    } catch  where error.code == .damaged || error.code == .ioFailed {
        return nil
    }
}
