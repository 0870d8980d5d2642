internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Which thread is inside a connection. Stops the process when a second one enters: a damaged store would be worse.
///
/// A thread is inside for the length of a call, or of a loan of several: then calls cost one comparison, and a second thread
/// is noticed between them too. SQLite's own mutexes are no substitute, since two threads in one transaction are wrong with
/// them as well. Always on: a call outside of a loan costs a compare-and-swap and a store.
final class Occupancy: Sendable {
    /// The thread inside, 0 for none. A thread finds its own identity here only if it put it there.
    private let thread = Atomic<UInt>(0)
    private let subject: String

    init(subject: String) { self.subject = subject }

    /// Enters, unless the calling thread is inside already.
    ///
    /// - Returns: whether it entered, and so has to ``leave()``.
    @inline(__always)
    func enter() -> Bool {
        let caller = threadIdentity()
        if thread.load(ordering: .relaxed) == caller { return false }
        if !thread.compareExchange(expected: 0, desired: caller, ordering: .acquiring).exchanged { stop() }
        return true
    }

    /// Enters; the calling thread must not be inside.
    func occupy() { if !enter() { fatalError("a loan of \(subject) within a loan") } }

    /// Leaves, on the thread that entered.
    @inline(__always)
    func leave() { thread.store(0, ordering: .releasing) }

    @inline(never)
    private func stop() -> Never {
        fatalError(
            "two threads use one connection of \(subject): Coffer stops the process before that damages the store")
    }
}

#if canImport(Glibc)
private func threadIdentity() -> UInt { UInt(pthread_self()) }
#else
private func threadIdentity() -> UInt { UInt(bitPattern: pthread_self()) }
#endif
