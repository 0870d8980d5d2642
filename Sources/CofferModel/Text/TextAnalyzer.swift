/// Takes texts apart into the terms that a text index knows them by.
///
/// A term is a word, folded: letters, marks and numbers that stand side by side within a segment of Unicode Standard Annex #29.
/// What joins words there, as in `user_name`, `example.org` and `don't`, separates terms, so that each part is found, and the
/// whole as a phrase. A picture is a term, too. Where words stand side by side without a space, as in Chinese and Thai, each two
/// neighbouring characters are a term, and so is the last alone.
package struct TextAnalyzer: Sendable {
    /// Whether terms are the same whatever accents their letters have.
    package let ignoresAccents: Bool
    /// Makes one of the forms that a word has; nil leaves words as they are.
    let stemmer: TextStemmer?

    /// Begins terms that are words as they are written, beside their stems: so that beginnings of words are found as well. No word
    /// begins so.
    package static let unstemmedMark: UInt8 = 1

    /// A term has no more bytes, and one more with that mark. What is longer is cut, where a search cuts it as well.
    package static let termByteLimit = 200

    package init(ignoresAccents: Bool, stemmer: TextStemmer? = nil) {
        self.ignoresAccents = ignoresAccents
        self.stemmer = stemmer
    }

    /// The same, which leaves words as they are.
    package var withoutStems: TextAnalyzer { TextAnalyzer(ignoresAccents: ignoresAccents) }

    /// How a text is taken apart.
    package enum Purpose: Sendable {
        /// To be found later.
        case indexing
        /// To find others: the last of characters without spaces is not a term of its own, since the pair before it has it.
        case searching
    }

    /// Where a term stands.
    package struct Place: Sendable {
        /// What of the text it is, in bytes: whole characters.
        package let range: Range<Int>
        /// Whether it is the beginning of terms, too, as the only character of a word without spaces is.
        package let isBeginning: Bool
        /// Whether it is a part of the term before it, or another form of it, and has that one's position: the last of characters
        /// without spaces, and a word beside its stem.
        package let isWithinLast: Bool

        init(_ range: Range<Int>, isBeginning: Bool = false, isWithinLast: Bool = false) {
            self.range = range
            self.isBeginning = isBeginning
            self.isWithinLast = isWithinLast
        }
    }

    /// Takes a text apart. Takes time in proportion to it.
    ///
    /// - Parameters:
    ///   - text: UTF-8.
    ///   - visit: is called with each term, in order: folded, in UTF-8, not empty.
    package func forEachTerm<Failure: Error>(
        in text: Span<UInt8>, for purpose: Purpose = .indexing, _ visit: (Span<UInt8>, Place) throws(Failure) -> Void
    ) throws(Failure) {
        var place = 0
        var word = FoldedWord(TextFolding(ignoresAccents: ignoresAccents))
        var neighbours = Neighbours()
        while place < text.count {
            // Most of most texts: a word of ASCII with more of it behind.
            if isPartOfASCIIWord(text[place]) {
                let start = place
                while place < text.count, isPartOfASCIIWord(text[place]) { place += 1 }
                if place == text.count || text[place] < 0x80 {
                    try neighbours.end(in: text, purpose, &word, visit)
                    word.fold(text.extracting(start..<place))
                    try give(&word, start..<place, purpose, to: visit)
                    continue
                }
                place = start
            } else if text[place] < 0x80 {
                place += 1
                continue
            }
            let end = WordBreaks.end(ofSegmentAt: place, in: text)
            try forEachPiece(from: place, to: end, in: text) { (piece) throws(Failure) in
                if piece.kind == .unspaced {
                    try neighbours.add(piece.range, in: text, purpose, &word, visit)
                } else {
                    try neighbours.end(in: text, purpose, &word, visit)
                    word.fold(text.extracting(piece.range))
                    try give(&word, piece.range, purpose, stems: piece.kind == .word, to: visit)
                }
            }
            place = end
        }
        try neighbours.end(in: text, purpose, &word, visit)
    }

    private func isPartOfASCIIWord(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26
    }

    private func give<Failure: Error>(
        _ word: inout FoldedWord, _ range: Range<Int>, _ purpose: Purpose, stems: Bool = true,
        to visit: (Span<UInt8>, Place) throws(Failure) -> Void
    ) throws(Failure) {
        guard !word.bytes.isEmpty else { return }
        guard stems, let stemmer else { return try visit(word.bytes.span, Place(range)) }
        let (whole, stem) = (word.bytes, stemmer.stem(word.bytes))
        try visit(stem.span, Place(range))
        guard purpose == .indexing, stem != whole else { return }
        word.replace(with: [Self.unstemmedMark] + whole)
        try visit(word.bytes.span, Place(range, isWithinLast: true))
    }

    // MARK: Pieces of a segment

    private enum Kind { case word, picture, unspaced }

    /// Pictures of before emoji, such as the sign of a trademark, belong to no word, and are not found.
    private static let firstPicture: UInt32 = 0x231A

    private func forEachPiece<Failure: Error>(
        from start: Int, to end: Int, in text: Span<UInt8>,
        _ visit: (_ piece: (kind: Kind, range: Range<Int>)) throws(Failure) -> Void
    ) throws(Failure) {
        var (place, pieceStart) = (start, start)
        var kind: Kind?
        while place < end {
            var next = place
            let scalar = UTF8Scalar(text, at: &next)
            let traits = scalar.traits
            // Marks and joiners belong to what is before them, and so do the second and third letters of a Korean syllable.
            let isContinued = traits.wordBreak.isIgnored || kind == .unspaced && HangulLetters.continues(scalar.value)
            if kind == nil || !isContinued {
                let found: Kind? =
                    if traits.isUnspaced {
                        .unspaced
                    } else if traits.isPartOfWord {
                        .word
                    } else if traits.wordBreak == .regionalIndicator
                        || traits.isExtendedPictographic && scalar.value >= Self.firstPicture
                    {
                        .picture
                    } else {
                        nil
                    }
                if found != kind || found == .unspaced {
                    if let kind { try visit((kind, pieceStart..<place)) }
                    (kind, pieceStart) = (found, place)
                }
            }
            place = next
        }
        if let kind { try visit((kind, pieceStart..<end)) }
    }

    /// Characters of a script without spaces that stand side by side.
    private struct Neighbours {
        private var last: Range<Int>?
        /// Whether a pair ends with the last.
        private var isPaired = false

        mutating func add<Failure: Error>(
            _ range: Range<Int>, in text: Span<UInt8>, _ purpose: Purpose, _ word: inout FoldedWord,
            _ visit: (Span<UInt8>, Place) throws(Failure) -> Void
        ) throws(Failure) {
            if let last, last.upperBound != range.lowerBound { try end(in: text, purpose, &word, visit) }
            defer { self.last = range }
            guard let last else { return }
            let pair = last.lowerBound..<range.upperBound
            word.fold(text.extracting(pair))
            isPaired = true
            guard !word.bytes.isEmpty else { return }
            try visit(word.bytes.span, Place(pair))
        }

        mutating func end<Failure: Error>(
            in text: Span<UInt8>, _ purpose: Purpose, _ word: inout FoldedWord,
            _ visit: (Span<UInt8>, Place) throws(Failure) -> Void
        ) throws(Failure) {
            defer { (last, isPaired) = (nil, false) }
            guard let last, purpose == .indexing || !isPaired else { return }
            word.fold(text.extracting(last))
            guard !word.bytes.isEmpty else { return }
            try visit(word.bytes.span, Place(last, isBeginning: true, isWithinLast: isPaired))
        }
    }
}

/// A word being folded, in memory that the next one uses again.
private struct FoldedWord {
    private(set) var bytes: [UInt8] = []
    private let folding: TextFolding

    init(_ folding: TextFolding) { self.folding = folding }

    mutating func fold(_ text: Span<UInt8>) {
        bytes.removeAll(keepingCapacity: true)
        var (place, hasMarks) = (0, false)
        var last: UInt32 = 0
        while place < text.count {
            let scalar = UTF8Scalar(text, at: &place).value
            if let syllable = HangulLetters.syllable(last, scalar) {
                // It takes three bytes, as its first letter, or the syllable without its third one, does.
                bytes.removeLast(3)
                bytes.append(contentsOf: (Unicode.Scalar(syllable) ?? "\u{FFFD}").utf8)
                last = syllable
                continue
            }
            last = scalar
            if folding.append(scalar, to: &bytes) { hasMarks = true }
            guard bytes.count > TextAnalyzer.termByteLimit else { continue }
            // Scalar by scalar, so that one which becomes several is cut where these would be.
            while bytes.count > TextAnalyzer.termByteLimit {
                while bytes.last.map({ $0 & 0xC0 == 0x80 }) ?? false { bytes.removeLast() }
                bytes.removeLast()
            }
            break
        }
        if hasMarks { TextFolding.sortMarks(in: &bytes, from: 0) }
    }

    mutating func replace(with stem: [UInt8]) { bytes = stem }
}

/// The letters of Korean syllables, which are one scalar each or one for the whole syllable: The Unicode Standard, section 3.12.
enum HangulLetters {
    private static let (firstSyllable, firstInitial, firstVowel, beforeFirstFinal): (UInt32, UInt32, UInt32, UInt32) = (
        0xAC00, 0x1100, 0x1161, 0x11A7
    )
    private static let (initialCount, vowelCount, finalCount): (UInt32, UInt32, UInt32) = (19, 21, 28)

    /// Whether a scalar is a letter that goes on a syllable: a vowel, or a final consonant.
    static func continues(_ scalar: UInt32) -> Bool { (0x1160...0x11FF).contains(scalar) }

    /// The syllable that two scalars make, one after the other: of an initial consonant and a vowel, or of a syllable of these two
    /// and a final consonant. Nil if they make none.
    static func syllable(_ first: UInt32, _ second: UInt32) -> UInt32? {
        let (initial, vowel) = (first &- firstInitial, second &- firstVowel)
        if initial < initialCount, vowel < vowelCount {
            return firstSyllable + (initial * vowelCount + vowel) * finalCount
        }
        let (syllable, final) = (first &- firstSyllable, second &- beforeFirstFinal)
        guard syllable < initialCount * vowelCount * finalCount, syllable % finalCount == 0, final > 0,
            final < finalCount
        else { return nil }
        return first + final
    }
}
