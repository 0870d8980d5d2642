import CofferSealing
import Dispatch
import Foundation
import Synchronization
import TestSupport

/// Runs `body` on `count` threads of its own at once, numbered from 0, and waits for all; throws what the first threw.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    let failure = Lock<(any Error)?>(nil)
    let group = DispatchGroup()
    for number in 0..<count {
        group.enter()
        let thread = Thread {
            do { try body(number) } catch { failure.withLock { $0 = $0 ?? error } }
            group.leave()
        }
        thread.start()
    }
    group.wait()
    if let error = failure.withLock({ $0 }) { throw error }
}

/// Something that one thread waits for and another brings about.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func open() { semaphore.signal() }

    /// Waits until it is open; false when that took longer than anything here takes on a busy machine.
    @discardableResult
    func wait() -> Bool {
        guard semaphore.wait(timeout: .now() + Double(longestWait.components.seconds)) == .success else { return false }
        semaphore.signal()
        return true
    }
}

/// How often each thing happened. Any thread may count.
final class Tally: Sendable {
    private let counts = Lock<[String: Int]>([:])

    func count(_ what: String) { counts.withLock { $0[what, default: 0] += 1 } }

    subscript(what: String) -> Int { counts.withLock { $0[what] ?? 0 } }

    var all: [String: Int] { counts.withLock { $0 } }
}

/// JSON of about `byteCount` bytes.
func json(_ number: Int, byteCount: Int = 0) -> Data {
    Data(#"{"n":\#(number),"t":"\#(String(repeating: "text ", count: byteCount / 5))"}"#.utf8)
}

/// A value that several threads set and read.
final class Shared<Value: Sendable>: Sendable {
    private let content: Lock<Value>

    init(_ value: Value) { content = Lock(value) }

    var value: Value {
        get { content.withLock { $0 } }
        set { content.withLock { $0 = newValue } }
    }
}

/// Runs `body` while twice as many threads as there are processors do nothing but burn time: threads that race are
/// interrupted in the middle then, as on a busy machine.
func withBusyProcessors<Value>(_ body: () throws -> Value) rethrows -> Value {
    let isOver = Shared(false)
    let group = DispatchGroup()
    for _ in 0..<2 * ProcessInfo.processInfo.activeProcessorCount {
        group.enter()
        Thread {
            var number: UInt64 = 1
            while !isOver.value { for _ in 0..<100_000 { number = number &* 6_364_136_223_846_793_005 &+ 1 } }
            _ = withExtendedLifetime(number) { number }
            group.leave()
        }.start()
    }
    defer {
        isOver.value = true
        group.wait()
    }
    return try body()
}
