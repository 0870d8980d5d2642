internal import CofferModel
internal import CofferSealing
internal import Synchronization

/// A view or a declared index, as somebody wants it to be.
struct IndexDefinition: Sendable {
    let kind: IndexKind
    let name: String
    /// A view's version, or a declared index's paths as JSON. Entries that were made for another definition are made anew.
    let definition: String
    /// Makes a document's entries. What it throws leaves the document without.
    let map: @Sendable (SavedRevision) throws -> [MappedEntry]

    /// Names and definitions are this long at most, in bytes: their rows, and the entries of the index over them, fit a page.
    static let nameByteLimit = 400
    static let definitionByteLimit = 2000

    /// - Throws: `invalidArgument` (400).
    func check() throws(CofferError) {
        guard (1...Self.nameByteLimit).contains(name.utf8.count) else {
            throw CofferError(
                .invalidArgument, "the name of a view or an index has 1 to \(Self.nameByteLimit) bytes")
        }
        guard definition.utf8.count <= Self.definitionByteLimit else {
            throw CofferError(
                .invalidArgument, of: "index \(name)",
                "its version or its properties' paths have more than \(Self.definitionByteLimit) bytes")
        }
    }
}

/// An entry that a document is to have in an index.
struct MappedEntry: Sendable {
    /// A ``CollationKey``'s bytes.
    var key: [UInt8]
    /// JSON in canonical form; nil for null.
    var value: [UInt8]?
}

/// What is known in memory of an index of an open database.
final class OpenIndex: Sendable {
    private struct State {
        /// What each change touched that is still remembered, the oldest first, and the number of the first.
        var touched: [[EntryPosition]?] = []
        var firstNumber: Int64 = 0
        var watcherCount = 0
    }

    private let state = Lock(State())

    /// More changes, or more places in one, are not remembered.
    private static let changeLimit = 64
    static let placeLimit = 256

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
    ///   - places: nil when there are too many to tell.
    ///   - number: ``IndexRow/changeCount`` since then.
    func note(_ places: [EntryPosition]?, number: Int64) {
        state.withLock { state in
            guard state.watcherCount > 0 else { return }
            // Changes that nobody noted, as of a transaction of the app's, are a gap: what was before it is of no use.
            if state.firstNumber + Int64(state.touched.count) != number {
                state.touched = []
                state.firstNumber = number
            }
            state.touched.append(places)
            if state.touched.count > Self.changeLimit {
                state.touched.removeFirst()
                state.firstNumber += 1
            }
        }
    }

    /// Whether a change after `old`, up to and with `new`, may have touched an entry in one of the ranges.
    func mayHaveChanged(_ ranges: [EntryRange], after old: Int64, upTo new: Int64) -> Bool {
        guard old < new else { return old != new }
        return state.withLock { state in
            for number in old + 1...new {
                let index = number - state.firstNumber
                guard index >= 0, index < state.touched.count, let places = state.touched[Int(index)] else {
                    return true
                }
                if places.contains(where: { place in ranges.contains { $0.lower <= place && place <= $0.upper } }) {
                    return true
                }
            }
            return false
        }
    }
}

/// The views' functions that the app has given an open database, and what is known of its indexes. Safe from any thread.
final class OpenIndexes: Sendable {
    private struct Key: Hashable {
        var kind: IndexKind
        var name: [UInt8]
    }

    private struct State {
        var indexes: [Key: OpenIndex] = [:]
        var views: [Key: ViewFunctions] = [:]
    }

    private let state = Lock(State())

    subscript(kind: IndexKind, name: String) -> OpenIndex {
        state.withLock { state in
            let key = Key(kind: kind, name: Array(name.utf8))
            if let known = state.indexes[key] { return known }
            let index = OpenIndex()
            state.indexes[key] = index
            return index
        }
    }

    func functions(ofView name: String) -> ViewFunctions? {
        state.withLock { $0.views[Key(kind: .view, name: Array(name.utf8))] }
    }

    func setFunctions(_ functions: ViewFunctions?, ofView name: String) {
        state.withLock { $0.views[Key(kind: .view, name: Array(name.utf8))] = functions }
    }
}
