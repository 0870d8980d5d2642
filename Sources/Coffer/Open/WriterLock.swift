internal import CofferSealing
internal import Foundation
internal import Synchronization
internal import CofferRecords

/// Lets one thread at a time write, as often as it likes: a transaction that calls a save finds the lock its own.
///
/// A thread, because a transaction's body is synchronous: it runs where it was called, from its first line to its last.
final class WriterLock: Sendable {
    private struct State {
        var isHeld = false
        /// Whether the holder is about to let go: even a call that may not wait waits for that.
        var isBrief = false
        var waitingCount = 0
        /// Set by close: whoever waits and whoever comes fails.
        var isClosed = false
    }

    private let state = Monitor(State())
    /// The holder, for the holder: no other thread can find its own identity here.
    private let holder = Atomic<UInt>(0)

    /// How long somebody waits at least for who holds it briefly.
    private static let shortestWait = Duration.milliseconds(100)

    /// Whether the calling thread holds the lock.
    var isHeldByCaller: Bool { holder.load(ordering: .relaxed) == currentThreadIdentity() }

    /// Takes the lock. The caller must not hold it.
    ///
    /// - Throws: `busy` (503) when `timeout` has passed, `closed` (500) after ``close()``.
    func lock(until deadline: ContinuousClock.Instant, subject: String) throws(CofferError) {
        var isCounted = false
        try state.wait { (state) throws(CofferError) -> Monitor<State>.Look<Void> in
            guard state.isHeld && !state.isClosed else {
                if isCounted { state.waitingCount -= 1 }
                guard !state.isClosed else { throw CofferError(.closed, of: subject) }
                state.isHeld = true
                return .done(())
            }
            var remaining = ContinuousClock.now.duration(to: deadline)
            if state.isBrief { remaining = max(remaining, Self.shortestWait) }
            guard remaining > .zero else {
                if isCounted { state.waitingCount -= 1 }
                throw CofferError(.busy, of: subject, "another transaction took too long")
            }
            if !isCounted { state.waitingCount += 1 }
            isCounted = true
            return .again(within: remaining)
        }
        holder.store(currentThreadIdentity(), ordering: .relaxed)
    }

    /// Takes the lock for a moment, without waiting, unless somebody has it or it is closed. To others that is as if it were
    /// free: none of them is `busy` for it.
    ///
    /// - Returns: whether it was taken.
    func lockBriefly() -> Bool {
        let isTaken = state.withLock { state in
            guard !state.isHeld, !state.isClosed else { return false }
            state.isHeld = true
            state.isBrief = true
            return true
        }
        if isTaken { holder.store(currentThreadIdentity(), ordering: .relaxed) }
        return isTaken
    }

    /// Whether anybody waits for the lock, or is about to have it.
    var isWaitedFor: Bool { state.withLock { $0.waitingCount > 0 } }

    func unlock() {
        holder.store(0, ordering: .relaxed)
        state.change(wakingOne: true) { state in
            state.isHeld = false
            state.isBrief = false
        }
    }

    /// Makes everyone who waits or comes fail with `closed`. Call it while holding the lock; it is never unlocked again.
    func close() {
        state.change { $0.isClosed = true }
        holder.store(0, ordering: .relaxed)
    }
}

extension Duration {
    var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }
}

#if canImport(Glibc)
internal import Glibc

func currentThreadIdentity() -> UInt { UInt(pthread_self()) }
#else
func currentThreadIdentity() -> UInt { UInt(bitPattern: pthread_self()) }
#endif

/// The writer of an open store, with the lock that whoever uses it holds.
///
/// The writer can't be copied, and is lent only by borrowing, so that nobody has it without the lock or for longer than the
/// lock: the compiler sees to that everywhere but in this file. Here each way to it looks whether the caller holds the lock.
final class WriterOwner: Sendable {
    /// Lets one thread at a time write.
    let lock = WriterLock()

    /// Nil when the store is open read-only, and after ``close(_:)``. `lend`, `replace` and `close` alone touch it, and stop
    /// the process where the caller doesn't hold the lock (test: "The writer can't be reached without its lock: the process
    /// stops").
    private nonisolated(unsafe) var writer: Writer?

    /// Whether the writer has met damage and is to be replaced before it is used again.
    private let isTainted = Atomic(false)
    var hasMetDamage: Bool {
        get { isTainted.load(ordering: .relaxed) }
        set { isTainted.store(newValue, ordering: .relaxed) }
    }

    /// Whether the holder of the lock may only read.
    private let isReading = Atomic(false)

    init(_ writer: consuming sending Writer?) { unsafe self.writer = writer }

    /// Waits for the lock. The caller must not hold it.
    ///
    /// - Throws: `busy` (503) when `deadline` has passed, `closed` (500) after a close.
    func acquire(until deadline: ContinuousClock.Instant, subject: String) throws(CofferError) {
        try lock.lock(until: deadline, subject: subject)
        occupy()
    }

    /// Takes the lock for a moment, without waiting: see ``WriterLock/lockBriefly()``.
    func acquireBriefly() -> Bool {
        guard lock.lockBriefly() else { return false }
        occupy()
        return true
    }

    /// Gives the lock back.
    func release() {
        lend { $0.tables.vacate() }
        lock.unlock()
    }

    private func occupy() { lend { $0.tables.occupy() } }

    /// Lends the writer to `body`. Only for whoever holds the lock; loans nest.
    ///
    /// - Returns: what `body` returns; nil if there is no writer.
    @discardableResult
    func lend<Value, Failure: Error>(
        _ body: (borrowing Writer) throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        checkHeld()
        switch unsafe writer {
        case .some(let writer): return try body(writer)
        case .none: return nil
        }
    }

    /// Lends the writer's tables to `body`, which reads what was committed. Only for whoever holds the lock, and is in no
    /// transaction. Were anything written from `body`, the process would stop (test: "A brief read that writes stops the
    /// process").
    ///
    /// - Returns: what `body` returns; nil if there is no writer, or one that has met damage.
    func lendToRead<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value? {
        guard !hasMetDamage else { return nil }
        isReading.store(true, ordering: .relaxed)
        defer { isReading.store(false, ordering: .relaxed) }
        do throws(CofferError) {
            return try lend { (writer) throws(CofferError) in try writer.tables.read(body) }
        } catch {
            // A page that failed its check leaves a connection that calls healthy pages damaged.
            hasMetDamage = true
            throw error
        }
    }

    /// Stops the process where the holder of the lock may only read.
    func checkMayWrite() {
        if isReading.load(ordering: .relaxed) { fatalError("a read that borrowed the writer's connection wrote") }
    }

    /// Puts `successor` in the writer's place, which is closed. Only for whoever holds the lock, and outside of every loan.
    func replace(with successor: consuming sending Writer) {
        // Nothing was written through it that the successor doesn't see: what closing says changes nothing.
        try? close { (writer) throws(CofferError) in try writer.tables.close() }
        successor.tables.occupy()
        unsafe writer = consume successor
    }

    /// Ends the writer's life, after `body` has closed its connection, one way or another. Only for whoever holds the lock,
    /// and outside of every loan.
    ///
    /// - Throws: what `body` throws; the writer is gone all the same.
    func close(_ body: (borrowing Writer) throws(CofferError) -> Void) throws(CofferError) {
        checkHeld()
        guard let last = unsafe writer.take() else { return }
        try body(last)
    }

    private func checkHeld() {
        guard lock.isHeldByCaller else { fatalError("the writer was used without its lock") }
    }
}
