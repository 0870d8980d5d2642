internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// Which documents a part of a query finds, by their numbers in the index, and how well: both in ascending order of numbers.
struct TermMatches {
    private(set) var numbers: [UInt32]
    private(set) var scores: [Float]

    init(numbers: [UInt32] = [], scores: [Float] = []) { (self.numbers, self.scores) = (numbers, scores) }

    var count: Int { numbers.count }

    /// - Parameter number: above all that are there.
    mutating func append(_ number: UInt32, _ score: Float) {
        numbers.append(number)
        scores.append(score)
    }

    /// What both find; each document has the sum of its scores.
    func intersection(_ other: TermMatches) -> TermMatches {
        var result = TermMatches()
        merge(other) { number, left, right in
            if let left, let right { result.append(number, left + right) }
        }
        return result
    }

    /// What one or both find.
    func union(_ other: TermMatches) -> TermMatches {
        var result = TermMatches()
        merge(other) { number, left, right in result.append(number, (left ?? 0) + (right ?? 0)) }
        return result
    }

    /// What `other` does not find.
    func subtracting(_ other: TermMatches) -> TermMatches {
        var result = TermMatches()
        merge(other) { number, left, right in
            if let left, right == nil { result.append(number, left) }
        }
        return result
    }

    private func merge(_ other: TermMatches, _ visit: (UInt32, Float?, Float?) -> Void) {
        var (left, right) = (0, 0)
        while left < numbers.count || right < other.numbers.count {
            let (here, there) = (
                left < numbers.count ? UInt64(numbers[left]) : .max,
                right < other.numbers.count ? UInt64(other.numbers[right]) : .max
            )
            visit(
                UInt32(min(here, there)), here <= there ? scores[left] : nil, there <= here ? other.scores[right] : nil)
            if here <= there { left += 1 }
            if there <= here { right += 1 }
        }
    }
}

/// Where a phrase stands: for each document, in ascending order of numbers, the places of its first and last term.
struct PhrasePlaces {
    struct Span {
        var first: TermPlace
        var last: TermPlace
    }

    private(set) var numbers: [UInt32] = []
    /// Where each document's spans end.
    private var ends: [Int] = []
    private var spans: [Span] = []

    func spans(at index: Int) -> ArraySlice<Span> { spans[(index == 0 ? 0 : ends[index - 1])..<ends[index]] }

    /// - Parameter number: not below the last.
    mutating func append(_ number: UInt32, _ span: Span) {
        spans.append(span)
        if numbers.last == number {
            ends[ends.count - 1] = spans.count
        } else {
            numbers.append(number)
            ends.append(spans.count)
        }
    }

    /// Where a number is; nil if it isn't there.
    ///
    /// - Parameter start: it is not looked for before.
    func index(of number: UInt32, from start: Int = 0) -> Int? {
        var (lower, upper) = (start, numbers.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if numbers[middle] < number { lower = middle + 1 } else { upper = middle }
        }
        return lower < numbers.count && numbers[lower] == number ? lower : nil
    }

    /// The span that ends right before a place; nil if none does.
    func span(before place: TermPlace, at index: Int) -> Span? {
        guard place.position > 0 else { return nil }
        let wanted = TermPlace(field: place.field, position: place.position - 1)
        let spans = spans(at: index)
        // Ascending by the last place, as terms come in order.
        var (lower, upper) = (spans.startIndex, spans.endIndex)
        while lower < upper {
            let middle = (lower + upper) / 2
            if spans[middle].last < wanted { lower = middle + 1 } else { upper = middle }
        }
        return lower < spans.endIndex && spans[lower].last == wanted ? spans[lower] : nil
    }

    /// The spans of `other` that have one of these near them, in the same text.
    ///
    /// - Parameter distance: how many terms may stand between them.
    func near(_ other: PhrasePlaces, distance: Int) -> PhrasePlaces {
        var result = PhrasePlaces()
        var place = 0
        for (index, number) in other.numbers.enumerated() {
            guard let here = self.index(of: number, from: place) else { continue }
            place = here
            for span in other.spans(at: index) where hasSpan(near: span, distance, at: here) {
                result.append(number, span)
            }
        }
        return result
    }

    private func hasSpan(near other: Span, _ distance: Int, at index: Int) -> Bool {
        let spans = spans(at: index)
        let field = other.first.field
        let earliest = TermPlace(field: field, position: max(0, other.first.position - 1 - distance))
        var (lower, upper) = (spans.startIndex, spans.endIndex)
        while lower < upper {
            let middle = (lower + upper) / 2
            if spans[middle].last < earliest { lower = middle + 1 } else { upper = middle }
        }
        // Those that reach into the other are not beside it.
        for span in spans[lower...] {
            guard span.first.field == field, span.first.position <= other.last.position + 1 + distance else {
                return false
            }
            if span.last < other.first || other.last < span.first { return true }
        }
        return false
    }
}

/// Matches in the order in which they are shown: the best first, those that are as good by the bytes of their documents' ids.
///
/// A heap, since most of those who ask want the first few of many.
struct RankedMatches {
    private struct Match {
        var number: UInt32
        var score: Float
    }

    private var heap: [Match]
    /// Equally good ones whose ids are known, the next one last.
    private var tied: [(id: [UInt8], number: UInt32, score: Float)] = []

    init(_ matches: TermMatches) {
        heap = zip(matches.numbers, matches.scores).map { Match(number: $0, score: $1) }
        for place in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(place) }
    }

    /// The next match; nil after the last.
    ///
    /// - Parameter id: the id of the document with a number.
    mutating func next(
        _ id: (UInt32) throws(CofferError) -> [UInt8]
    ) throws(CofferError) -> (id: [UInt8], score: Float)? {
        if tied.isEmpty, let best = heap.first {
            while let match = heap.first, match.score == best.score {
                tied.append((try id(match.number), match.number, match.score))
                removeFirst()
            }
            tied.sort { compareBytes($0.id.span, $1.id.span) > 0 }
        }
        return tied.popLast().map { ($0.id, $0.score) }
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        sink(0)
    }

    /// Moves what is at a place below what is better.
    private mutating func sink(_ place: Int) {
        var place = place
        let match = heap[place]
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].score > heap[child].score { child += 1 }
            guard heap[child].score > match.score else { break }
            heap[place] = heap[child]
            place = child
        }
        heap[place] = match
    }
}
