internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import Foundation

/// Finds what a query asks for in the tables of one text index, in one snapshot.
struct TextSearcher {
    private let index: IndexRow
    let definition: TextDefinition
    let analyzer: TextAnalyzer
    /// How much a term counts in each of the index's properties.
    private let weights: [Float]
    /// How many terms each document has, by its number; 0 where that is dead.
    private let lengths: [UInt16]
    private let documentCount: Int
    private let averageLength: Float

    /// A query looks for no more words, and is nested no deeper.
    static let termLimit = 1_000
    static let depthLimit = 200

    init(
        _ index: IndexRow, _ definition: TextDefinition, _ analyzer: TextAnalyzer, weights: [Float],
        _ tables: borrowing Snapshot
    ) throws(CofferError) {
        self.index = index
        self.definition = definition
        self.analyzer = analyzer
        self.weights = weights
        lengths = try tables.indexes.texts.lengths(of: index.number)
        var (count, sum) = (0, 0)
        for length in lengths where length > 0 {
            count += 1
            sum += Int(length)
        }
        guard count == index.entryCount else { throw PostingReader.damage }
        documentCount = count
        averageLength = Float(sum) / Float(max(count, 1))
    }

    /// The documents that a query finds, and how well.
    ///
    /// - Throws: `invalidArgument` (400) for a property that the index is not over, and for more words than it may have.
    func matches(_ query: SearchQuery, _ tables: borrowing Snapshot) throws(CofferError) -> TermMatches {
        guard query.depth <= Self.depthLimit else {
            throw CofferError(.invalidArgument, "a query can't be nested deeper than \(Self.depthLimit)")
        }
        var count = 0
        return try matches(query.node, allFields, &count, tables) ?? TermMatches()
    }

    private var allFields: FieldSet { FieldSet(count: definition.paths.count) }

    /// - Returns: nil where nothing is asked for: no word is in it.
    private func matches(
        _ node: SearchQuery.Node, _ fields: FieldSet, _ count: inout Int, _ tables: borrowing Snapshot
    ) throws(CofferError) -> TermMatches? {
        switch node {
        case .nothing: return nil
        case .phrase(let text, let isBeginning):
            let terms = try terms(of: text, isBeginning: isBeginning, &count)
            guard let last = terms.last else { return nil }
            if terms.count > 1 { return scored(try places(of: terms, fields, tables)) }
            return try last.isBeginning
                ? matches(beginning: last.bytes, fields, tables) : matches(of: last.bytes, fields, tables)
        case .near(let texts, let distance):
            var near: PhrasePlaces?
            for text in texts {
                let terms = try terms(of: text, isBeginning: false, &count)
                guard !terms.isEmpty else { continue }
                let places = try places(of: terms, fields, tables)
                near = near?.near(places, distance: min(distance, Int(UInt32.max))) ?? places
            }
            return near.map(scored)
        case .all(let nodes):
            var all: TermMatches?
            for node in nodes {
                guard let found = try matches(node, fields, &count, tables) else { continue }
                all = all?.intersection(found) ?? found
            }
            return all
        case .any(let nodes):
            var any: TermMatches?
            for node in nodes {
                guard let found = try matches(node, fields, &count, tables) else { continue }
                any = any?.union(found) ?? found
            }
            return any
        case .excluding(let wanted, let excluded):
            guard let wanted = try matches(wanted, fields, &count, tables) else { return nil }
            guard let excluded = try matches(excluded, fields, &count, tables) else { return wanted }
            return wanted.subtracting(excluded)
        case .within(let path, let node, let otherwise):
            if let place = definition.paths.firstIndex(of: path) {
                return try matches(node, fields.intersection(FieldSet(only: place)), &count, tables)
            }
            guard let otherwise else {
                throw CofferError(
                    .invalidArgument, of: "text index \(index.name)", "it is not over the property \(path)")
            }
            return try matches(otherwise, fields, &count, tables)
        }
    }

    // MARK: Terms

    private func terms(
        of text: String, isBeginning: Bool, _ count: inout Int
    ) throws(CofferError) -> [SearchTerm] {
        let terms = SearchTerm.terms(of: text, isBeginning: isBeginning, analyzer)
        count += terms.count
        guard count <= Self.termLimit else {
            throw CofferError(.invalidArgument, "a query can't look for more than \(Self.termLimit) words")
        }
        return terms
    }

    private func matches(
        of term: [UInt8], _ fields: FieldSet, _ tables: borrowing Snapshot
    ) throws(CofferError) -> TermMatches {
        var frequencies = Frequencies()
        let (weights, lengths) = (weights(in: fields), lengths)
        try tables.indexes.texts.postings(of: index.number, term) { (reader) throws(CofferError) in
            try reader.forEachDocument(weights: weights) { number, frequency in
                if Self.isAlive(number, lengths) { frequencies.append(number, frequency) }
            }
        }
        return scored(frequencies)
    }

    /// What one of the terms that begin so finds: together they count as one.
    private func matches(
        beginning prefix: [UInt8], _ fields: FieldSet, _ tables: borrowing Snapshot
    ) throws(CofferError) -> TermMatches {
        // Memory for each number, and not for each place.
        var sums = [Float](repeating: 0, count: lengths.count)
        let weights = weights(in: fields)
        try forEachRow(beginning: prefix, tables) { (reader) throws(CofferError) in
            try reader.forEachDocument(weights: weights) { number, frequency in
                if Int(number) < sums.count { sums[Int(number)] += frequency }
            }
        }
        let lengths = lengths
        let numbers = sums.indices.filter { sums[$0] > 0 && lengths[$0] > 0 }
        return scored(Frequencies(numbers: numbers.map(UInt32.init), values: numbers.map { sums[$0] }))
    }

    /// Rows of terms that begin so, and of words that do where terms are their stems.
    private func forEachRow(
        beginning prefix: [UInt8], _ tables: borrowing Snapshot,
        _ visit: (PostingReader) throws(CofferError) -> Void
    ) throws(CofferError) {
        let prefixes = definition.language == nil ? [prefix] : [prefix, [TextAnalyzer.unstemmedMark] + prefix]
        for prefix in prefixes {
            try tables.indexes.texts.postings(of: index.number, prefix: prefix, visit)
        }
    }

    /// The weights of all properties, 0 outside of some.
    private func weights(in fields: FieldSet) -> [Float] {
        weights.enumerated().map { fields.contains($0) ? $1 : 0 }
    }

    // MARK: Phrases

    /// Where terms stand one after the other; the last may be the beginning of one.
    private func places(
        of terms: [SearchTerm], _ fields: FieldSet, _ tables: borrowing Snapshot
    ) throws(CofferError) -> PhrasePlaces {
        var phrase: PhrasePlaces?
        for term in terms {
            var found: [(number: UInt32, span: PhrasePlaces.Span)] = []
            let gather: (PostingReader) throws(CofferError) -> Void = { (reader) throws(CofferError) in
                try collect(reader, fields, behind: phrase, into: &found)
            }
            if term.isBeginning {
                try forEachRow(beginning: term.bytes, tables, gather)
                found.sort { ($0.number, $0.span.last) < ($1.number, $1.span.last) }
            } else {
                try tables.indexes.texts.postings(of: index.number, term.bytes, gather)
            }
            var places = PhrasePlaces()
            for (number, span) in found { places.append(number, span) }
            phrase = places
        }
        return phrase ?? PhrasePlaces()
    }

    private func collect(
        _ reader: PostingReader, _ fields: FieldSet, behind phrase: PhrasePlaces?,
        into found: inout [(number: UInt32, span: PhrasePlaces.Span)]
    ) throws(CofferError) {
        var reader = reader
        var places: [TermPlace] = []
        var start = 0
        while true {
            places.removeAll(keepingCapacity: true)
            let number = try reader.next { if fields.contains($0.field) { places.append($0) } }
            guard let number else { return }
            guard Self.isAlive(number, lengths) else { continue }
            guard let phrase else {
                for place in places { found.append((number, PhrasePlaces.Span(first: place, last: place))) }
                continue
            }
            guard let index = phrase.index(of: number, from: start) else { continue }
            start = index
            for place in places {
                guard let span = phrase.span(before: place, at: index) else { continue }
                found.append((number, PhrasePlaces.Span(first: span.first, last: place)))
            }
        }
    }

    // MARK: Ranking

    /// How often something is in each of some live documents, weighted, in ascending order of their numbers.
    private struct Frequencies {
        private(set) var numbers: [UInt32]
        private(set) var values: [Float]

        init(numbers: [UInt32] = [], values: [Float] = []) { (self.numbers, self.values) = (numbers, values) }

        /// A document that is there goes on in another row.
        mutating func append(_ number: UInt32, _ value: Float) {
            if numbers.last == number {
                values[values.count - 1] += value
            } else {
                numbers.append(number)
                values.append(value)
            }
        }
    }

    private static func isAlive(_ number: UInt32, _ lengths: [UInt16]) -> Bool {
        Int(number) < lengths.count && lengths[Int(number)] > 0
    }

    private func scored(_ places: PhrasePlaces) -> TermMatches {
        var frequencies = Frequencies()
        for (index, number) in places.numbers.enumerated() {
            // Only live ones were collected.
            for span in places.spans(at: index) where weights[span.last.field] > 0 {
                frequencies.append(number, weights[span.last.field])
            }
        }
        return scored(frequencies)
    }

    /// Okapi BM25, with the usual constants and each place weighted by its property: Robertson and Zaragoza, "The Probabilistic
    /// Relevance Framework: BM25 and Beyond", sections 3.4 and 3.6.
    private func scored(_ frequencies: Frequencies) -> TermMatches {
        let (saturation, lengthInfluence): (Float, Float) = (1.2, 0.75)
        let matchCount = Float(frequencies.numbers.count)
        let rarity = log(1 + (Float(documentCount) - matchCount + 0.5) / (matchCount + 0.5))
        let (lengths, averageLength) = (lengths, averageLength)
        let scores = zip(frequencies.numbers, frequencies.values).map { number, frequency in
            let relativeLength = Float(lengths[Int(number)]) / averageLength
            let damping = saturation * (1 - lengthInfluence + lengthInfluence * relativeLength)
            return rarity * frequency * (saturation + 1) / (frequency + damping)
        }
        return TermMatches(numbers: frequencies.numbers, scores: scores)
    }
}

/// Some of the properties that an index is over.
struct FieldSet {
    private let bits: UInt64

    init(count: Int) { bits = count >= 64 ? .max : (1 << UInt64(count)) - 1 }
    init(only field: Int) { bits = 1 << UInt64(field) }
    private init(bits: UInt64) { self.bits = bits }

    func contains(_ field: Int) -> Bool { bits & 1 << UInt64(field) != 0 }
    func intersection(_ other: FieldSet) -> FieldSet { FieldSet(bits: bits & other.bits) }
}

/// A term that a query looks for.
struct SearchTerm: Hashable {
    var bytes: [UInt8]
    /// Whether terms that begin so are meant, too.
    var isBeginning: Bool

    /// The terms of a text, one after the other.
    static func terms(of text: String, isBeginning: Bool, _ analyzer: TextAnalyzer) -> [SearchTerm] {
        var terms: [SearchTerm] = []
        let bytes = Array(text.utf8)
        var lastRange = 0..<0
        analyzer.forEachTerm(in: bytes.span, for: .searching) { term, place in
            terms.append(SearchTerm(bytes: Array(term), isBeginning: place.isBeginning))
            lastRange = place.range
        }
        guard isBeginning, let last = terms.popLast() else { return terms }
        // The beginning of a word has no stem.
        var whole = last.bytes
        analyzer.withoutStems.forEachTerm(in: bytes.span.extracting(lastRange), for: .searching) { term, _ in
            whole = Array(term)
        }
        return terms + [SearchTerm(bytes: whole, isBeginning: true)]
    }
}

extension [UInt8] {
    /// A copy of the bytes.
    init(_ span: Span<UInt8>) {
        self = unsafe span.withUnsafeBufferPointer { unsafe Array($0) }
    }
}
