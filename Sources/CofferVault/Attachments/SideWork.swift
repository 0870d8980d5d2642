internal import CofferSealing
internal import Dispatch

/// Work for another thread, as far as there is one: what nobody has begun when its result is needed, the thread that needs it
/// does itself. So it never waits for a thread to become free, of which there may be none.
final class SideWork: Sendable {
    /// Nil from its beginning on: a queue that has not come to it yet keeps nothing of it alive.
    private let work: Lock<(@Sendable () -> Void)?>
    private let ended = DispatchSemaphore(value: 0)

    private init(_ work: @escaping @Sendable () -> Void) { self.work = Lock(work) }

    /// Runs `work` on whichever thread, once, and `body` on this one. When this returns, both are over.
    static func run<Result, Failure: Error>(
        _ work: @escaping @Sendable () -> Void, beside body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let side = SideWork(work)
        DispatchQueue.global().async { if side.begin() { side.ended.signal() } }
        defer { if !side.begin() { side.ended.wait() } }
        return try body()
    }

    /// Does the work, unless another thread has begun it: then it returns false.
    private func begin() -> Bool {
        guard let work = work.withLock({ $0.take() }) else { return false }
        work()
        return true
    }
}
