internal import CofferModel
package import CofferSealing
internal import CofferSQLite

/// The number of a row, of a type of its own for each table: one can't be handed in where another is asked for.
///
/// Literals and comparisons are those of the plain number. Calculations are rare, and go through ``rawValue``.
package protocol RowNumber: Hashable, Comparable, Sendable, CustomStringConvertible, ExpressibleByIntegerLiteral {
    var rawValue: Int64 { get }

    init(_ rawValue: Int64)
}

extension RowNumber {
    /// No row has it: for bounds of what has no last.
    @inlinable package static var max: Self { Self(.max) }

    @inlinable package init(integerLiteral value: Int64) { self.init(value) }

    @inlinable package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The number after this one. The highest that a table gives is far below what fits: see ``Schema/counts``.
    @inlinable package var next: Self { Self(rawValue + 1) }

    package var description: String { String(rawValue) }
}

/// The number of a revision: the order in which the database received its revisions, from 1. No number is given twice.
package struct SequenceNumber: RowNumber {
    package let rawValue: Int64

    @inlinable package init(_ rawValue: Int64) { self.rawValue = rawValue }

    /// As users of the library name it.
    @inlinable package init(_ value: Int) { rawValue = Int64(value) }

    /// As users of the library name it.
    @inlinable package var value: Int { Int(rawValue) }

    /// The number `count` further on, or back where that is negative; the last or first there is instead of one beyond.
    package func advanced(by count: Int64) -> SequenceNumber { SequenceNumber(rawValue.addingSaturated(count)) }

    /// How many numbers one is after the other.
    @inlinable package static func - (later: SequenceNumber, earlier: SequenceNumber) -> Int64 {
        later.rawValue - earlier.rawValue
    }
}

/// The number of a document: the sequence of its first revision.
package struct DocumentNumber: RowNumber {
    package let rawValue: Int64

    @inlinable package init(_ rawValue: Int64) { self.rawValue = rawValue }

    /// The number of the document whose first revision this is.
    @inlinable package init(first sequence: SequenceNumber) { rawValue = sequence.rawValue }

    /// The sequence of the document's first revision.
    @inlinable package var firstSequence: SequenceNumber { SequenceNumber(rawValue) }
}

/// The number of an attachment's content, which may belong to any number of revisions.
package struct ContentNumber: RowNumber {
    package let rawValue: Int64

    @inlinable package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// The number of an index.
package struct IndexNumber: RowNumber {
    package let rawValue: Int64

    @inlinable package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

extension ClosedRange<Int64> {
    package func contains(_ number: some RowNumber) -> Bool { contains(number.rawValue) }
}

extension Statement {
    func bind(_ index: Int32, _ number: some RowNumber) throws(CofferError) { try bind(index, number.rawValue) }

    func bind(_ index: Int32, _ number: (some RowNumber)?) throws(CofferError) { try bind(index, number?.rawValue) }

    /// The number in `column`, 0 for null.
    func number<Number: RowNumber>(_ column: Int32) -> Number { Number(integer(column)) }
}

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
