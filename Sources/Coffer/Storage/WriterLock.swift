internal import CofferSealing
internal import Foundation
internal import Synchronization

/// Lets one thread at a time write, as often as it likes: a transaction that calls a save finds the lock its own.
///
/// A thread, because a transaction's body is synchronous: it runs where it was called, from its first line to its last.
final class WriterLock: Sendable {
    private struct State {
        var isHeld = false
        /// Whether the holder is about to let go: who has no time to wait waits for that one all the same.
        var isBrief = false
        var waitingCount = 0
        /// Set by close: whoever waits and whoever comes fails.
        var isClosed = false
    }

    // NSCondition is thread safe by its contract; `state` is only touched while it is locked.
    private let condition = NSCondition()
    private nonisolated(unsafe) var state = State()
    /// The holder, for the holder: no other thread can find its own identity here.
    private let holder = Atomic<UInt>(0)

    /// Waits are made of pieces no longer than this: a condition can't wait until the end of time.
    private static let longestWait = Duration.seconds(3600)

    /// How long somebody waits at least for who holds it briefly.
    private static let shortestWait = Duration.milliseconds(100)

    /// Whether the calling thread holds the lock.
    var isHeldByCaller: Bool { holder.load(ordering: .relaxed) == currentThreadIdentity() }

    /// Takes the lock. The caller must not hold it.
    ///
    /// - Throws: `busy` (503) when `timeout` has passed, `closed` (500) after ``close()``.
    func lock(until deadline: ContinuousClock.Instant, subject: String) throws(CofferError) {
        condition.lock()
        defer { condition.unlock() }
        unsafe state.waitingCount += 1
        defer { unsafe state.waitingCount -= 1 }
        while unsafe state.isHeld && !state.isClosed {
            var remaining = ContinuousClock.now.duration(to: deadline)
            if unsafe state.isBrief { remaining = max(remaining, Self.shortestWait) }
            guard remaining > .zero else {
                throw CofferError(.busy, of: subject, "another transaction took too long")
            }
            _ = condition.wait(until: Date(timeIntervalSinceNow: min(remaining, Self.longestWait).seconds))
        }
        guard unsafe !state.isClosed else { throw CofferError(.closed, of: subject) }
        unsafe state.isHeld = true
        holder.store(currentThreadIdentity(), ordering: .relaxed)
    }

    /// Takes the lock for a moment, without waiting, unless somebody has it or it is closed. To others that is as if it were
    /// free: none of them is `busy` for it.
    ///
    /// - Returns: whether it was taken.
    func lockBriefly() -> Bool {
        condition.lock()
        defer { condition.unlock() }
        guard unsafe !state.isHeld, unsafe !state.isClosed else { return false }
        unsafe state.isHeld = true
        unsafe state.isBrief = true
        holder.store(currentThreadIdentity(), ordering: .relaxed)
        return true
    }

    /// Whether anybody waits for the lock, or is about to have it.
    var isWaitedFor: Bool {
        condition.lock()
        defer { condition.unlock() }
        return unsafe state.waitingCount > 0
    }

    func unlock() {
        holder.store(0, ordering: .relaxed)
        condition.lock()
        unsafe state.isHeld = false
        unsafe state.isBrief = false
        condition.signal()
        condition.unlock()
    }

    /// Makes everyone who waits or comes fail with `closed`. Call it while holding the lock; it is never unlocked again.
    func close() {
        condition.lock()
        unsafe state.isClosed = true
        condition.broadcast()
        condition.unlock()
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
