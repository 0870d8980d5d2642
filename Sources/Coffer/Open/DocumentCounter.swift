internal import CofferRecords
internal import CofferSealing
internal import Synchronization

/// Knows how many documents there are, once they were counted: commits say how many came and went.
final class DocumentCounter: Sendable {
    private struct State {
        var count: Int?
        /// The last sequence that was in use at the last commit that was noted, or one before it was rolled back.
        var lastSequence: SequenceNumber
        var commitNumber = 0
        /// Whether a commit may be under way that purges. It can be read before it is noted, and no sequence tells.
        var isPurging = false
    }

    private let state: Lock<State>

    /// - Parameter lastSequence: the last sequence in use.
    init(lastSequence: SequenceNumber) { state = Lock(State(lastSequence: lastSequence)) }

    /// The number of documents at the last commit, if it is known.
    var known: Int? { state.withLock(\.count) }

    /// Called by the writer right before a commit that purges documents. Until a commit is noted no count is kept.
    func willPurge() {
        state.withLock { state in
            state.count = nil
            state.isPurging = true
        }
    }

    /// Called by the writer right after each commit.
    ///
    /// - Parameter hasPurged: whether documents went without a new sequence. They are counted again then.
    func note(documentDelta: Int, lastSequence: SequenceNumber, hasPurged: Bool) {
        state.withLock { state in
            state.count = hasPurged ? nil : state.count.map { $0 + documentDelta }
            state.lastSequence = lastSequence
            state.commitNumber += 1
            state.isPurging = false
        }
    }

    /// The number of documents.
    ///
    /// A commit can be read an instant before it is noted. Whoever has seen such a one must not be given the count before
    /// it, and a count with it must not be kept, since it will be noted yet: the sequence tells, or ``willPurge()``.
    ///
    /// - Parameters:
    ///   - lastSequence: reads the last sequence in use.
    ///   - scan: counts the documents, and reads the last sequence in the same snapshot.
    func count(
        lastSequence: () throws(CofferError) -> SequenceNumber,
        scan: () throws(CofferError) -> (count: Int, lastSequence: SequenceNumber)
    ) throws(CofferError) -> Int {
        let seen = try lastSequence()
        let before = state.withLock { $0 }
        if let count = before.count, seen <= before.lastSequence { return count }
        let (count, last) = try scan()
        state.withLock { state in
            let isLast = state.commitNumber == before.commitNumber && last <= state.lastSequence
            if isLast && !state.isPurging { state.count = count }
        }
        return count
    }
}

extension Storage {
    /// How many documents are not deleted, as ``read(_:)`` would find.
    func documentCount() throws(CofferError) -> Int {
        try checkUsable()
        let withinTransaction = try ifWriting { (writer) throws(CofferError) in
            let changes = writer.state.changes
            if let known = counter.known, !changes.hasPurged { return known + changes.documentDelta }
            return try read { (tables) throws(CofferError) in try tables.documentCount() }
        }
        if let withinTransaction { return withinTransaction }
        return try counter.count(
            lastSequence: { () throws(CofferError) in
                try read { (tables) throws(CofferError) in try tables.lastSequence() }
            },
            scan: { () throws(CofferError) in
                try read { (tables) throws(CofferError) in (try tables.documentCount(), try tables.lastSequence()) }
            })
    }
}
