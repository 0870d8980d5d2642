internal import Synchronization

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
