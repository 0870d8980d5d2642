internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import Synchronization

/// What is known in memory of an index of an open database.
final class OpenIndex: Sendable {
    private struct State {
        /// What each change touched that is still remembered, the oldest first, and the number of the first.
        var touched: [[EntryPosition]?] = []
        var firstNumber: Int64 = 0
        /// The number of the index that these are of.
        var index: IndexNumber = 0
        var isUpdating = false
        var watcherCount = 0
    }

    private let state = Lock(State())

    /// More changes, or more places in one, or longer ones, are not remembered.
    private static let changeLimit = 64
    static let placeLimit = 256
    static let placeByteLimit = 65_536

    /// Whether anybody wants to know what changes touch.
    var isWatched: Bool { state.withLock { $0.watcherCount > 0 } }

    func addWatcher() { state.withLock { $0.watcherCount += 1 } }

    func removeWatcher() {
        state.withLock { state in
            state.watcherCount -= 1
            if state.watcherCount == 0 { state.touched = [] }
        }
    }

    /// Notes what a change touched that was committed.
    ///
    /// - Parameters:
    ///   - places: nil when there are too many to tell, and where nobody was watching as it was made.
    ///   - index: the index's number.
    ///   - number: ``IndexRow/changeCount`` since then.
    func note(_ places: [EntryPosition]?, of index: IndexNumber, number: Int64) {
        state.withLock { state in
            guard state.watcherCount > 0 else { return }
            let next = state.firstNumber + Int64(state.touched.count)
            // Changes that nobody noted, as of a transaction of the app's, are a gap: what was before it is of no use.
            if index != state.index || number > next || state.touched.isEmpty {
                state.touched = []
                state.firstNumber = number
                state.index = index
            } else if number < next {
                // Somebody else was first to say it.
                return
            }
            state.touched.append(places)
            if state.touched.count > Self.changeLimit {
                state.touched.removeFirst()
                state.firstNumber += 1
            }
        }
    }

    /// Whether a change after `old`, up to and with `new`, may have touched an entry in one of the ranges.
    func mayHaveChanged(_ ranges: [EntryRange], of index: IndexNumber, after old: Int64, upTo new: Int64) -> Bool {
        guard old < new else { return old != new }
        return state.withLock { state in
            let end = state.firstNumber + Int64(state.touched.count)
            guard index == state.index, old + 1 >= state.firstNumber, new < end else { return true }
            return state.touched[Int(old + 1 - state.firstNumber)...Int(new - state.firstNumber)].contains { places in
                guard let places else { return true }
                return places.contains { place in ranges.contains { $0.lower <= place && place <= $0.upper } }
            }
        }
    }

    // MARK: Updates in the background

    /// - Returns: whether the caller is to bring it up to date in the background: nobody else is about to.
    func beginBackgroundUpdate() -> Bool {
        state.withLock { state in
            defer { state.isUpdating = true }
            return !state.isUpdating
        }
    }

    func endBackgroundUpdate() { state.withLock { $0.isUpdating = false } }
}

/// The stemmers that the app has given an open database, and what is known of its indexes. Safe from any thread.
final class OpenIndexes: StorageCompanion {
    private struct Key: Hashable {
        var kind: IndexKind
        var name: [UInt8]
    }

    private struct State {
        var indexes: [Key: OpenIndex] = [:]
        var stemmers: [[UInt8]: TextStemmer] = [:]
    }

    private let state = Lock(State())
    private let healings = Atomic(0)
    private let losses = Atomic(0)

    /// How often damaged indexes were healed while the store is open.
    var healingCount: Int { healings.load(ordering: .acquiring) }

    /// Whether it was not known any more, in one of them, what indexes there were.
    var haveLostDefinitions: Bool { losses.load(ordering: .acquiring) > 0 }

    func noteHealing(losesDefinitions: Bool) {
        if losesDefinitions { losses.add(1, ordering: .acquiringAndReleasing) }
        healings.add(1, ordering: .acquiringAndReleasing)
    }

    subscript(kind: IndexKind, name: String) -> OpenIndex {
        state.withLock { state in
            let key = Key(kind: kind, name: Array(name.utf8))
            if let known = state.indexes[key] { return known }
            let index = OpenIndex()
            state.indexes[key] = index
            return index
        }
    }

    /// What makes the stems of a language's words: the app's function, or what Coffer has; nil if there is neither.
    func stemmer(of language: String) -> TextStemmer? {
        TextStemmer(language: language) ?? state.withLock { $0.stemmers[Array(language.utf8)] }
    }

    func setStemmer(_ stemmer: TextStemmer?, of language: String) {
        // Let go of outside the lock: what a function holds may end here.
        _ = state.withLock { state in
            let key = Array(language.utf8)
            defer { state.stemmers[key] = stemmer }
            return state.stemmers[key]
        }
    }
}

extension Storage {
    /// What is known of views and declared indexes.
    var indexes: OpenIndexes { companions[OpenIndexes.self] }
}
