internal import CofferModel
package import CofferSealing

/// Puts rows together from the pages of a ``PageSource``, one at a time.
package struct RowReader {
    package let source: PageSource

    /// How many parts of long rows are still read. Each belongs to one row, so that an honest file needs no more than it has
    /// pages; one that was made to waste time gets no further.
    private var remainingParts: Int

    /// A body, and what else is in its row.
    private static let longestRow = JSONLimits.byteCount + 8192

    package init(_ source: PageSource) {
        self.source = source
        remainingParts = 8 * source.pageCount + 1024
    }

    /// A row as far as it could be read.
    package enum Row {
        case whole(Record)
        /// A part of it is lost; what is there of its first columns.
        case torn(Record?)
    }

    /// The row of `cell`, which is in `page`.
    package mutating func row(_ cell: TreePage.Cell, in page: [UInt8]) throws(CofferError) -> Row {
        var bytes = Array(page[cell.local])
        let start = bytes
        guard let overflow = cell.overflow else {
            return Record(bytes).map { .whole($0) } ?? .torn(Record(start, isWhole: false))
        }
        guard cell.byteCount <= Self.longestRow else { return .torn(Record(start, isWhole: false)) }
        var next = overflow
        var seen: Set<UInt32> = []
        while bytes.count < cell.byteCount {
            guard next != 0, remainingParts > 0, seen.insert(next).inserted, let part = try source.page(next) else {
                return .torn(Record(start, isWhole: false))
            }
            remainingParts -= 1
            next = UInt32(truncatingIfNeeded: part.bigEndian(4, at: 0))
            bytes += part[4..<min(part.count, 4 + cell.byteCount - bytes.count)]
        }
        guard next == 0, let record = Record(bytes) else { return .torn(Record(start, isWhole: false)) }
        return .whole(record)
    }
}
