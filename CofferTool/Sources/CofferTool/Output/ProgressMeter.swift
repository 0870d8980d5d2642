internal import Synchronization

/// Counts bytes as they are read, and shows on a terminal how far that is. May be shared with who reads them.
final class ProgressMeter: Sendable {
    private struct State {
        var line = ProgressLine()
        var done = 0
    }

    private let state = Mutex(State())
    private let total: Int

    /// `total` is how many bytes there will be; 0 when nobody knows.
    init(total: Int) {
        self.total = total
    }

    func add(_ byteCount: Int) {
        state.withLock { state in
            state.done += byteCount
            let done = state.done
            state.line.update(done, of: total, "\(done >> 20) MiB")
        }
    }

    /// Takes the line away.
    func clear() {
        state.withLock { $0.line.clear() }
    }
}
