package import CofferSealing

/// A place of a term: in which of the index's texts of a document, and the how manieth term of that it is.
package struct TermPlace: Equatable, Comparable, Sendable {
    package private(set) var bits: UInt64

    package init(field: Int, position: Int) {
        bits = UInt64(truncatingIfNeeded: field) << 32 | UInt64(UInt32(clamping: position))
    }

    package var field: Int { Int(bits >> 32) }
    package var position: Int { Int(bits & 0xFFFF_FFFF) }

    /// That of the term behind it.
    package func advanced(by count: Int) -> TermPlace { TermPlace(field: field, position: position + count) }

    package static func < (left: TermPlace, right: TermPlace) -> Bool { left.bits < right.bits }
}

/// A row of `text_postings`: documents that have a term, and where.
///
/// For each document, as unsigned LEB128: how much its number is above the one before (the first: above zero), how many places
/// follow, and these, ascending: twice how much the position is above the one before, or, where it is in another text than that,
/// twice the position and one, and then the number of the text. What comes before the first is text 0 and position 0. A document
/// whose places don't fit goes on in the next row under the same number.
package struct PostingBlock {
    /// A row with the longest term, and this many bytes, does not overflow: see ``IndexSchema``.
    package static let byteLimit = 700

    package private(set) var bytes: [UInt8]
    /// The number of the last document; 0 if there isn't one.
    package private(set) var last: UInt32

    package init() { (bytes, last) = ([], 0) }

    /// A row that goes on.
    package init(bytes: [UInt8], last: UInt32) { (self.bytes, self.last) = (bytes, last) }

    /// Adds a document with a number above the last, if there is one.
    ///
    /// - Parameter places: ascending.
    /// - Returns: how many places are in it now: all; or, where no more fit, some of them in a row that had nothing before; or none.
    package mutating func append(_ number: UInt32, _ places: ArraySlice<TermPlace>) -> Int {
        // Number and count take ten bytes at most.
        let room = Self.byteLimit - bytes.count - 10
        var encoded: [UInt8] = []
        var (previous, count) = (TermPlace(field: 0, position: 0), 0)
        for place in places {
            let start = encoded.count
            if place.field == previous.field {
                encoded.appendVariable(UInt64(place.position - previous.position) << 1)
            } else {
                encoded.appendVariable(UInt64(place.position) << 1 | 1)
                encoded.appendVariable(UInt64(place.field))
            }
            guard encoded.count <= room else {
                guard bytes.isEmpty, count > 0 else { return 0 }
                encoded.removeLast(encoded.count - start)
                break
            }
            previous = place
            count += 1
        }
        bytes.appendVariable(UInt64(number - last))
        bytes.appendVariable(UInt64(count))
        bytes += encoded
        last = number
        return count
    }
}

/// Reads rows of postings.
package struct PostingReader {
    private let bytes: [UInt8]
    /// What the row says its last number is.
    private let last: Int64
    private var index = 0
    private var number: UInt64 = 0

    package init(_ bytes: [UInt8], last: Int64) { (self.bytes, self.last) = (bytes, last) }

    /// The next document, whose places `visit` gets; nil after the last.
    ///
    /// - Throws: `damaged` (500) where the bytes are not what an index writes.
    package mutating func next(_ visit: (TermPlace) -> Void) throws(CofferError) -> UInt32? {
        let bytes = bytes
        return try Self.next(in: bytes.span, &index, &number, last: last, visit)
    }

    /// Calls `visit` with each document of the row that weighs anything: the sum of its places' weights.
    ///
    /// - Parameter weights: that of a place in each text; in further texts it is 0.
    /// - Throws: `damaged` (500) where the bytes are not what an index writes.
    package func forEachDocument(weights: [Float], _ visit: (UInt32, Float) -> Void) throws(CofferError) {
        // Without a reference counted for each place: what begins with one letter has hundreds of thousands of them.
        let (bytes, weights) = (bytes.span, weights.span)
        var (index, number) = (index, number)
        while true {
            var weight: Float = 0
            let next = try Self.next(in: bytes, &index, &number, last: last) { place in
                if place.field < weights.count { weight += weights[place.field] }
            }
            guard let next else { return }
            if weight > 0 { visit(next, weight) }
        }
    }

    @inline(__always) private static func next(
        in bytes: Span<UInt8>, _ index: inout Int, _ number: inout UInt64, last: Int64, _ visit: (TermPlace) -> Void
    ) throws(CofferError) -> UInt32? {
        guard index < bytes.count else {
            // A row without documents is never written.
            guard number > 0, Int64(number) == last else { throw damage }
            return nil
        }
        let distance = try variable(in: bytes, &index)
        let count = try variable(in: bytes, &index)
        guard distance > 0, distance <= UInt32.max, count > 0, count <= bytes.count - index else { throw damage }
        number += distance
        guard number <= UInt32.max else { throw damage }
        var (field, position): (UInt64, UInt64) = (0, 0)
        for _ in 0..<count {
            let value = try variable(in: bytes, &index)
            guard value >> 1 <= UInt32.max else { throw damage }
            if value & 1 == 0 {
                position += value >> 1
            } else {
                position = value >> 1
                let next = try variable(in: bytes, &index)
                guard next > field else { throw damage }
                field = next
            }
            guard position <= UInt32.max, field < IndexSchema.textFieldLimit else { throw damage }
            visit(TermPlace(field: Int(field), position: Int(position)))
        }
        return UInt32(number)
    }

    /// Reads all of the row.
    ///
    /// - Throws: `damaged` (500).
    package func check() throws(CofferError) {
        var reader = self
        while try reader.next({ _ in }) != nil {}
    }

    @inline(__always) private static func variable(
        in bytes: Span<UInt8>, _ index: inout Int
    ) throws(CofferError) -> UInt64 {
        var (value, shift): (UInt64, UInt64) = (0, 0)
        while index < bytes.count, shift < 64 {
            let byte = bytes[index]
            index += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw damage
    }

    package static var damage: CofferError { CofferError(.damaged, "a row of a text index is not what was written") }
}

extension [UInt8] {
    /// Appends a number as unsigned LEB128.
    fileprivate mutating func appendVariable(_ value: UInt64) {
        var value = value
        while value >= 0x80 {
            append(UInt8(value & 0x7F) | 0x80)
            value >>= 7
        }
        append(UInt8(value))
    }
}

/// How many terms the documents of a chunk of numbers have: a row of `text_lengths`.
package struct LengthChunk {
    /// Numbers of a row.
    package static let count = 256

    /// How many numbers of the row were given, then the lengths: two bytes each, big-endian.
    package private(set) var bytes: [UInt8]

    package init() { bytes = [UInt8](repeating: 0, count: 2 + 2 * Self.count) }

    /// - Throws: `damaged` (500).
    package init(bytes: [UInt8]) throws(CofferError) {
        self.bytes = bytes
        guard bytes.count == 2 + 2 * Self.count, usedCount <= Self.count else { throw PostingReader.damage }
    }

    /// How many of its numbers were given to documents, dead ones too. None is given twice.
    package var usedCount: Int { Int(bytes[0]) << 8 | Int(bytes[1]) }

    /// No row has a higher number.
    package static let lastChunk = Int64(UInt32.max) / Int64(count)

    /// Which row has a number, and where in it.
    package static func place(of number: UInt32) -> (chunk: Int64, index: Int) {
        (Int64(number) / Int64(count), Int(number) % count)
    }

    /// How many terms the document has, and no more than 65,535; 0 where the number is dead.
    package subscript(index: Int) -> Int {
        get { Int(bytes[2 + 2 * index]) << 8 | Int(bytes[3 + 2 * index]) }
        set {
            write(newValue, at: 2 + 2 * index)
            if index >= usedCount { write(index + 1, at: 0) }
        }
    }

    private mutating func write(_ value: Int, at place: Int) {
        let value = UInt16(clamping: value)
        (bytes[place], bytes[place + 1]) = (UInt8(value >> 8), UInt8(value & 0xFF))
    }
}
