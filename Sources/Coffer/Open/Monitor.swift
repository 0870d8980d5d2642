internal import CofferRecords
internal import Foundation

/// A value that one thread at a time may use, and that threads can wait for to change.
///
/// `body` must not call the same monitor.
final class Monitor<Value: Sendable>: Sendable {
    // NSCondition is thread safe by its contract.
    private let condition = NSCondition()

    /// Only these three functions touch it, and only while `condition` is locked (test: "A value in a monitor is changed by one
    /// thread at a time").
    private nonisolated(unsafe) var value: Value

    /// What a look at the value comes to.
    enum Look<Result> {
        case done(Result)
        /// Look again when the value has changed, or after this time at the latest.
        case again(within: Duration)

        /// Look again when the value has changed.
        static var untilItChanges: Self { .again(within: Monitor.longestWait) }
    }

    /// Waits are made of pieces no longer than this: a condition can't wait until the end of time.
    private static var longestWait: Duration { .seconds(3600) }

    init(_ value: Value) { unsafe self.value = value }

    /// Runs `body` while no other thread has the value. Wakes nobody.
    func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        condition.lock()
        defer { condition.unlock() }
        return unsafe try body(&value)
    }

    /// Runs `body` while no other thread has the value, then wakes those who wait: all, or one where any will do.
    func change<Result>(wakingOne: Bool = false, _ body: (inout Value) -> Result) -> Result {
        condition.lock()
        defer { condition.unlock() }
        let result = unsafe body(&value)
        if wakingOne { condition.signal() } else { condition.broadcast() }
        return result
    }

    /// Runs `body` while no other thread has the value, again and again until it is done or throws. Others have the value
    /// between two looks.
    func wait<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Look<Result>
    ) throws(Failure) -> Result {
        condition.lock()
        defer { condition.unlock() }
        while true {
            switch unsafe try body(&value) {
            case .done(let result): return result
            case .again(let limit):
                _ = condition.wait(until: Date(timeIntervalSinceNow: min(limit, Self.longestWait).seconds))
            }
        }
    }
}
