#if Sync
internal import CofferSealing
internal import Foundation
internal import Synchronization

/// The threads that requests are answered on, so that long work takes none of those that all tasks of the process share.
///
/// There are so many at most: what more there is to do waits, in the order in which it came.
final class RequestThreads: TaskExecutor {
    private let threadLimit: Int
    private let queue = DispatchQueue(label: "coffer.requests", attributes: .concurrent)
    private let state = Lock(State())

    private struct State {
        var jobs: [UnownedJob] = []
        /// Where the next of them stands: taking them from the front would move all others.
        var next = 0
        var threadCount = 0

        mutating func take() -> UnownedJob? {
            if next >= 256, 2 * next >= jobs.count {
                jobs.removeFirst(next)
                next = 0
            }
            guard next < jobs.count else { return nil }
            defer { next += 1 }
            return jobs[next]
        }
    }

    /// - Parameter threadLimit: Default: eight, or as many as there are cores where those are more, since reading from a disk
    ///   keeps a thread waiting.
    init(threadLimit: Int = max(8, ProcessInfo.processInfo.activeProcessorCount)) { self.threadLimit = threadLimit }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let needsThread = state.withLock { state in
            state.jobs.append(job)
            guard state.threadCount < threadLimit else { return false }
            state.threadCount += 1
            return true
        }
        if needsThread { queue.async { self.runJobs() } }
    }

    private func runJobs() {
        let executor = unsafe asUnownedTaskExecutor()
        while true {
            let job = state.withLock { state in
                let job = state.take()
                if job == nil { state.threadCount -= 1 }
                return job
            }
            guard let job else { return }
            unsafe job.runSynchronously(on: executor)
        }
    }
}
#endif
