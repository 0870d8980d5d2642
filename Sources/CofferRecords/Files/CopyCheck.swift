internal import CofferModel
internal import CofferSealing
internal import CofferSQLite
internal import CofferVault

/// Checks a copy of a database as whoever has only its key finds it, in two parts that can run at once. Each reads every page once.
///
/// `PRAGMA integrity_check` would say of trees and indexes what this says, but goes through every row of a table with an index
/// once more: here who reads the rows anyway looks for their entries. It also notices NULL in a column that may have none, which
/// is for who reads the row to notice.
struct CopyCheck: Sendable {
    private let target: DatabaseFile
    private let monitor: WorkMonitor

    init(_ target: DatabaseFile, _ monitor: WorkMonitor) {
        self.target = target
        self.monitor = monitor
    }

    private static let cacheByteCount = 8 << 20

    // MARK: Trees

    /// Checks that pages and trees are well formed, that the keys of each tree are in its order, and that each index leads to
    /// each row and to no other, but for indexes of tables with bodies.
    ///
    /// - Throws: `damaged` (500).
    func checkTrees() throws(CofferError) {
        let tables = Snapshot(try target.connect(.immutable, cacheByteCount: Self.cacheByteCount))
        tables.connection.ask { [monitor] in monitor.goesOn }
        let check = Statement(tables.connection, "PRAGMA quick_check(1)")
        guard try check.step(), check.text(0) == "ok" else {
            // An interrupted check can end with a complaint, too.
            try monitor.checkCancelled()
            throw damage("is not well formed")
        }
        check.finalize()
        for table in try Schema.tables + (tables.indexes.areUsable() ? IndexSchema.tables : []) {
            if let keys = table.keys { try checkOrder(keys, in: tables.connection) }
            for index in table.indexes {
                guard let rows = index.rows else { continue }
                let counts = Statement(tables.connection, rows)
                defer { counts.finalize() }
                let (all, found) = try counts.first { ($0.integer(0), $0.integer(1)) } ?? (0, 0)
                try expect(found == all, "has rows that an index doesn't lead to")
                try checkEntryCount(of: index, rowCount: Int(all), in: tables.connection)
            }
            try monitor.checkCancelled()
        }
        try tables.confirmReads()
    }

    /// Checks that what `keys` selects from a tree without rowids is in order, each key once: SQLite's quick check doesn't say.
    private func checkOrder(_ keys: StaticString, in connection: borrowing Connection) throws(CofferError) {
        let keys = Statement(connection, keys)
        defer { keys.finalize() }
        var last: [TreeKey] = []
        while try keys.step() {
            let key = (0..<keys.columnCount).map { TreeKey(keys, $0) }
            try expect(last.lexicographicallyPrecedes(key), "has keys out of order")
            last = key
        }
    }

    private func checkEntryCount(
        of index: Schema.Index, rowCount: Int, in connection: borrowing Connection
    ) throws(CofferError) {
        let count = try Self.count(index.entryCount, in: connection)
        try expect(count == rowCount, "has entries of an index that lead to no row")
    }

    // MARK: Rows

    /// Checks that it is bound to its store, has as many rows as the original, and that every body is what was written and found by
    /// the index of its table.
    ///
    /// - Parameter rowCounts: of the original's tables, as ``rowCounts(in:)`` has them; nil if it has others.
    /// - Returns: how many documents there are, not counting deleted ones.
    /// - Throws: `damaged` (500), naming a document whose body is not what its digest says.
    func checkRows(_ rowCounts: [Int]?, _ binding: Binding) throws(CofferError) -> Int {
        let tables = Snapshot(try target.connect(.immutable, cacheByteCount: Self.cacheByteCount))
        guard try Binding.read(from: tables.connection) == binding else { throw damage("names another store") }
        var counts: [Int] = []
        for table in Schema.tables {
            if let bodies = table.bodies {
                counts.append(try checkBodies(bodies, of: table, in: tables.connection))
            } else {
                counts.append(try Self.count(table.count, in: tables.connection))
            }
            try monitor.checkCancelled()
        }
        counts += try Self.indexRowCounts(in: tables.connection)
        try expect(rowCounts == nil || rowCounts == counts, "has other rows")
        if try tables.indexes.areUsable() { try tables.indexes.readEverything() }
        let count = try tables.documentCount()
        try tables.confirmReads()
        return count
    }

    /// - Returns: how many rows there are, with or without a body.
    private func checkBodies(
        _ bodies: StaticString, of table: Schema.Table, in connection: borrowing Connection
    ) throws(CofferError) -> Int {
        let bodies = Statement(connection, bodies)
        defer { bodies.finalize() }
        var (count, indexedCount) = (0, 0)
        while try bodies.step() {
            count += 1
            if !bodies.isNull(3) {
                indexedCount += 1
                try expect(bodies.integer(3) != 0, "has rows that an index doesn't lead to")
            }
            guard !bodies.isNull(1) else { continue }
            guard try BodyDigest.matches(bodies.isNull(0) ? nil : bodies.bytes(0), of: bodies.bytes(1)) else {
                throw CofferError(
                    .damaged, of: "document \(bodies.text(2)) of \(target.subject)", "its body is not what was written")
            }
            try monitor.checkCancelled()
        }
        for index in table.indexes { try checkEntryCount(of: index, rowCount: indexedCount, in: connection) }
        return count
    }

    // MARK: Counting

    /// How many rows each table has: 0 of those of indexes where there aren't any that can be used.
    static func rowCounts(in connection: borrowing Connection) throws(CofferError) -> [Int] {
        var counts: [Int] = []
        for table in Schema.tables { counts.append(try count(table.count, in: connection)) }
        return try counts + indexRowCounts(in: connection)
    }

    private static func indexRowCounts(in connection: borrowing Connection) throws(CofferError) -> [Int] {
        guard try IndexTables(connection).areUsable() else { return IndexSchema.tables.map { _ in 0 } }
        return try IndexSchema.tables.map { (table) throws(CofferError) in try count(table.count, in: connection) }
    }

    private static func count(_ count: StaticString, in connection: borrowing Connection) throws(CofferError) -> Int {
        let count = Statement(connection, count)
        defer { count.finalize() }
        return try count.first { Int($0.integer(0)) } ?? 0
    }

    private func expect(_ isRight: Bool, _ complaint: String) throws(CofferError) {
        if !isRight { throw damage(complaint) }
    }

    private func damage(_ complaint: String) -> CofferError {
        CofferError(.damaged, of: target.subject, "a copy of the database \(complaint)")
    }
}

/// A column of a key, in the order of SQLite's trees: sqlite.org/fileformat2.html, section 2.2.
private enum TreeKey: Comparable {
    case integer(Int64)
    case text([UInt8])
    case blob([UInt8])

    init(_ row: Statement, _ column: Int32) {
        self =
            if row.isInteger(column) { .integer(row.integer(column)) } else if row.isBlob(column) {
                .blob(row.bytes(column))
            } else { .text(row.bytes(column)) }
    }

    static func < (left: TreeKey, right: TreeKey) -> Bool {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): left < right
        case (.integer, _): true
        case (_, .integer): false
        case (.text(let left), .text(let right)), (.blob(let left), .blob(let right)):
            left.lexicographicallyPrecedes(right)
        case (.text, .blob): true
        case (.blob, .text): false
        }
    }
}
