internal import Coffer
internal import Synchronization

#if Sync
internal import CofferSync
#endif

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
