internal import Foundation

/// What a text must be like: pieces that must come one after another, with anything between them.
///
/// Whether a text is so takes time in proportion to it, whatever the pattern: each piece is looked for once, behind the one
/// before. Nothing is tried again.
package struct TextPattern: Sendable {
    private let pieces: [TextPiece]
    private let differences: DocumentPredicate.TextDifferences

    /// What a text that is like this begins with, byte for byte; nil if nothing follows from it.
    package let literalPrefix: String?

    /// How many code points the pattern has.
    let length: Int

    /// A pattern with wildcards is no longer than that, in code points: the time per code point of a text grows with it.
    static let lengthLimit = 1_000

    /// Whether it has more code points than a pattern may have.
    var isTooLong: Bool { length > Self.lengthLimit && pieces.contains(where: \.hasWildcards) }

    /// A text that begins with the first of these and ends with the last, with the others between them.
    fileprivate init(_ texts: [String], ignoring differences: DocumentPredicate.TextDifferences) {
        self.init(texts.map { TextPiece(differences.codePoints(of: $0)) }, differences, nil)
    }

    private init(_ pieces: [TextPiece], _ differences: DocumentPredicate.TextDifferences, _ literalPrefix: String?) {
        self.pieces = pieces
        self.differences = differences
        let prefix = differences.isEmpty ? literalPrefix : nil
        self.literalPrefix = prefix?.isEmpty == false ? prefix : nil
        length = pieces.reduce(0) { $0 + $1.count }
    }

    /// The node that a pattern with wildcards says: `%` for any text, `_` for one code point, and a backslash before what
    /// stands for itself.
    package static func like(
        _ path: PropertyPath, _ pattern: String, ignoring differences: DocumentPredicate.TextDifferences
    ) -> DocumentPredicate.Node {
        var pieces: [TextPiece] = []
        var (elements, literal) = ([UInt32](), String.UnicodeScalarView())
        var (prefix, isAtStart) = ("", true)
        func endLiteral() {
            let text = String(literal)
            if isAtStart { prefix += text }
            elements += differences.codePoints(of: text)
            literal = .init()
        }
        var rest = Substring(pattern).unicodeScalars
        while let scalar = rest.popFirst() {
            switch scalar {
            case "%":
                endLiteral()
                isAtStart = false
                pieces.append(TextPiece(elements))
                elements = []
            case "_":
                endLiteral()
                isAtStart = false
                elements.append(TextPiece.anything)
            case "\\":
                literal.append(rest.popFirst() ?? scalar)
            default:
                literal.append(scalar)
            }
        }
        endLiteral()
        pieces.append(TextPiece(elements))
        if differences.isEmpty {
            // An index can tell more of these.
            if isAtStart { return .comparison(path, .equal, .string(prefix)) }
            if pieces.count == 2, pieces[1].count == 0, !pieces[0].hasWildcards { return .hasPrefix(path, prefix) }
        }
        return .text(path, TextPattern(pieces, differences, prefix))
    }

    func matches(_ text: String) -> Bool {
        let text = differences.codePoints(of: text)
        guard let first = pieces.first, let last = pieces.last, first.stands(in: text, at: 0) else { return false }
        if pieces.count == 1 { return text.count == first.count }
        var start = first.count
        let end = text.count - last.count
        guard end >= start, last.stands(in: text, at: end) else { return false }
        for piece in pieces[1..<(pieces.count - 1)] {
            guard let place = piece.first(in: text, from: start, upTo: end) else { return false }
            start = place + piece.count
        }
        return true
    }
}

extension DocumentPredicate.Node {
    /// A string in which that stands somewhere.
    package static func contains(
        _ path: PropertyPath, _ text: String, ignoring differences: DocumentPredicate.TextDifferences
    ) -> Self {
        .text(path, TextPattern(["", text, ""], ignoring: differences))
    }

    /// A string that begins with that.
    package static func hasPrefix(
        _ path: PropertyPath, _ text: String, ignoring differences: DocumentPredicate.TextDifferences
    ) -> Self {
        differences.isEmpty ? .hasPrefix(path, text) : .text(path, TextPattern([text, ""], ignoring: differences))
    }

    /// A string that ends with that.
    package static func hasSuffix(
        _ path: PropertyPath, _ text: String, ignoring differences: DocumentPredicate.TextDifferences
    ) -> Self {
        .text(path, TextPattern(["", text], ignoring: differences))
    }
}

/// A piece of a pattern, of a length of its own.
private struct TextPiece: Sendable {
    private let elements: [UInt32]
    /// Of a piece without wildcards, how much of its beginning each of its beginnings ends with (Knuth, Morris, Pratt).
    private let overlaps: [Int]
    /// Of a piece with wildcards, the places at which a code point may stand, as bits; and those at which any may.
    private let places: [UInt32: [UInt64]]
    private let anyPlaces: [UInt64]

    /// Stands for any one code point. No code point has that number.
    static let anything = UInt32.max

    init(_ elements: [UInt32]) {
        self.elements = elements
        guard elements.contains(Self.anything) else {
            var overlaps = [0]
            var overlap = 0
            for element in elements.dropFirst() {
                while overlap > 0, elements[overlap] != element { overlap = overlaps[overlap - 1] }
                if elements[overlap] == element { overlap += 1 }
                overlaps.append(overlap)
            }
            (self.overlaps, places, anyPlaces) = (overlaps, [:], [])
            return
        }
        let wordCount = (elements.count + 63) / 64
        var anyPlaces = [UInt64](repeating: 0, count: wordCount)
        for (place, element) in elements.enumerated() where element == Self.anything {
            anyPlaces[place / 64] |= 1 << UInt64(place % 64)
        }
        var places: [UInt32: [UInt64]] = [:]
        for (place, element) in elements.enumerated() where element != Self.anything {
            places[element, default: anyPlaces][place / 64] |= 1 << UInt64(place % 64)
        }
        (overlaps, self.places, self.anyPlaces) = ([], places, anyPlaces)
    }

    var count: Int { elements.count }

    var hasWildcards: Bool { !anyPlaces.isEmpty }

    func stands(in text: [UInt32], at start: Int) -> Bool {
        guard start >= 0, text.count - start >= elements.count else { return false }
        return elements.indices.allSatisfy { elements[$0] == Self.anything || elements[$0] == text[start + $0] }
    }

    /// The first place at which it stands whole.
    func first(in text: [UInt32], from start: Int, upTo end: Int) -> Int? {
        guard !elements.isEmpty else { return start }
        return hasWildcards ? firstByBits(text, start, end) : firstByOverlaps(text, start, end)
    }

    private func firstByOverlaps(_ text: [UInt32], _ start: Int, _ end: Int) -> Int? {
        var found = 0
        for place in start..<end {
            while found > 0, elements[found] != text[place] { found = overlaps[found - 1] }
            if elements[found] == text[place] { found += 1 }
            if found == elements.count { return place + 1 - found }
        }
        return nil
    }

    /// Each bit of the state says that the piece stands there as far as that place (Baeza-Yates, Gonnet).
    private func firstByBits(_ text: [UInt32], _ start: Int, _ end: Int) -> Int? {
        var state = [UInt64](repeating: 0, count: anyPlaces.count)
        let last = (word: (elements.count - 1) / 64, bit: UInt64(1) << UInt64((elements.count - 1) % 64))
        for place in start..<end {
            let fitting = places[text[place]] ?? anyPlaces
            var carry: UInt64 = 1
            for word in state.indices {
                let next = state[word] >> 63
                state[word] = (state[word] << 1 | carry) & fitting[word]
                carry = next
            }
            if state[last.word] & last.bit != 0 { return place + 1 - elements.count }
        }
        return nil
    }
}

extension DocumentPredicate.TextDifferences {
    /// The code points of a text that are compared.
    fileprivate func codePoints(of text: String) -> [UInt32] {
        guard !isEmpty else { return text.unicodeScalars.map(\.value) }
        let isComposed = text.utf8.allSatisfy { $0 < 0x80 }
        // Texts that differ in composition alone are the same where anything is ignored.
        let source =
            isComposed
            ? text
            : contains(.accents)
                ? Self.withoutMarks(text) : text.precomposedStringWithCanonicalMapping
        var points: [UInt32] = []
        points.reserveCapacity(source.utf8.count)
        for scalar in source.unicodeScalars {
            guard contains(.case) else {
                points.append(scalar.value)
                continue
            }
            if scalar.isASCII {
                points.append(("A"..."Z").contains(scalar) ? scalar.value | 0x20 : scalar.value)
                continue
            }
            // By way of upper case, in which ß is SS and both small sigmas are one.
            for upper in scalar.properties.uppercaseMapping.unicodeScalars {
                points += upper.properties.lowercaseMapping.unicodeScalars.map(\.value)
            }
        }
        return points
    }

    /// The text without marks on its letters, composed again: a Korean syllable is one letter, and not those that it is made of.
    private static func withoutMarks(_ text: String) -> String {
        var letters = String.UnicodeScalarView()
        for scalar in text.decomposedStringWithCanonicalMapping.unicodeScalars
        where scalar.isASCII || scalar.properties.generalCategory != .nonspacingMark {
            letters.append(scalar)
        }
        return String(letters).precomposedStringWithCanonicalMapping
    }
}
