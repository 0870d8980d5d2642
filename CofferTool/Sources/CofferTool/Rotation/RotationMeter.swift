internal import Foundation
internal import Synchronization
internal import Coffer

/// Shows how far a rotation of many stores is, which of them are under way, and how long the rest may take: on a terminal as a bar,
/// elsewhere, where it was asked for, in lines. Safe from any thread.
final class RotationMeter: Sendable {
    private let isJSON: Bool
    private let writesLines: Bool
    /// Whether anybody sees it.
    let isShown: Bool
    private let total: Int
    private let limits: RotationRun.Limits
    private let state: Mutex<State>

    private struct State {
        var bar = ProgressLine()
        var lastLine: ContinuousClock.Instant?
        var timeLeft: TimeLeft
        var doneCount = 0
        var rotatedCount = 0
        /// In the order in which they were begun.
        var underWay: [StoreProgress] = []
    }

    /// There is at most a line each second.
    private static let lineInterval = Duration.seconds(1)
    /// How many stores under way are named.
    private static let nameCountLimit = 4

    /// - Parameters:
    ///   - isAsked: whether lines are written where there is no terminal.
    ///   - measuresStores: whether this process may look how large each store is.
    init(
        _ paths: [String], isAsked: Bool, isJSON: Bool, jobCount: Int, limits: RotationRun.Limits,
        measuresStores: Bool
    ) {
        writesLines = isAsked && !ProgressLine.isOnTerminal
        (total, self.isJSON, self.limits) = (paths.count, isJSON, limits)
        isShown = writesLines || ProgressLine.isOnTerminal
        let byteCounts = isShown && measuresStores ? Self.byteCounts(paths) : [:]
        state = Mutex(State(timeLeft: TimeLeft(paths: paths, byteCounts: byteCounts, jobCount: jobCount)))
    }

    /// Says that a store is begun, or how far it is.
    func show(_ progress: StoreProgress) {
        state.withLock { state in
            state.timeLeft.update(progress, at: .now)
            if let index = state.underWay.firstIndex(where: { $0.path == progress.path }) {
                state.underWay[index] = progress
            } else {
                state.underWay.append(progress)
            }
            show(&state)
        }
    }

    /// Says what became of a store. What `print` writes stands above the bar.
    func finish(_ report: RotationReport, _ print: () throws -> Void) rethrows {
        try state.withLock { state in
            state.bar.clear()
            try print()
            let isChange = report.kind == .rotated || report.kind == .due
            state.timeLeft.finish(report.path, isChange: isChange, at: .now)
            state.underWay.removeAll { $0.path == report.path }
            state.doneCount += 1
            if report.kind == .rotated { state.rotatedCount += 1 }
            // The last line is written whenever the one before was.
            if state.doneCount == total { state.lastLine = nil }
            show(&state)
        }
    }

    /// Takes the bar away.
    func clear() { state.withLock { $0.bar.clear() } }

    private func show(_ state: inout State) {
        guard writesLines else {
            let current = state
            let share = Double(state.doneCount) + state.underWay.reduce(0) { $0 + $1.share }
            state.bar.update(
                Int(share * 1_000), of: total * 1_000, text(current) { ($0 as NSString).lastPathComponent })
            return
        }
        let now = ContinuousClock.now
        if let last = state.lastLine, now - last < Self.lineInterval { return }
        state.lastLine = now
        Console.printProgress(isJSON ? json(state) : "coffer: " + text(state) { $0 })
    }

    private func secondsLeft(_ state: State) -> Int? {
        let limit = limits.storeCount.map { $0 - state.rotatedCount - state.underWay.count }
        guard state.doneCount < total, let left = state.timeLeft.estimate(at: .now, limit: limit) else { return nil }
        var seconds = left / .seconds(1)
        // No store is begun after that.
        if let end = limits.end { seconds = min(seconds, max(0, end.timeIntervalSinceNow)) }
        return Int(min(seconds.rounded(.up), 1e9))
    }

    private func text(_ state: State, _ name: (String) -> String) -> String {
        var text = "\(state.doneCount) of \(total) store\(total == 1 ? "" : "s")"
        if let left = secondsLeft(state) { text += ", about \(Self.text(seconds: left)) left" }
        guard !state.underWay.isEmpty else { return text }
        let names = state.underWay.prefix(Self.nameCountLimit).map { store in
            let share = store.share > 0 ? " \(Int(store.share * 100)) %" : ""
            return Console.printable(name(store.path), toTerminal: TerminalText.isErrors) + share
        }
        let rest = state.underWay.count - names.count
        return text + ": " + names.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
    }

    private func json(_ state: State) -> String {
        var line = JSONLine(type: "progress")
        line.add("phase", "rotation")
        line.add("items", state.doneCount)
        line.add("totalItems", total)
        if let left = secondsLeft(state) { line.add("secondsLeft", left) }
        let stores = state.underWay.map { store in
            var line = JSONLine()
            line.add("path", store.path)
            line.add("bytes", store.completedByteCount)
            line.add("totalBytes", store.totalByteCount)
            return line.finished
        }
        line.add("stores", json: "[" + stores.joined(separator: ",") + "]")
        return line.finished
    }

    /// Such as `40 s`, `3 min` or `2 h 5 min`.
    static func text(seconds: Int) -> String {
        if seconds < 60 { return "\(seconds) s" }
        let minutes = (seconds + 59) / 60
        return minutes < 60 ? "\(minutes) min" : "\(minutes / 60) h \(minutes % 60) min"
    }

    /// Those that can't be read, rotations say what is wrong with.
    private static func byteCounts(_ paths: [String]) -> [String: Int] {
        var counts: [String: Int] = [:]
        for path in paths {
            guard let store = try? StorePath(path), let sizes = try? StoreSizes(of: store) else { continue }
            counts[path] = sizes.databaseByteCount + sizes.contentByteCount
        }
        return counts
    }
}

/// How far the rotation of one store is.
struct StoreProgress: Codable, Equatable, Sendable {
    let path: String
    /// How many of the store's bytes have been re-encrypted.
    var completedByteCount = 0
    /// How many bytes it has: its database and its contents; 0 while nobody knows.
    var totalByteCount = 0

    /// From 0 to 1.
    var share: Double {
        totalByteCount > 0 ? min(1, Double(completedByteCount) / Double(totalByteCount)) : 0
    }
}

/// Makes of how far a copy is how far the store is.
struct CopyMeter {
    private let path: String
    private let sizes: StoreSizes?
    private let progress: @Sendable (StoreProgress) -> Void

    init(_ path: String, _ sizes: StoreSizes?, _ progress: @escaping @Sendable (StoreProgress) -> Void) {
        (self.path, self.sizes, self.progress) = (path, sizes, progress)
        show(0)
    }

    /// Contents come before the database.
    @Sendable func show(_ copy: CopyProgress) {
        let before = copy.phase == .database ? sizes?.contentByteCount ?? 0 : 0
        show(before + copy.completedByteCount)
    }

    private func show(_ completed: Int) {
        let total = sizes.map { $0.contentByteCount + $0.databaseByteCount } ?? 0
        progress(
            StoreProgress(path: path, completedByteCount: min(completed, total), totalByteCount: total))
    }
}
