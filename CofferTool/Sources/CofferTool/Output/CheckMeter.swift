internal import Coffer
internal import Synchronization

/// Shows how far a check is: on a terminal as a bar, elsewhere, where it was asked for, in lines.
final class CheckMeter: Sendable {
    private let line = Mutex(ProgressLine())
    private let writesLines: Bool
    private let isJSON: Bool

    init(_ console: Console, isAsked: Bool) {
        writesLines = isAsked && !ProgressLine.isOnTerminal
        isJSON = console.isJSON
    }

    func show(_ progress: VerificationProgress) {
        let (done, total) = (progress.completedByteCount, progress.totalByteCount)
        let text = "\(progress.level): \(done >> 20) of \(max(done, total) >> 20) MiB"
        guard writesLines else { return line.withLock { $0.update(done, of: total, text) } }
        guard isJSON else { return Console.printProgress("coffer: \(text)") }
        var line = JSONLine(type: "progress")
        line.add("phase", "\(progress.level)")
        line.add("bytes", done)
        line.add("totalBytes", total)
        Console.printProgress(line.finished)
    }

    /// Takes the bar away.
    func clear() { line.withLock { $0.clear() } }
}
