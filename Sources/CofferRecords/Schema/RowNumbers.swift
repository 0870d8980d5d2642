package import CofferSealing
internal import CofferSQLite

/// A table whose rows have numbers of their own, by which an index leads to them.
package enum NumberedTable: Int, CaseIterable {
    case attachments
    case localDocuments
    case indexEntries

    /// What `info` calls the highest number that a row ever had.
    fileprivate var noteKey: String {
        switch self {
        case .attachments: "last_attachment"
        case .localDocuments: "last_local"
        case .indexEntries: "last_entry"
        }
    }

    /// The highest number that a row has.
    fileprivate var lastNumber: StaticString {
        switch self {
        case .attachments: "SELECT max(number) FROM attachments"
        case .localDocuments: "SELECT max(number) FROM local_documents"
        case .indexEntries: "SELECT max(number) FROM index_entries"
        }
    }
}

/// The writer's statements for the numbers of rows.
///
/// None is given twice, not even that of a row which was removed: a page of an older state that somebody puts back would lead to
/// what has the number now. (Revisions have sequences, and indexes a count of their own, for the same reason.)
package struct RowNumbers: ~Copyable {
    private let findLast: [Statement]
    private let findNoted, note: Statement

    init(_ connection: borrowing Connection) {
        var findLast: [Statement] = []
        for table in NumberedTable.allCases { findLast.append(Statement(connection, table.lastNumber)) }
        self.findLast = findLast
        findNoted = Statement(connection, "SELECT value FROM info WHERE key = ?1")
        note = Statement(connection, "INSERT OR REPLACE INTO info (key, value) VALUES (?1, ?2)")
    }

    /// The highest number that a row of the table ever had, 0 where there wasn't one. The table must be there.
    package func last(of table: NumberedTable) throws(CofferError) -> Int64 {
        try findNoted.bind(1, table.noteKey)
        let noted = try findNoted.first { $0.integer(0) } ?? 0
        return max(noted, try findLast[table.rawValue].first { $0.integer(0) } ?? 0)
    }

    /// Notes the highest number that a row of the table ever had.
    package func note(_ number: Int64, of table: NumberedTable) throws(CofferError) {
        try note.bind(1, table.noteKey)
        try note.bind(2, number)
        try note.run()
    }
}

/// The highest numbers that the transactions of one writer have given, as far as it has asked.
package struct GivenNumbers {
    /// By ``NumberedTable``. What was rolled back keeps its number.
    private var last = [Int64?](repeating: nil, count: NumberedTable.allCases.count)
    private var isNoted = [Bool](repeating: true, count: NumberedTable.allCases.count)

    package init() {}

    package mutating func next(
        _ table: NumberedTable, last known: () throws(CofferError) -> Int64
    ) throws(CofferError) -> Int64? {
        let number = if let last = last[table.rawValue] { last } else { try known() }
        guard Schema.counts.contains(number), number < Schema.counts.upperBound else { return nil }
        last[table.rawValue] = number + 1
        isNoted[table.rawValue] = false
        return number + 1
    }

    /// The tables of which the database is to note what the highest number is now.
    package mutating func takeUnnoted() -> [(table: NumberedTable, last: Int64)] {
        var found: [(NumberedTable, Int64)] = []
        for table in NumberedTable.allCases where !isNoted[table.rawValue] {
            isNoted[table.rawValue] = true
            if let last = last[table.rawValue] { found.append((table, last)) }
        }
        return found
    }
}
