internal import CofferModel
internal import CofferRecords

/// The strings at a property, and where in them a query's words are.
struct SearchedText {
    /// A word or a phrase of the query in one of the strings.
    struct Highlight {
        var string: Int
        /// In bytes of UTF-8.
        var range: Range<Int>
        /// Its terms, by their place among all.
        var terms: Range<Int>
        /// Which phrase of the query it is.
        var phrase: Int
    }

    private struct Word {
        var bytes: [UInt8]
        /// Two words have the same one where one is a part of the other.
        var position: Int
        var string: Int
        var range: Range<Int>
    }

    private let strings: [String]
    private let words: [Word]
    /// In the order of the text. None overlaps another.
    let highlights: [Highlight]

    init(_ strings: [String], _ phrases: [[SearchTerm]], _ analyzer: TextAnalyzer) {
        self.strings = strings
        var words: [Word] = []
        _ = DocumentTerms.forEach(in: [strings], analyzer) { term, place, string, range in
            words.append(Word(bytes: Array(term), position: place.position, string: string, range: range))
        }
        self.words = words
        highlights = Self.highlights(of: phrases, in: words).map { $0.onCharacters(of: strings[$0.string]) }
    }

    private static func highlights(of phrases: [[SearchTerm]], in words: [Word]) -> [Highlight] {
        var found: [Highlight] = []
        let candidates = PhrasesByFirstTerm(phrases)
        for (start, word) in words.enumerated() {
            // The longest: where others begin as well they are parts of it.
            var longest: (end: Int, phrase: Int)?
            candidates.forEach(beginningWith: word.bytes) { number in
                guard let end = Self.end(of: phrases[number], from: start, in: words) else { return }
                if end > longest?.end ?? 0 { longest = (end, number) }
            }
            guard let (end, number) = longest else { continue }
            found.append(
                Highlight(
                    string: word.string, range: word.range.lowerBound..<words[end - 1].range.upperBound,
                    terms: start..<end, phrase: number))
        }
        found.sort {
            ($0.string, $0.range.lowerBound, -$0.range.upperBound) < (
                $1.string, $1.range.lowerBound, -$1.range.upperBound
            )
        }
        // Pairs of characters overlap, and so do phrases with words of them: one after the other, they are one.
        return found.reduce(into: []) { joined, next in
            guard let last = joined.last, last.string == next.string, next.range.lowerBound < last.range.upperBound
            else {
                joined.append(next)
                return
            }
            joined[joined.count - 1].range = last.range.lowerBound..<max(last.range.upperBound, next.range.upperBound)
            joined[joined.count - 1].terms = last.terms.lowerBound..<max(last.terms.upperBound, next.terms.upperBound)
        }
    }

    /// Behind which word a phrase ends that begins with one; nil if it isn't there.
    private static func end(of phrase: [SearchTerm], from start: Int, in words: [Word]) -> Int? {
        let first = words[start]
        var place = start
        for (count, term) in phrase.enumerated() {
            while place < words.count, words[place].string == first.string,
                words[place].position < first.position + count
                    || words[place].position == first.position + count && !term.matches(words[place].bytes)
            {
                place += 1
            }
            guard place < words.count, words[place].string == first.string,
                words[place].position == first.position + count
            else { return nil }
            place += 1
        }
        return place
    }

    /// See ``SearchHit/snippetParts(of:words:)``.
    func snippet(wordCount: Int) -> [SearchHit.SnippetPart]? {
        guard let window = window(of: wordCount) else {
            return strings.first { !$0.isEmpty }.map { [SearchHit.SnippetPart(text: $0, isMatch: false)] }
        }
        let first = words[window.lowerBound]
        let last = words[window.upperBound - 1]
        let bytes = Array(strings[first.string].utf8)
        // Up to the string's ends where no word is left out.
        let isStart = window.lowerBound == 0 || words[window.lowerBound - 1].string != first.string
        let isEnd = window.upperBound == words.count || words[window.upperBound].string != last.string
        let end = isEnd ? bytes.count : last.range.upperBound
        var place = isStart ? 0 : first.range.lowerBound
        var parts: [SearchHit.SnippetPart] = []
        var between = isStart ? "" : "…"
        for match in highlights where match.string == first.string && match.range.overlaps(place..<end) {
            let start = max(match.range.lowerBound, place)
            between += String(decoding: bytes[place..<start], as: UTF8.self)
            place = min(match.range.upperBound, end)
            if !between.isEmpty { parts.append(SearchHit.SnippetPart(text: between, isMatch: false)) }
            between = ""
            parts.append(
                SearchHit.SnippetPart(text: String(decoding: bytes[start..<place], as: UTF8.self), isMatch: true))
        }
        between += String(decoding: bytes[place..<end], as: UTF8.self) + (isEnd ? "" : "…")
        if !between.isEmpty { parts.append(SearchHit.SnippetPart(text: between, isMatch: false)) }
        return parts
    }

    /// The words of the snippet: those around the most different phrases, in one string. Nil if there are no words.
    private func window(of count: Int) -> Range<Int>? {
        guard !words.isEmpty else { return nil }
        var best: (start: Int, end: Int, phrases: Int, matches: Int)?
        for (index, first) in highlights.enumerated() {
            var (phrases, end, matches) = (Set<Int>(), first.terms.upperBound, 0)
            for match in highlights[index...] {
                guard match.string == first.string,
                    matches == 0 || match.terms.upperBound - first.terms.lowerBound <= count
                else { break }
                phrases.insert(match.phrase)
                (end, matches) = (match.terms.upperBound, matches + 1)
            }
            if best.map({ (phrases.count, matches) > ($0.phrases, $0.matches) }) ?? true {
                best = (first.terms.lowerBound, end, phrases.count, matches)
            }
        }
        let (start, end) = best.map { ($0.start, $0.end) } ?? (0, 1)
        let string = words[start].string
        // The rest of its words stands on both sides.
        var window = start..<max(start + 1, end)
        var isAtEnd = false
        while window.count < count {
            let before = window.lowerBound - 1
            let canStart = before >= 0 && words[before].string == string
            let canEnd = window.upperBound < words.count && words[window.upperBound].string == string
            guard canStart || canEnd else { break }
            if canStart && (isAtEnd || !canEnd) {
                window = before..<window.upperBound
            } else {
                window = window.lowerBound..<window.upperBound + 1
            }
            isAtEnd.toggle()
        }
        return window
    }
}

extension SearchTerm {
    fileprivate func matches(_ word: [UInt8]) -> Bool {
        guard isBeginning else { return word == bytes }
        return word.starts(with: bytes) || word.isUnstemmed && word.dropFirst().starts(with: bytes)
    }
}

/// A query's phrases by what they begin with, so that a text is read once however many there are.
private struct PhrasesByFirstTerm {
    private var whole: [ArraySlice<UInt8>: [Int]] = [:]
    /// Those whose first term is the beginning of a word, by how many bytes it has.
    private var beginnings: [Int: [ArraySlice<UInt8>: [Int]]] = [:]

    init(_ phrases: [[SearchTerm]]) {
        var known: Set<[SearchTerm]> = []
        for (number, phrase) in phrases.enumerated() {
            guard let first = phrase.first, known.insert(phrase).inserted else { continue }
            if first.isBeginning {
                beginnings[first.bytes.count, default: [:]][first.bytes[...], default: []].append(number)
            } else {
                whole[first.bytes[...], default: []].append(number)
            }
        }
    }

    func forEach(beginningWith word: [UInt8], _ visit: (Int) -> Void) {
        whole[word[...]]?.forEach(visit)
        let word = word.isUnstemmed ? word.dropFirst() : word[...]
        for (count, phrases) in beginnings where count <= word.count { phrases[word.prefix(count)]?.forEach(visit) }
    }
}

extension SearchedText.Highlight {
    /// With whole characters: a mark that begins or ends a word may belong to what is outside it.
    fileprivate func onCharacters(of string: String) -> Self {
        let utf8 = string.utf8
        let start = utf8.index(utf8.startIndex, offsetBy: range.lowerBound)
        let end = utf8.index(utf8.startIndex, offsetBy: range.upperBound)
        var whole = self
        if start < string.endIndex, String.Index(start, within: string) == nil {
            let character = string.index(before: string.index(after: start))
            whole.range = utf8.distance(from: utf8.startIndex, to: character)..<range.upperBound
        }
        if end < string.endIndex, String.Index(end, within: string) == nil {
            let next = string.index(after: end)
            whole.range = whole.range.lowerBound..<utf8.distance(from: utf8.startIndex, to: next)
        }
        return whole
    }
}

extension [UInt8] {
    fileprivate var isUnstemmed: Bool { first == TextAnalyzer.unstemmedMark }
}
