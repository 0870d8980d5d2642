/// The cells of one page of a SQLite database, where they say that they are: sqlite.org/fileformat2.html, section 1.6.
///
/// The bytes may be anything. Nothing is taken from outside of them, and all cells together cost no more than a few times
/// what a page holds.
package struct TreePage {
    package enum Kind: UInt8 {
        case indexInterior = 2
        case tableInterior = 5
        case indexLeaf = 10
        case tableLeaf = 13

        package var isTable: Bool { self == .tableLeaf || self == .tableInterior }
        package var isLeaf: Bool { self == .tableLeaf || self == .indexLeaf }
    }

    /// A row: what of it stands in the page, and where the rest is.
    package struct Cell {
        /// Of a table's row; 0 in an index.
        package var rowID: Int64 = 0
        /// The length of the whole row.
        package var byteCount: Int
        /// Where in the page it begins.
        package var local: Range<Int>
        /// The first overflow page; nil if the row is in this page.
        package var overflow: UInt32?
    }

    package let kind: Kind
    /// Those that could be read. Interior pages of tables hold no rows, and have none here.
    package let cells: [Cell]
    /// Whether there are others: outside of the page, in each other, or out of order.
    package let hasBrokenCells: Bool

    /// - Returns: nil for bytes that are not a page of a table or index.
    package init?(_ page: [UInt8], number: UInt32) {
        let header = number == 1 ? 100 : 0
        guard page.count > header + 12, let kind = Kind(rawValue: page[header]) else { return nil }
        self.kind = kind
        let count = page.bigEndian(2, at: header + 3)
        let pointers = header + (kind.isLeaf ? 8 : 12)
        let content = pointers + 2 * count
        guard content <= page.count else { return nil }
        guard kind != .tableInterior else {
            cells = []
            hasBrokenCells = false
            return
        }
        var cells: [Cell] = []
        var isBroken = false
        // Cells that lie in each other could make a page cost as much as thousands.
        var remaining = 4 * page.count
        for index in 0..<count {
            let position = page.bigEndian(2, at: pointers + 2 * index)
            guard position >= content, let cell = Self.cell(page, at: position, kind), remaining >= 0 else {
                isBroken = true
                continue
            }
            remaining -= cell.local.count + 16
            cells.append(cell)
        }
        let ordered = kind.isTable ? Self.inOrder(cells) : cells
        self.cells = ordered
        hasBrokenCells = isBroken || ordered.count < cells.count
    }

    /// Those of a table's rows whose numbers stand between those of their neighbors, as in every whole page.
    private static func inOrder(_ cells: [Cell]) -> [Cell] {
        cells.indices.filter { index in
            (index == 0 || cells[index - 1].rowID < cells[index].rowID)
                && (index == cells.count - 1 || cells[index].rowID < cells[index + 1].rowID)
        }.map { cells[$0] }
    }

    private static func cell(_ page: [UInt8], at position: Int, _ kind: Kind) -> Cell? {
        var reader = ByteReader(page, from: kind.isLeaf ? position : position + 4)
        guard let payload = reader.varint(), payload >= 0, payload <= Int64(Int32.max) else { return nil }
        var cell = Cell(byteCount: Int(payload), local: 0..<0)
        if kind.isTable {
            guard let rowID = reader.varint() else { return nil }
            cell.rowID = rowID
        }
        let localCount = localByteCount(of: cell.byteCount, isTable: kind.isTable, usable: page.count)
        let end = reader.position + localCount
        guard end + (localCount < cell.byteCount ? 4 : 0) <= page.count else { return nil }
        cell.local = reader.position..<end
        if localCount < cell.byteCount {
            cell.overflow = UInt32(truncatingIfNeeded: page.bigEndian(4, at: end))
        }
        return cell
    }

    /// How much of a row its page holds: section 1.6, "Cell Payload Overflow Pages".
    private static func localByteCount(of byteCount: Int, isTable: Bool, usable: Int) -> Int {
        let most = isTable ? usable - 35 : (usable - 12) * 64 / 255 - 23
        guard byteCount > most else { return byteCount }
        let least = (usable - 12) * 32 / 255 - 23
        let fitting = least + (byteCount - least) % (usable - 4)
        return fitting <= most ? fitting : least
    }
}

/// A row's columns: section 2.1, "Record Format". The bytes may be anything.
package struct Record {
    package enum Value {
        case null
        case integer(Int64)
        case real
        case blob(Range<Int>)
        case text(Range<Int>)
    }

    package let bytes: [UInt8]
    package let values: [Value]

    /// More than any table has.
    private static let columnLimit = 16

    /// - Parameter bytes: the row, or the beginning of one.
    /// - Returns: nil for bytes that are not a row. Of a beginning, the columns that are whole.
    package init?(_ bytes: [UInt8], isWhole: Bool = true) {
        var header = ByteReader(bytes, from: 0)
        guard let length = header.varint(), length >= 1, length <= Int64(bytes.count) else { return nil }
        var values: [Value] = []
        var position = Int(length)
        while header.position < Int(length) {
            guard values.count < Self.columnLimit, let type = header.varint(), header.position <= Int(length),
                let byteCount = Self.byteCount(ofType: type)
            else { return nil }
            guard byteCount <= bytes.count - position else {
                if isWhole { return nil }
                break
            }
            values.append(Self.value(type, bytes, at: position, byteCount))
            position += byteCount
        }
        guard !isWhole || position == bytes.count else { return nil }
        self.bytes = bytes
        self.values = values
    }

    private static func byteCount(ofType type: Int64) -> Int? {
        switch type {
        case 0, 8, 9: 0
        case 1...4: Int(type)
        case 5: 6
        case 6, 7: 8
        case 12...Int64(Int32.max): Int(type - 12) / 2
        default: nil
        }
    }

    private static func value(_ type: Int64, _ bytes: [UInt8], at position: Int, _ byteCount: Int) -> Value {
        switch type {
        case 0: return .null
        case 7: return .real
        case 8: return .integer(0)
        case 9: return .integer(1)
        case 1...6:
            let shift = 64 - 8 * byteCount
            return .integer(Int64(truncatingIfNeeded: bytes.bigEndian(byteCount, at: position) << shift) >> shift)
        default:
            let range = position..<position + byteCount
            return type % 2 == 0 ? .blob(range) : .text(range)
        }
    }

    // MARK: Columns

    package func isNull(_ column: Int) -> Bool {
        if case .null = values[column] { true } else { false }
    }

    package func integer(_ column: Int) -> Int64? {
        if case .integer(let value) = values[column] { value } else { nil }
    }

    package func blob(_ column: Int) -> [UInt8]? {
        if case .blob(let range) = values[column] { Array(bytes[range]) } else { nil }
    }

    /// Nil also for what is not UTF-8.
    package func text(_ column: Int) -> String? {
        guard case .text(let range) = values[column] else { return nil }
        return String(validating: bytes[range], as: UTF8.self)
    }
}

/// Goes through bytes that may end anywhere.
package struct ByteReader {
    private let bytes: [UInt8]
    package private(set) var position: Int

    package init(_ bytes: [UInt8], from position: Int) {
        self.bytes = bytes
        self.position = position
    }

    /// SQLite's integers of 1 to 9 bytes; nil if the bytes end before it does.
    package mutating func varint() -> Int64? {
        var value: UInt64 = 0
        for index in 0..<9 {
            guard position < bytes.count else { return nil }
            let byte = bytes[position]
            position += 1
            if index == 8 { return Int64(bitPattern: value << 8 | UInt64(byte)) }
            value = value << 7 | UInt64(byte & 0x7f)
            if byte < 0x80 { break }
        }
        return Int64(bitPattern: value)
    }
}

extension [UInt8] {
    /// The number that `count` bytes at `position` are, which must be there; of 8, by its bits.
    package func bigEndian(_ count: Int, at position: Int) -> Int {
        self[position..<position + count].reduce(0) { $0 << 8 | Int($1) }
    }
}
