@_spi(Tool) internal import CofferKeys

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
