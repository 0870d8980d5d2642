import CofferSealing
import Foundation

/// Work on a thread of its own, beside a process that a test starts and that ends by what is done here.
///
/// The testing library reads from each such process until it ends, and takes a thread of the concurrency pool for that. The
/// pool has as many threads as there are processors, and other tests block some. Whoever ends the process may need none.
package final class WorkBesideProcess<Value: Sendable>: Sendable {
    private enum Progress {
        case running
        case ended(Result<Value, any Error>)
    }

    private let progress = Lock(Progress.running)

    package init(_ body: @escaping @Sendable () throws -> Value) {
        Thread { [self] in
            let result = Result { try body() }
            progress.withLock { $0 = .ended(result) }
        }.start()
    }

    /// Waits for the end of the work, and returns what it came to. For the time after the process has ended.
    package func value() throws -> Value {
        while true {
            if case .ended(let result) = progress.withLock({ $0 }) { return try result.get() }
            Thread.sleep(forTimeInterval: 0.002)
        }
    }
}
