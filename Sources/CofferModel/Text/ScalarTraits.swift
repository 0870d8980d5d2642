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
