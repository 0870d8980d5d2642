internal import CofferModel
internal import CofferSealing

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
