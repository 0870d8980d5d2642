@_spi(Tool) internal import CofferKeys
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The terminal of the person who started the command, whatever standard input and output are connected to.
struct Terminal: ~Copyable {
    private let descriptor: Int32

    /// Opens it, or returns nil if there isn't one, as in a job that nobody watches.
    init?() {
        descriptor = unsafe open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        if descriptor < 0 { return nil }
    }

    deinit {
        close(descriptor)
    }

    /// Whether there is one.
    static var isPresent: Bool { Terminal() != nil }

    /// Asks for one line, without showing what is typed, and returns it without its line end. A process that was stopped
    /// meanwhile, as by ^Z, asks again when it goes on.
    func secret(prompt: String) throws(Failure) -> KeyBytes {
        Interruption.watch()
        let suspension = try Suspension()
        var shown = termios()
        guard unsafe tcgetattr(descriptor, &shown) == 0 else { throw unavailable }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        hidden.c_lflag |= tcflag_t(ECHONL)
        defer { unsafe tcsetattr(descriptor, TCSAFLUSH, &shown) }
        while true {
            // What was typed before the prompt was meant for somebody else.
            guard unsafe tcsetattr(descriptor, TCSAFLUSH, &hidden) == 0 else { throw unavailable }
            show(TerminalText.escaped(prompt))
            if let line = try line(suspension, restore: { unsafe _ = tcsetattr(descriptor, TCSAFLUSH, &shown) }) {
                return line
            }
        }
    }

    /// What is typed up to a line end; nil when the process was stopped meanwhile.
    private func line(_ suspension: borrowing Suspension, restore: () -> Void) throws(Failure) -> KeyBytes? {
        var secret = KeyBytes()
        while true {
            try waitForInput(or: suspension.descriptor)
            if suspension.stopIfNeeded(restore) { return nil }
            var byte: UInt8 = 0
            let count = unsafe read(descriptor, &byte, 1)
            if count == 1, byte != UInt8(ascii: "\n") {
                do { try secret.append(byte) } catch { throw Failure(error) }
            } else if count >= 0 {
                return secret
            } else if errno != EINTR {
                throw unavailable
            }
        }
    }

    private func waitForInput(or other: Int32) throws(Failure) {
        do {
            try Interruption.waitForInput(from: descriptor, or: other)
        } catch {
            show("\n")
            throw error
        }
    }

    private func show(_ text: String) {
        var text = text
        text.withUTF8 { unsafe _ = write(descriptor, $0.baseAddress, $0.count) }
    }

    private var unavailable: Failure { .keyUnavailable("the terminal cannot be asked for a key") }
}

/// Notices, while it lasts, that the process is about to stop, as by ^Z, or has continued. A terminal that hides what is typed
/// must show it again before the stop, and hide it again afterwards, since shells change its settings in between.
struct Suspension: ~Copyable {
    /// The signal that came last and that nobody has looked at; 0 for none.
    private static let pending = Atomic<Int32>(0)
    private static let writingEnd = Atomic<Int32>(-1)

    /// Something can be read from it when a signal has come.
    let descriptor: Int32

    private let former: [(signal: Int32, action: SignalAction)]

    init() throws(Failure) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw Failure.system(errno, "a pipe") }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        descriptor = ends[0]
        Self.pending.store(0, ordering: .relaxed)
        Self.writingEnd.store(ends[1], ordering: .relaxed)
        former = [SIGTSTP, SIGCONT].filter { !SignalAction.current($0).isIgnoring }.map { signal in
            (signal, SignalAction { Suspension.notice($0) }.install(for: signal))
        }
    }

    deinit {
        for (signal, action) in former { action.install(for: signal) }
        close(descriptor)
        close(Self.writingEnd.exchange(-1, ordering: .relaxed))
    }

    /// Runs in a signal handler, and so does nothing but what is safe there.
    private static func notice(_ signal: Int32) {
        let saved = errno
        pending.store(signal, ordering: .relaxed)
        var byte: UInt8 = 0
        unsafe write(writingEnd.load(ordering: .relaxed), &byte, 1)
        errno = saved
    }

    /// Whether a signal has come. Where the process is to stop, `restore` runs and it stops; this returns when it goes on.
    func stopIfNeeded(_ restore: () -> Void) -> Bool {
        let signal = Self.pending.exchange(0, ordering: .relaxed)
        guard signal != 0 else { return false }
        if signal == SIGTSTP, let action = former.first(where: { $0.signal == SIGTSTP })?.action {
            restore()
            let noticing = action.install(for: SIGTSTP)
            // On this thread: it stops before the call returns, and so has gone on when it does.
            raise(SIGTSTP)
            noticing.install(for: SIGTSTP)
            Self.pending.store(0, ordering: .relaxed)
        }
        var bytes = [UInt8](repeating: 0, count: 64)
        while unsafe read(descriptor, &bytes, bytes.count) > 0 {}
        return true
    }
}
