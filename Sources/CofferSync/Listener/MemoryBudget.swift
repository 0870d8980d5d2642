internal import CofferSealing
internal import Synchronization

/// The memory that the requests of a listener may take all together, in bytes.
///
/// Whoever needs more than is free waits, the oldest request first; meanwhile nothing more is read from its connection.
/// The budget is never exceeded. Where nobody could go on, because all who hold some of it wait for more, the youngest of them
/// is refused, so that those before it come to an end.
package final class MemoryBudget: Sendable {
    /// In bytes.
    package let byteLimit: Int

    private let patience: Duration
    private let state = Lock(State())

    /// A request's part of the budget, by its age: a lower number is older.
    private struct Part {
        var byteCount = 0
        var waiting: Waiting?
    }

    private struct Waiting {
        /// How many bytes it will hold.
        let byteCount: Int
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var parts: [Int: Part] = [:]
        var nextNumber = 0
        var usedByteCount = 0
        /// The most that was used at any time.
        var greatestByteCount = 0
    }

    /// - Parameters:
    ///   - byteLimit: for all requests together.
    ///   - patience: whoever has waited for that long is refused.
    package init(byteLimit: Int, patience: Duration = .seconds(30)) {
        self.byteLimit = byteLimit
        self.patience = patience
    }

    /// What is in use now, and the most that ever was.
    package var usage: (now: Int, greatest: Int) {
        state.withLock { ($0.usedByteCount, $0.greatestByteCount) }
    }

    /// How many requests wait.
    package var waitingCount: Int { state.withLock { state in state.parts.values.count { $0.waiting != nil } } }

    /// The part of a request that begins now: nothing at first.
    package func part() -> MemoryPart {
        MemoryPart(
            self,
            number: state.withLock { state in
                defer { state.nextNumber += 1 }
                state.parts[state.nextNumber] = Part()
                return state.nextNumber
            })
    }

    /// Has the part hold so many bytes, as soon as they are free.
    ///
    /// - Throws: ``SyncError`` 413 for more than there will ever be, 503 where it takes too long; `CancellationError`.
    fileprivate func grow(_ number: Int, to byteCount: Int) async throws {
        guard byteCount <= byteLimit else { throw SyncError(413, "it takes more memory than requests may have") }
        if state.withLock({ Self.growAtOnce(number, to: byteCount, byteLimit, &$0) }) { return }
        let timer = Task { [patience] in
            try await Task.sleep(for: patience)
            self.refuse(number, Self.tooLate)
        }
        defer { timer.cancel() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = Task.isCancelled
                let isAtOnce = state.withLock { state in
                    if isCancelled { return false }
                    if Self.growAtOnce(number, to: byteCount, byteLimit, &state) { return true }
                    state.parts[number]?.waiting = Waiting(byteCount: byteCount, continuation: continuation)
                    return false
                }
                if isCancelled { return continuation.resume(throwing: CancellationError()) }
                if isAtOnce { return continuation.resume() }
                // It may have been cancelled before there was anybody to tell.
                if Task.isCancelled { return refuse(number, CancellationError()) }
                goOn()
            }
        } onCancel: {
            refuse(number, CancellationError())
        }
    }

    private static var tooLate: SyncError { SyncError(503, "other requests take all memory that there is for them") }

    /// Takes more, where nobody older waits and it is free.
    private static func growAtOnce(_ number: Int, to byteCount: Int, _ byteLimit: Int, _ state: inout State) -> Bool {
        guard let held = state.parts[number]?.byteCount else { return true }
        guard byteCount > held else { return true }
        let isBehind = state.parts.contains { $0.key < number && $0.value.waiting != nil }
        guard !isBehind, state.usedByteCount - held + byteCount <= byteLimit else { return false }
        state.parts[number]?.byteCount = byteCount
        state.usedByteCount += byteCount - held
        state.greatestByteCount = max(state.greatestByteCount, state.usedByteCount)
        return true
    }

    fileprivate func shrink(_ number: Int, to byteCount: Int) {
        state.withLock { state in
            guard let held = state.parts[number]?.byteCount, held > byteCount else { return }
            state.parts[number]?.byteCount = byteCount
            state.usedByteCount -= held - byteCount
        }
        goOn()
    }

    fileprivate func end(_ number: Int) {
        state.withLock { state in
            guard let part = state.parts.removeValue(forKey: number) else { return }
            state.usedByteCount -= part.byteCount
        }
        goOn()
    }

    private func refuse(_ number: Int, _ error: any Error) {
        let waiting = state.withLock { state in
            let waiting = state.parts[number]?.waiting
            state.parts[number]?.waiting = nil
            return waiting
        }
        guard let waiting else { return }
        waiting.continuation.resume(throwing: error)
        goOn()
    }

    /// Lets those who wait go on, as far as there is enough; refuses one where otherwise nobody could.
    private func goOn() {
        let (granted, refused) = state.withLock { [byteLimit] state in
            var granted: [CheckedContinuation<Void, any Error>] = []
            for number in state.parts.filter({ $0.value.waiting != nil }).keys.sorted() {
                guard let part = state.parts[number], let waiting = part.waiting,
                    state.usedByteCount - part.byteCount + waiting.byteCount <= byteLimit
                else { break }
                state.usedByteCount += waiting.byteCount - part.byteCount
                state.greatestByteCount = max(state.greatestByteCount, state.usedByteCount)
                state.parts[number] = Part(byteCount: waiting.byteCount)
                granted.append(waiting.continuation)
            }
            return (granted, Self.superfluous(&state))
        }
        for continuation in granted { continuation.resume() }
        if let refused { refused.resume(throwing: Self.tooLate) }
    }

    /// The youngest of those who hold something and wait, where all who hold something do; nil while somebody can go on.
    ///
    /// Its part stays until the request gives it back, which it does at once.
    private static func superfluous(_ state: inout State) -> CheckedContinuation<Void, any Error>? {
        let holding = state.parts.filter { $0.value.byteCount > 0 }
        guard holding.values.allSatisfy({ $0.waiting != nil }), let youngest = holding.keys.max()
        else { return nil }
        let waiting = state.parts[youngest]?.waiting
        state.parts[youngest]?.waiting = nil
        return waiting?.continuation
    }
}

/// What one request takes of a budget. It is given back when the last who holds this lets go of it.
package final class MemoryPart: Sendable {
    private let budget: MemoryBudget
    private let number: Int

    fileprivate init(_ budget: MemoryBudget, number: Int) {
        self.budget = budget
        self.number = number
    }

    deinit { budget.end(number) }

    /// Has it hold so many bytes, waiting for more where needed. For one task at a time.
    ///
    /// - Throws: ``SyncError`` 413 for more than there will ever be, 503 where it takes too long; `CancellationError`.
    package func grow(to byteCount: Int) async throws { try await budget.grow(number, to: byteCount) }

    /// Has it hold no more than so many bytes: the others are given back now.
    package func shrink(to byteCount: Int) { budget.shrink(number, to: byteCount) }
}
