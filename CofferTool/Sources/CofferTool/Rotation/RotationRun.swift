internal import Coffer
internal import Foundation

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
