internal import Coffer
internal import Foundation
internal import ArgumentParser

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A rotation of many stores, some at a time.
struct RotationRun: Sendable {
    let rotation: Rotation
    let paths: [String]
    let jobCount: Int
    /// Whether the others are still done after one has failed.
    let goesOn: Bool
    /// Whether receipts are JSON.
    let isJSON: Bool
    var limits = Limits()

    /// When no further store is begun.
    struct Limits: Codable, Sendable {
        /// After that time; nil if time doesn't count.
        var end: Date?
        /// When that many stores have the new key by this run, or are on their way to it.
        var storeCount: Int?
    }

    /// What came of all stores together.
    struct Summary: Sendable {
        var storeCount = 0
        var rotatedCount = 0
        var wasRotatedCount = 0
        /// Those that the new key opens and that are not as a rotation would leave them.
        var differingCount = 0
        var dueCount = 0
        /// Those whose data keys are too young.
        var notDueCount = 0
        /// Those that an earlier run of the same rotation has dealt with: nobody asked them again.
        var doneBeforeCount = 0
        var failures: [Failure] = []
        /// The stores that have the new key, and something left of an old generation.
        var leftCount = 0
        var isCancelled = false
        /// What the list has beside stores.
        var passedOver: [String] = []
        /// The SHA-256 of the last line of the receipts; nil if none are kept.
        var receipts: String?

        /// Those that nobody came to, after another one had failed or all of it was cancelled.
        var untriedCount: Int {
            storeCount - rotatedCount - wasRotatedCount - differingCount - dueCount - failures.count - doneBeforeCount
                - notDueCount
        }

        /// Whether further stores are begun.
        ///
        /// - Parameter failures: whether those of single stores are no reason to end.
        func goesOn(afterFailures failures: Bool) -> Bool {
            self.failures.isEmpty || failures
        }

        /// Counts what a run was not for.
        mutating func add(_ leftOut: StoreSelection.LeftOut) {
            storeCount += leftOut.doneBeforeCount + leftOut.notDueCount
            doneBeforeCount += leftOut.doneBeforeCount
            notDueCount += leftOut.notDueCount
        }

        mutating func add(_ report: RotationReport) {
            if report.hasOldGeneration { leftCount += 1 }
            switch report.kind {
            case .rotated: rotatedCount += 1
            case .wasRotated: wasRotatedCount += 1
            case .differs: differingCount += 1
            case .due: dueCount += 1
            case .cancelled: isCancelled = true
            case .failed: if let failure = report.failure { failures.append(failure) }
            }
        }
    }

    /// Does it, and hands out each receipt as soon as there is one. Cancelled, it ends with the stores under way, each of
    /// which is as it was or has the new key.
    func run(_ report: (RotationReport) throws -> Void) async throws -> Summary {
        var summary = Summary(storeCount: paths.count)
        try await withThrowingTaskGroup(of: RotationReceipt.self) { group in
            var rest = paths[...]
            var underWayCount = 0
            func begin() -> Bool {
                guard !Task.isCancelled, summary.goesOn(afterFailures: goesOn), limits.end.map({ Date() < $0 }) ?? true,
                    limits.storeCount.map({ summary.rotatedCount + underWayCount < $0 }) ?? true,
                    let path = rest.popFirst()
                else { return false }
                underWayCount += 1
                group.addTask { [rotation] in await rotation.run(path) }
                return true
            }
            while underWayCount < jobCount, begin() {}
            while let receipt = try await group.next() {
                underWayCount -= 1
                let result = RotationReport(receipt, isJSON: isJSON)
                summary.add(result)
                do {
                    try report(result)
                } catch {
                    group.cancelAll()
                    throw error
                }
                while underWayCount < jobCount, begin() {}
            }
        }
        summary.isCancelled = summary.isCancelled || (Task.isCancelled && summary.untriedCount > 0)
        return summary
    }
}

/// Which stores of those that are named a rotation is for.
struct StoreSelection: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Skip stores whose path or name matches this pattern, with * and ? as in a shell. Repeatable.",
            valueName: "pattern"))
    var exclude: [String] = []

    @Option(
        help: ArgumentHelp(
            "Skip stores with a younger data key: a number with d for days, h for hours, or w for weeks. See coffer audit.",
            valueName: "age"))
    var olderThan: Age?

    /// What was left out, and why.
    struct LeftOut {
        /// An earlier run of the same rotation has dealt with them.
        var doneBeforeCount = 0
        /// Their data keys are too young.
        var notDueCount = 0
    }

    /// Leaves out of `list` what the rotation is not for.
    ///
    /// - Parameter rotation: the one that is resumed; nil if none is.
    func apply(to list: inout StoreList, resuming rotation: ResumedRotation?) -> LeftOut {
        var leftOut = LeftOut()
        _ = list.keep(list.paths.filter { !isExcluded($0) })
        if let olderThan {
            let now = Date()
            leftOut.notDueCount = list.keep(list.paths.filter { Self.isOlder($0, than: olderThan, at: now) })
        }
        if let rotation { leftOut.doneBeforeCount = list.keep(list.paths.filter { !rotation.hasSettled($0) }) }
        return leftOut
    }

    private func isExcluded(_ path: String) -> Bool {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return exclude.contains { pattern in
            unsafe fnmatch(pattern, path, 0) == 0 || fnmatch(pattern, name, 0) == 0
        }
    }

    /// Whether its data key is older, or not known: what is wrong with the store, its rotation says.
    private static func isOlder(_ path: String, than age: Age, at now: Date) -> Bool {
        guard let store = try? StorePath(path), let manager = try? Manager(directory: store.folder),
            let info = try? manager.storeInfo(named: store.databaseName)
        else { return true }
        return info.dataKeyAge(at: now).map { $0 > age.duration } ?? true
    }
}

/// What the summary of a rotation says.
extension RotationRun.Summary {
    private var counts: [(name: String, count: Int)] {
        [
            ("rotated", rotatedCount), ("alreadyRotated", wasRotatedCount), ("doneBefore", doneBeforeCount),
            ("notDue", notDueCount), ("notAsAsked", differingCount), ("due", dueCount), ("failed", failures.count),
            ("notTried", untriedCount), ("oldGenerationsLeft", leftCount),
        ]
    }

    /// What a file of metrics says. Each store has one outcome.
    func add(to metrics: inout PrometheusText) {
        let outcomes = counts.filter { $0.name != "oldGenerationsLeft" }
        metrics.addGauge(
            "coffer_rotation_stores", "Stores of the last rotation, by outcome.",
            outcomes.map { (["outcome": $0.name], Double($0.count)) })
        metrics.addGauge(
            "coffer_rotation_stores_with_old_generations",
            "Stores in which something encrypted under the old key is left.", leftCount)
        metrics.addGauge(
            "coffer_rotation_passed_over", "Files and folders beside the stores that were skipped.",
            passedOver.count)
        metrics.addGauge("coffer_rotation_cancelled", "Whether the last rotation was cancelled.", isCancelled ? 1 : 0)
    }

    var text: String {
        let parts = [
            (rotatedCount, "rotated"), (wasRotatedCount, "rotated before"),
            (doneBeforeCount, "done in an earlier run"), (notDueCount, "not due"), (differingCount, "not as asked"),
            (dueCount, "to be rotated"), (failures.count, "failed"), (untriedCount, "not tried"),
            (leftCount, "with an old generation left"), (passedOver.count, "skipped"),
        ]
        let words = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return storeCount.counted("store") + (words.isEmpty ? "" : ": " + words.joined(separator: ", "))
            + (receipts.map { "\nreceipts end with \($0)" } ?? "")
    }

    var json: String {
        var line = JSONLine(type: "summary")
        add(to: &line)
        if let receipts { line.add("receipts", receipts) }
        return line.finished
    }

    func add(to line: inout JSONLine) {
        line.add("stores", storeCount)
        for (name, count) in counts { line.add(name, count) }
        line.add("cancelled", isCancelled)
        line.add("passedOver", passedOver)
    }
}
