internal import CofferModel
package import CofferSQLite
package import CofferSealing
internal import CofferVault

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Opens snapshots of the database that is looked at, each on a connection of its own.
package struct SnapshotSource: Sendable {
    package let database: DatabaseFile
    package let reading: DatabaseFile.Reading
    package let monitor: WorkMonitor

    package init(database: DatabaseFile, reading: DatabaseFile.Reading, monitor: WorkMonitor) {
        self.database = database
        self.reading = reading
        self.monitor = monitor
    }

    /// A new connection in a snapshot, whose long statements end when the work is cancelled.
    package func open() throws(CofferError) -> Snapshot {
        let snapshot = try database.openSnapshot(reading, cacheByteCount: 8 << 20)
        snapshot.connection.ask { [monitor] in monitor.goesOn }
        try snapshot.hold()
        return snapshot
    }
}

/// Goes through a table by its integer key, and on around what can't be read.
///
/// Reading in order stops at the first damaged page. So a stretch that can't be read is halved, until what is left of it is
/// single keys: every row is reached that is on a page of its own right, below pages that lead to it.
package struct RowScan {
    /// Selects the rows from ?1 up to and with ?2, in the order of their keys.
    package let rows: StaticString
    /// Selects the lowest key from ?1 on, or NULL.
    package let next: StaticString
    /// Selects the highest key, or NULL.
    package let last: StaticString

    /// Keys that are read at once.
    private static let stretch: Int64 = 1024
    /// How often damage is met before stretches are no longer halved: each costs a new connection.
    package var patience = 20_000

    /// Hands what `read` makes of each row that can be read to `take`, once its page is known to be right.
    ///
    /// - Parameter snapshots: where a new one comes from after one that met damage, which is of no use any more.
    /// - Returns: the keys that can't be read, or would be on a page that can't; nil when it can't be told where the table
    ///   ends.
    package func run<Row>(
        _ monitor: WorkMonitor, in snapshots: SnapshotSource,
        read: (Statement) throws(CofferError) -> Row, take: (Row) throws(CofferError) -> Void
    ) throws(CofferError) -> [ClosedRange<Int64>]? {
        var tables = try snapshots.open()
        var damaged: [ClosedRange<Int64>] = []
        var damageCount = 0
        var position = Int64.min
        while true {
            // Where the way to the next row is damaged, the last row says how far the keys go.
            let start: Int64
            switch try key(from: position, tables) {
            case .found(let key?): start = key
            case .found(nil): return damaged
            case .unreadable:
                tables = try snapshots.open()
                guard let last = try lastKey(tables) else { return nil }
                if position > last { return damaged }
                // Only a hostile table has keys below 1.
                start = max(position, 0)
                guard damageCount < patience else {
                    let end = try endOfGap(from: start, to: last, &tables, snapshots)
                    guard let end else {
                        Self.add(min(start, position)...last, to: &damaged)
                        return damaged
                    }
                    Self.add(start...end - 1, to: &damaged)
                    position = end
                    continue
                }
            }
            let end = start.addingSaturated(Self.stretch - 1)
            var work = [start...end]
            position = end.addingSaturated(1)
            while let range = work.popLast() {
                try monitor.checkCancelled()
                if let rows = try rows(in: range, tables, read) {
                    for row in rows { try take(row) }
                    continue
                }
                damageCount += 1
                tables = try snapshots.open()
                if range.count > 1 && damageCount < patience {
                    let middle = range.lowerBound + Int64(range.count / 2)
                    work.append(middle...range.upperBound)
                    work.append(range.lowerBound...middle - 1)
                } else {
                    Self.add(range, to: &damaged)
                }
            }
            if end == .max { return damaged }
        }
    }

    private static func add(_ range: ClosedRange<Int64>, to damaged: inout [ClosedRange<Int64>]) {
        if let last = damaged.last, last.upperBound == range.lowerBound - 1 {
            damaged[damaged.count - 1] = last.lowerBound...range.upperBound
        } else {
            damaged.append(range)
        }
    }

    /// Where, behind a place from which no way leads on, one does again: exact to a stretch, after a number of tries that
    /// goes with the logarithm of the distance. A hostile table can have a gap of 2^62 keys.
    ///
    /// - Returns: nil if none does up to the last key.
    private func endOfGap(
        from start: Int64, to last: Int64, _ tables: inout Snapshot, _ snapshots: SnapshotSource
    ) throws(CofferError) -> Int64? {
        guard start < last else { return nil }
        var (lost, found) = (start, last)
        var step = Self.stretch
        while case let place = start.addingSaturated(step), place < last {
            if try canGoOn(from: place, &tables, snapshots) {
                found = place
                break
            }
            lost = place
            step = step.addingSaturated(step)
        }
        while found - lost > Self.stretch {
            let middle = lost + (found - lost) / 2
            if try canGoOn(from: middle, &tables, snapshots) { found = middle } else { lost = middle }
        }
        return found
    }

    private func canGoOn(
        from place: Int64, _ tables: inout Snapshot, _ snapshots: SnapshotSource
    ) throws(CofferError) -> Bool {
        if case .found = try key(from: place, tables) { return true }
        tables = try snapshots.open()
        return false
    }

    private enum Next {
        case found(Int64?)
        case unreadable
    }

    private func key(from start: Int64, _ tables: borrowing Snapshot) throws(CofferError) -> Next {
        let statement = Statement(tables.connection, next)
        defer { statement.finalize() }
        let key = try withoutDamage { () throws(CofferError) -> Next in
            try statement.bind(1, start)
            let key = try statement.first { $0.isNull(0) ? nil : $0.integer(0) } ?? nil
            try tables.confirmReads()
            return .found(key)
        }
        return key ?? .unreadable
    }

    private func lastKey(_ tables: borrowing Snapshot) throws(CofferError) -> Int64? {
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
        in range: ClosedRange<Int64>, _ tables: borrowing Snapshot, _ read: (Statement) throws(CofferError) -> Row
    ) throws(CofferError) -> [Row]? {
        let statement = Statement(tables.connection, rows)
        defer { statement.finalize() }
        return try withoutDamage { () throws(CofferError) in
            try statement.bind(1, range.lowerBound)
            try statement.bind(2, range.upperBound)
            var rows: [Row] = []
            while try statement.step() {
                rows.append(try read(statement))
                // Looking for another would meet the next page, which may be the damaged one.
                if range.lowerBound == range.upperBound { break }
            }
            try tables.confirmReads()
            return rows
        }
    }
}

extension CofferError {
    /// Whether it says that stored bytes are not what was written, or can't be read at all.
    package var isDamage: Bool {
        code == .damaged || code == .ioFailed && (cause is UnreadableBytes || systemErrorNumber == EIO)
    }
}

/// What `body` returns; nil when it finds damage.
package func withoutDamage<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value? {
    do throws(CofferError) {
        return try body()
    } catch  where error.isDamage {
        return nil
    }
}
