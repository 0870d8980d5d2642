/// Makes words equal that a person who searches takes for equal: upper and lower case, a letter with its accent in one scalar or
/// in two, wide and narrow forms, and accents themselves if they are to be ignored.
///
/// Full case folding (The Unicode Standard, section 5.18.4) and canonical decomposition (section 3.11), by tables of one version
/// of Unicode, so that the same text gives the same words on every system.
struct TextFolding {
    let ignoresAccents: Bool

    /// Appends what a scalar becomes, in UTF-8. Marks may still be out of order: see ``sortMarks(in:from:)``.
    ///
    /// - Returns: whether it appended a mark that may be.
    @discardableResult
    func append(_ scalar: UInt32, to folded: inout [UInt8]) -> Bool {
        if scalar < 128 {
            folded.append(scalar >= 0x41 && scalar <= 0x5A ? UInt8(scalar) | 0x20 : UInt8(scalar))
            return false
        }
        guard !Self.isLeftOut(scalar) else { return false }
        guard let result = Self.result(of: scalar) else { return appendFolded(scalar, to: &folded) }
        var (place, hasMark) = (result.lowerBound, false)
        let bytes = UnicodeTables.foldedBytes
        while place < result.upperBound {
            if appendFolded(UTF8Scalar(bytes.span, at: &place).value, to: &folded) { hasMark = true }
        }
        return hasMark
    }

    private func appendFolded(_ scalar: UInt32, to folded: inout [UInt8]) -> Bool {
        let combiningClass = Self.combiningClass(of: scalar)
        if ignoresAccents {
            if Self.isAccent(combiningClass) { return false }
            if let plain = Self.plain[scalar] {
                folded += plain.utf8
                return false
            }
        }
        folded.append(contentsOf: (Unicode.Scalar(scalar) ?? "\u{FFFD}").utf8)
        return combiningClass != 0
    }

    /// Puts marks behind one letter into their canonical order: The Unicode Standard, section 3.11, D109.
    ///
    /// - Parameter start: where the word begins in `folded`.
    static func sortMarks(in folded: inout [UInt8], from start: Int) {
        var scalars: [(value: UInt32, combiningClass: UInt8)] = []
        var place = start
        while place < folded.count {
            let value = UTF8Scalar(folded.span, at: &place).value
            scalars.append((value, combiningClass(of: value)))
        }
        var index = 0
        while index < scalars.count {
            var end = index
            while end < scalars.count && scalars[end].combiningClass != 0 { end += 1 }
            // Stable, as the rule is: Swift's sort is in practice only, so the place decides.
            let sorted = scalars[index..<end].enumerated().sorted {
                ($0.element.combiningClass, $0.offset) < ($1.element.combiningClass, $1.offset)
            }
            scalars.replaceSubrange(index..<end, with: sorted.map(\.element))
            index = end + 1
        }
        folded.removeLast(folded.count - start)
        for scalar in scalars { folded.append(contentsOf: (Unicode.Scalar(scalar.value) ?? "\u{FFFD}").utf8) }
    }

    // MARK: What scalars are

    /// What says how a word is shown, and not which word it is: joiners, marks of direction, soft hyphens, variation selectors,
    /// and the colour of an emoji's skin.
    private static func isLeftOut(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0xAD, 0x34F, 0x61C, 0x180B...0x180F, 0x200B...0x200F, 0x202A...0x202E, 0x2060...0x206F, 0xFE00...0xFE0F,
            0xFEFF,
            0x1F3FB...0x1F3FF, 0xE0100...0xE01EF:
            true
        default: false
        }
    }

    /// Accents and points of scripts in which words without them are read as the same: not viramas, and not the voicing marks of
    /// kana or the vowels of Thai, which make other words.
    private static func isAccent(_ combiningClass: UInt8) -> Bool {
        switch combiningClass {
        case 1, 10...36, 200...240: true
        default: false
        }
    }

    /// Letters that look like others with a stroke, or like two, and have no decomposition.
    private static let plain: [UInt32: String] = [
        0xE6: "ae", 0xF0: "d", 0xF8: "o", 0xFE: "th", 0x111: "d", 0x127: "h", 0x131: "i", 0x142: "l", 0x153: "oe",
        0x167: "t",
    ]

    private static func combiningClass(of scalar: UInt32) -> UInt8 {
        guard scalar >= 0x300 else { return 0 }
        let rows = UnicodeTables.combiningClasses
        return UInt8(truncatingIfNeeded: rows[ScalarTraits.lastRow(in: rows, notAfter: scalar)])
    }

    /// Where in ``UnicodeTables/foldedBytes`` it is what the scalar becomes; nil if it stays as it is.
    private static func result(of scalar: UInt32) -> Range<Int>? {
        let rows = UnicodeTables.foldings
        var (lower, upper) = (0, rows.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            let row = rows[middle]
            if row >> 24 == scalar {
                let start = Int(row >> 6 & 0x3FFFF)
                return start..<start + Int(row & 0x3F)
            }
            if row >> 24 < scalar { lower = middle + 1 } else { upper = middle }
        }
        return nil
    }
}
