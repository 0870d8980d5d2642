internal import CofferSealing
internal import Foundation

/// The calls of listeners that are under way, so that a close can wait for them, and refuse to wait for its own.
final class ListenerCalls: Sendable {
    // NSCondition is thread safe by its contract; the rest is only touched while it is locked.
    private let condition = NSCondition()
    private nonisolated(unsafe) var threads: [Int: UInt] = [:]
    private nonisolated(unsafe) var lastNumber = 0

    /// Runs `body`, a listener's, on the calling thread.
    func run(_ body: () -> Void) {
        condition.lock()
        unsafe lastNumber += 1
        let number = unsafe lastNumber
        unsafe threads[number] = currentThreadIdentity()
        condition.unlock()
        body()
        condition.lock()
        unsafe threads[number] = nil
        condition.broadcast()
        condition.unlock()
    }

    /// Whether the calling thread is in a listener's call.
    var isInCall: Bool {
        condition.lock()
        defer { condition.unlock() }
        return unsafe threads.values.contains(currentThreadIdentity())
    }

    /// Waits for the calls that are under way now.
    ///
    /// - Returns: false when some still are after `deadline`.
    func waitForThoseUnderWay(until deadline: ContinuousClock.Instant) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        let last = unsafe lastNumber
        while unsafe threads.keys.contains(where: { $0 <= last }) {
            let remaining = ContinuousClock.now.duration(to: deadline)
            guard remaining > .zero else { return false }
            _ = condition.wait(until: Date(timeIntervalSinceNow: min(remaining, .seconds(3600)).seconds))
        }
        return true
    }
}
