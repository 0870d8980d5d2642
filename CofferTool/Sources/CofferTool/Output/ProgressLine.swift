internal import Synchronization
internal import Coffer

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

#if Sync
internal import CofferSync
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

/// Counts bytes as they are read, and shows on a terminal how far that is. May be shared with who reads them.
final class ProgressMeter: Sendable {
    private struct State {
        var line = ProgressLine()
        var done = 0
    }

    private let state = Mutex(State())
    private let total: Int

    /// `total` is how many bytes there will be; 0 when nobody knows.
    init(total: Int) {
        self.total = total
    }

    func add(_ byteCount: Int) {
        state.withLock { state in
            state.done += byteCount
            let done = state.done
            state.line.update(done, of: total, "\(done >> 20) MiB")
        }
    }

    /// Takes the line away.
    func clear() {
        state.withLock { $0.line.clear() }
    }
}

/// Shows how far long work of the library is: on a terminal as a bar, elsewhere, where it was asked for, in lines.
final class WorkMeter: Sendable {
    private let line = Mutex(ProgressLine())
    private let writesLines: Bool
    private let isJSON: Bool
    private let lastLine = Mutex<ContinuousClock.Instant?>(nil)

    init(_ console: Console, isAsked: Bool) {
        writesLines = isAsked && !ProgressLine.isOnTerminal
        isJSON = console.isJSON
    }

    /// How far a change of keys or a backup is.
    func show(_ progress: CopyProgress) {
        show(
            progress.phase.description, progress.completedByteCount, of: progress.totalByteCount,
            items: (progress.completedItemCount, progress.totalItemCount))
    }

    /// How far a verification is.
    func show(_ progress: VerificationProgress) {
        show("\(progress.level)", progress.completedByteCount, of: progress.totalByteCount)
    }

    #if Sync
    /// How far a replication is. Its lines are not more than ten a second.
    func show(_ status: ReplicationStatus, _ name: String) {
        let (done, total) = (status.completedCount, status.totalCount)
        let refused = status.failedCount > 0 ? ", \(status.failedCount) refused" : ""
        let text = "\(name): \(done) of \(total) documents\(refused)"
        guard writesLines else { return line.withLock { $0.update(done, of: total, text) } }
        let now = ContinuousClock.now
        let isDue = lastLine.withLock { last in
            guard last.map({ now - $0 >= .milliseconds(100) }) ?? true else { return false }
            last = now
            return true
        }
        guard isDue else { return }
        guard isJSON else { return Console.printProgress("coffer: \(text)") }
        var line = JSONLine(type: "progress")
        line.add("phase", name)
        line.add("items", done)
        line.add("totalItems", total)
        line.add("failed", status.failedCount)
        Console.printProgress(line.finished)
    }
    #endif

    /// How much is done of so many things.
    func show(_ phase: String, _ done: Int, of total: Int, _ things: String) {
        guard writesLines else {
            return line.withLock { $0.update(done, of: max(done, total), "\(phase): \(done) of \(total) \(things)") }
        }
        guard isJSON else { return Console.printProgress("coffer: \(phase): \(done) of \(total) \(things)") }
        var line = JSONLine(type: "progress")
        line.add("phase", phase)
        line.add("items", done)
        line.add("totalItems", total)
        Console.printProgress(line.finished)
    }

    /// Takes the bar away.
    func clear() { line.withLock { $0.clear() } }

    private func show(_ phase: String, _ done: Int, of total: Int, items: (done: Int, total: Int)? = nil) {
        let text = "\(phase): \(done >> 20) of \(max(done, total) >> 20) MiB"
        guard writesLines else { return line.withLock { $0.update(done, of: total, text) } }
        guard isJSON else { return Console.printProgress("coffer: \(text)") }
        var line = JSONLine(type: "progress")
        line.add("phase", phase)
        line.add("bytes", done)
        line.add("totalBytes", total)
        if let items {
            line.add("items", items.done)
            line.add("totalItems", items.total)
        }
        Console.printProgress(line.finished)
    }
}
