internal import CofferSealing
internal import Dispatch
internal import Synchronization

/// Has the disk write what there is so far while the caller goes on, so that the sync that counts finds little left to do,
/// or is this one.
///
/// A failure that one sync reports is not reported by the next: it is kept, for ``wait()``.
final class EarlySync: Sendable {
    private struct State {
        var isUnderWay = false
        var failure: CofferError?
    }

    private let state = Lock(State())
    private let queue = DispatchQueue(label: "coffer.sync")

    /// Begins `synchronize` on another thread, unless one is under way. Safe from any thread.
    func begin(_ synchronize: @escaping @Sendable () throws(CofferError) -> Void) {
        let isFirst = state.withLock { state in
            defer { state.isUnderWay = true }
            return !state.isUnderWay
        }
        guard isFirst else { return }
        queue.async { [self] in
            var failure: CofferError?
            do throws(CofferError) { try synchronize() } catch { failure = error }
            state.withLock { state in
                state.isUnderWay = false
                state.failure = state.failure ?? failure
            }
        }
    }

    /// Waits for the one that is under way.
    ///
    /// - Throws: what the first that failed did, each time.
    func wait() throws(CofferError) {
        queue.sync {}
        if let failure = state.withLock(\.failure) { throw failure }
    }
}
