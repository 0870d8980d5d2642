internal import Coffer
internal import Synchronization

/// Shows how far long work of the library is: on a terminal as a bar, elsewhere, where it was asked for, in lines.
final class WorkMeter: Sendable {
    private let line = Mutex(ProgressLine())
    private let writesLines: Bool
    private let isJSON: Bool

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
