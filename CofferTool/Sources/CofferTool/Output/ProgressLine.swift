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
        show("\r" + Self.shortened("[\(bar)] \(text())", to: Self.columnCount - 1) + "\u{1B}[K")
    }

    /// As much of `text` as stands in that many columns: a longer one would go on in the next line, and stay there.
    static func shortened(_ text: String, to columnCount: Int) -> String {
        var width = 0
        var end = text.startIndex
        for index in text.indices {
            // From there on letters may take two columns.
            width += text[index].unicodeScalars.contains { $0.value >= 0x1100 } ? 2 : 1
            if width > columnCount { return text[..<end] + "…" }
            if width < columnCount { end = text.index(after: index) }
        }
        return text
    }

    /// How many columns the terminal has; 80 where it doesn't say.
    private static var columnCount: Int {
        var size = winsize()
        guard unsafe ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
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
