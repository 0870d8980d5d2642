/// Finds where words begin and end: the default word boundaries of Unicode Standard Annex #29, section 4.1.
enum WordBreaks {
    /// Where the segment ends that begins at `start`, which must be a boundary.
    ///
    /// Takes time in proportion to the segment and to the marks behind it.
    ///
    /// - Parameter text: UTF-8.
    static func end(ofSegmentAt start: Int, in text: Span<UInt8>) -> Int {
        var place = start
        let first = UTF8Scalar(text, at: &place)
        if first.traits.wordBreak == .carriageReturn {
            return place < text.count && text[place] == 0x0A ? place + 1 : place  // WB3
        }
        guard !first.traits.wordBreak.isNewline else { return place }
        var context = Context(first.traits.wordBreak)
        while place < text.count {
            var next = place
            let scalar = UTF8Scalar(text, at: &next)
            guard context.joins(scalar.traits, before: { following($0, at: next, in: text) }) else { break }
            place = next
        }
        return place
    }

    /// Whether what comes at `place`, marks left aside, has a property.
    private static func following(_ isWanted: (ScalarTraits.WordBreak) -> Bool, at place: Int, in text: Span<UInt8>)
        -> Bool
    {
        var place = place
        while place < text.count {
            let property = UTF8Scalar(text, at: &place).traits.wordBreak
            if !property.isIgnored { return isWanted(property) }
        }
        return false
    }

    /// What of a segment decides whether the next scalar belongs to it.
    private struct Context {
        /// The last scalar as it is, and the last two that are not ignored.
        private var latest: ScalarTraits.WordBreak
        private var last: ScalarTraits.WordBreak
        private var beforeLast: ScalarTraits.WordBreak?
        private var indicatorCount: Int

        init(_ first: ScalarTraits.WordBreak) {
            (latest, last) = (first, first)
            indicatorCount = first == .regionalIndicator ? 1 : 0
        }

        /// - Parameter before: whether a scalar with a property follows.
        mutating func joins(
            _ next: ScalarTraits, before: ((ScalarTraits.WordBreak) -> Bool) -> Bool
        ) -> Bool {
            let property = next.wordBreak
            if property.isNewline { return false }  // WB3b
            if property.isIgnored {  // WB4
                latest = property
                return true
            }
            let isJoined =
                latest == .zeroWidthJoiner && next.isExtendedPictographic  // WB3c
                || latest == .space && property == .space  // WB3d
                || joins(property, before: before)
            guard isJoined else { return false }
            if property == .regionalIndicator { indicatorCount += 1 }
            (beforeLast, last, latest) = (last, property, property)
            return true
        }

        private func joins(
            _ next: ScalarTraits.WordBreak, before: ((ScalarTraits.WordBreak) -> Bool) -> Bool
        ) -> Bool {
            switch (last, next) {
            case (let last, let next) where last.isLetter && next.isLetter: true  // WB5
            case (.hebrewLetter, .singleQuote): true  // WB7a
            case (let last, let next) where last.isLetter && next.isBetweenLetters: before(\.isLetter)  // WB6
            case (let last, let next) where last.isBetweenLetters && next.isLetter: beforeLast?.isLetter == true  // WB7
            case (.hebrewLetter, .doubleQuote): before { $0 == .hebrewLetter }  // WB7b
            case (.doubleQuote, .hebrewLetter): beforeLast == .hebrewLetter  // WB7c
            case (.numeric, .numeric): true  // WB8
            case (let last, .numeric) where last.isLetter: true  // WB9
            case (.numeric, let next) where next.isLetter: true  // WB10
            case (let last, .numeric) where last.isBetweenNumbers: beforeLast == .numeric  // WB11
            case (.numeric, let next) where next.isBetweenNumbers: before { $0 == .numeric }  // WB12
            case (.katakana, .katakana): true  // WB13
            case (let last, .extendNumberLetter): last.isExtended || last == .extendNumberLetter  // WB13a
            case (.extendNumberLetter, let next): next.isExtended  // WB13b
            case (.regionalIndicator, .regionalIndicator): !indicatorCount.isMultiple(of: 2)  // WB15, WB16
            default: false  // WB999
            }
        }
    }
}

/// A scalar of a text in UTF-8.
struct UTF8Scalar {
    let value: UInt32

    var traits: ScalarTraits { ScalarTraits(value) }

    /// Reads the scalar that begins at `place`, and leaves `place` behind it. What is not UTF-8 is read as one byte, and as
    /// U+FFFD.
    init(_ text: Span<UInt8>, at place: inout Int) {
        let first = text[place]
        guard first >= 0x80 else {
            value = UInt32(first)
            place += 1
            return
        }
        let count = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
        guard first >= 0xC2, first < 0xF5, place + count <= text.count else {
            value = 0xFFFD
            place += 1
            return
        }
        var result = UInt32(first) & (0x7F >> UInt32(count))
        for offset in 1..<count {
            guard text[place + offset] & 0xC0 == 0x80 else {
                value = 0xFFFD
                place += 1
                return
            }
            result = result << 6 | UInt32(text[place + offset] & 0x3F)
        }
        value = result
        place += count
    }
}

/// What the search for words has to know of a Unicode scalar.
struct ScalarTraits: Equatable {
    private let bits: UInt8

    /// Word_Break property: Unicode Standard Annex #29, table 3. The numbers are those of ``UnicodeTables``.
    enum WordBreak: UInt8 {
        case other, carriageReturn, lineFeed, newline, extend, zeroWidthJoiner, regionalIndicator, format, katakana
        case hebrewLetter, letter, singleQuote, doubleQuote, midNumberLetter, midLetter, midNumber, numeric
        case extendNumberLetter, space

        /// AHLetter, in the annex's rules.
        var isLetter: Bool { self == .letter || self == .hebrewLetter }

        /// MidLetter or MidNumLetQ, which join letters on both sides.
        var isBetweenLetters: Bool { self == .midLetter || self == .midNumberLetter || self == .singleQuote }

        /// MidNum or MidNumLetQ, which join numbers on both sides.
        var isBetweenNumbers: Bool { self == .midNumber || self == .midNumberLetter || self == .singleQuote }

        /// What ExtendNumLet joins.
        var isExtended: Bool { isLetter || self == .numeric || self == .katakana }

        var isNewline: Bool { self == .carriageReturn || self == .lineFeed || self == .newline }

        /// Belongs to whatever it follows.
        var isIgnored: Bool { self == .extend || self == .format || self == .zeroWidthJoiner }
    }

    var wordBreak: WordBreak { WordBreak(rawValue: bits & 0x1F) ?? .other }

    var isExtendedPictographic: Bool { bits & 0x20 != 0 }

    /// Of a script in which words stand side by side, or have endings like words of their own.
    var isUnspaced: Bool { bits & 0x40 != 0 }

    /// A letter, a mark or a number.
    var isPartOfWord: Bool { bits & 0x80 != 0 }

    init(_ scalar: UInt32) {
        bits = scalar < 128 ? Self.ascii[Int(scalar)] : UInt8(truncatingIfNeeded: Self.row(of: scalar))
    }

    private static let ascii: [UInt8] = (0..<128).map { UInt8(truncatingIfNeeded: row(of: $0)) }

    private static func row(of scalar: UInt32) -> UInt32 {
        UnicodeTables.traits[lastRow(in: UnicodeTables.traits, notAfter: scalar)]
    }

    /// The row whose range has `scalar`. The first begins at zero.
    static func lastRow(in rows: [UInt32], notAfter scalar: UInt32) -> Int {
        var (lower, upper) = (0, rows.count)
        while upper - lower > 1 {
            let middle = (lower + upper) / 2
            if rows[middle] >> 8 <= scalar { lower = middle } else { upper = middle }
        }
        return lower
    }
}
