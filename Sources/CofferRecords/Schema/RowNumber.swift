internal import CofferModel
internal import CofferSealing
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
