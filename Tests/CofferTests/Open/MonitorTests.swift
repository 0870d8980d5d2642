import Foundation
import Testing

@testable import Coffer

@Suite("A monitor")
struct MonitorTests {
    @Test("A value in a monitor is changed by one thread at a time")
    func oneAtATime() throws {
        let monitor = Monitor([Int]())
        try onThreads(4) { thread in
            for number in 0..<2_000 {
                if thread == 0 {
                    monitor.withLock { $0.append(number) }
                } else {
                    monitor.change { $0.append(number) }
                }
            }
        }
        let counts = monitor.withLock { values in values.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 } }
        #expect(counts.count == 2_000 && counts.values.allSatisfy { $0 == 4 })
    }

    @Test("Threads wait until the value is what they look for, and each look has it alone")
    func waiting() throws {
        let monitor = Monitor(0)
        // Each waits for its own number, then raises it: they come in order, whoever began first.
        try onThreads(8) { thread in
            monitor.wait { $0 == thread ? .done(()) : .untilItChanges }
            monitor.change { $0 += 1 }
        }
        let last = monitor.withLock { $0 }
        #expect(last == 8)
    }

    @Test("A wait looks again when its time is over, though nothing has changed")
    func limit() {
        let monitor = Monitor(0)
        var lookCount = 0
        monitor.wait { _ in
            lookCount += 1
            return lookCount == 3 ? .done(()) : .again(within: .milliseconds(1))
        }
        #expect(lookCount == 3)
    }

    @Test("An error of a monitor's look ends the wait, and the monitor is free for others")
    func failure() {
        let monitor = Monitor(0)
        #expect(throws: CancellationError.self) {
            try monitor.wait { _ throws(CancellationError) -> Monitor<Int>.Look<Void> in throw CancellationError() }
        }
        monitor.change { $0 = 1 }
        #expect(monitor.withLock { $0 } == 1)
    }
}
