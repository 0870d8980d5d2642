internal import Coffer
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Work that can be cancelled, for a command that is not a task: ^C cancels it.
final class Interruptible<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)

    private init() {}

    /// Runs `work` and waits for it. Interrupted, it is cancelled and still waited for, since it may have come too far.
    ///
    /// Throws what `work` throws, and ``Failure/cancelled`` when it was cancelled.
    static func run(_ work: @escaping @Sendable () async throws -> Value) throws -> Value {
        Interruption.watch()
        try Interruption.check()
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw Failure.system(errno, "a pipe") }
        let (reading, writing) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(reading) }

        let interruptible = Interruptible()
        let task = Task.detached {
            let result: Result<Value, any Error>
            do { result = .success(try await work()) } catch { result = .failure(error) }
            interruptible.result.withLock { $0 = result }
            // The other end sees the end of the pipe.
            close(writing)
        }
        do {
            try Interruption.waitForInput(from: reading)
        } catch {
            task.cancel()
            wait(for: reading)
        }
        return try interruptible.finished()
    }

    private func finished() throws -> Value {
        guard let result = result.withLock({ $0 }) else { throw Failure.cancelled }
        do {
            return try result.get()
        } catch let error as CofferError where error.code == .cancelled {
            throw Failure.cancelled
        }
    }

    /// Returns at the end of what can be read from `descriptor`, whatever signals come.
    private static func wait(for descriptor: Int32) {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        repeat { _ = unsafe poll(&waiting, 1, -1) } while waiting.revents == 0
    }
}
