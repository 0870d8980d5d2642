internal import Synchronization
internal import Coffer

#if Sync
internal import Foundation
#endif

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Notices ^C and the other orderly ways to end a process, so that work can be undone, or ended, and a terminal put right first.
enum Interruption {
    private static let noticed = Atomic(false)

    /// The two ends of a pipe that a signal writes to, so that a wait for something else ends. -1 before ``watch()``.
    private static let readingEnd = Atomic<Int32>(-1)
    private static let writingEnd = Atomic<Int32>(-1)

    /// From here on those signals are noticed instead of ending the process. One that was ignored as it began, as by nohup,
    /// stays ignored.
    static func watch() {
        guard readingEnd.load(ordering: .relaxed) < 0 else { return }
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        readingEnd.store(ends[0], ordering: .relaxed)
        writingEnd.store(ends[1], ordering: .relaxed)
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] where !SignalAction.current(number).isIgnoring {
            SignalAction { _ in Interruption.notice() }.install(for: number)
        }
    }

    /// Runs in a signal handler, and so does nothing but what is safe there.
    private static func notice() {
        let saved = errno
        noticed.store(true, ordering: .relaxed)
        var byte: UInt8 = 0
        unsafe write(writingEnd.load(ordering: .relaxed), &byte, 1)
        errno = saved
    }

    /// Whether one of them came since ``watch()``.
    static var wasNoticed: Bool { noticed.load(ordering: .relaxed) }

    /// Throws ``Failure/cancelled`` if one of them came since ``watch()``.
    static func check() throws(Failure) {
        if wasNoticed { throw .cancelled }
    }

    /// Returns when something can be read from `descriptor`, or from `other`, or throws ``Failure/cancelled`` when a signal
    /// comes first.
    static func waitForInput(from descriptor: Int32, or other: Int32 = -1) throws(Failure) {
        try wait(for: POLLIN, of: descriptor, or: other)
    }

    /// Returns when `descriptor` takes something, or nobody reads it any more, or throws ``Failure/cancelled`` when a
    /// signal comes first.
    static func waitForRoom(in descriptor: Int32) throws(Failure) {
        try wait(for: POLLOUT, of: descriptor)
    }

    private static func wait(
        for event: some BinaryInteger, of descriptor: Int32, or other: Int32 = -1
    ) throws(Failure) {
        var waiting = [
            pollfd(fd: descriptor, events: Int16(event), revents: 0),
            // A negative descriptor is one that poll leaves out.
            pollfd(fd: other, events: Int16(event), revents: 0),
            pollfd(fd: readingEnd.load(ordering: .relaxed), events: Int16(POLLIN), revents: 0),
        ]
        repeat {
            _ = unsafe poll(&waiting, 3, -1)
            try check()
        } while waiting[0].revents == 0 && waiting[1].revents == 0
    }
}

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

/// What a process does when a signal comes: `sigaction(2)`.
struct SignalAction {
    private var action: sigaction

    /// - Parameter handler: runs in the middle of whatever the process does, and so does nothing but what is safe there.
    init(_ handler: @escaping @convention(c) (Int32) -> Void) {
        action = sigaction()
        #if canImport(Glibc)
        unsafe action.__sigaction_handler.sa_handler = handler
        #else
        unsafe action.__sigaction_u.__sa_handler = handler
        #endif
    }

    private init(_ action: sigaction) { self.action = action }

    /// What it does now.
    static func current(_ signal: Int32) -> SignalAction {
        var action = sigaction()
        unsafe sigaction(signal, nil, &action)
        return SignalAction(action)
    }

    /// Whether the signal is ignored.
    var isIgnoring: Bool {
        #if canImport(Glibc)
        let handler = unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        #else
        let handler = unsafe unsafeBitCast(action.__sigaction_u.__sa_handler, to: Int.self)
        #endif
        return unsafe handler == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Has the process do this from here on, and returns what it did before.
    @discardableResult
    func install(for signal: Int32) -> SignalAction {
        var (new, old) = (action, sigaction())
        unsafe sigaction(signal, &new, &old)
        return SignalAction(old)
    }
}

#if Sync
/// Keeps the promise that a process ends in time after it was told to, whatever still runs in it.
enum OrderlyEnd {
    /// Ends the process with 0 after that many seconds, unless it has ended by then.
    ///
    /// Stores that are still open are as a crash leaves them, which takes back what was not committed. Nothing of the
    /// process is waited for, since what runs too long may hold what an end with all its duties needs.
    static func atTheLatest(in seconds: TimeInterval) {
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: seconds)
            _exit(0)
        }
    }
}
#endif
