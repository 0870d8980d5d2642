#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A line at the bottom of the terminal that says how far the work is. Without a terminal it is not there.
struct ProgressLine {
    private let isShown = Self.isOnTerminal
    private let clock = ContinuousClock()
    private var lastUpdate: ContinuousClock.Instant?

    /// Whether standard error is a terminal.
    static var isOnTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    private static let width = 30
    private static let interval = Duration.milliseconds(100)

    /// Shows that `done` of `total` are done, unless it was shown just now. `text` says what has come of it.
    mutating func update(_ done: Int, of total: Int, _ text: @autoclosure () -> String) {
        guard isShown else { return }
        let now = clock.now
        if let lastUpdate, now - lastUpdate < Self.interval { return }
        lastUpdate = now
        let filled = total > 0 ? Self.width * min(done, total) / total : 0
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
        show("\r[\(bar)] \(text())\u{1B}[K")
    }

    /// Takes the line away.
    mutating func clear() {
        if lastUpdate != nil { show("\r\u{1B}[K") }
        lastUpdate = nil
    }

    private func show(_ text: String) {
        var text = text
        text.withUTF8 { unsafe _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
