import Coffer
import CofferSync
import Foundation

/// How fast documents and attachments travel between two stores on this machine, against how fast a store takes them at all.
struct Rates {
    let work: Work
    let roundCount: Int

    /// Rounds of all three, one after another, so that each ratio is of one moment.
    func run() async throws {
        let source = try await work.database("source")
        var (pushes, pulls): ([Double], [Double]) = ([], [])
        var (pushWork, pullWork): ([Double], [Double]) = ([], [])
        try work.fill(source)
        for round in 0...roundCount {
            let inserted = try await work.database("inserted-\(round)")
            let own = try await cost { try work.fill(inserted) }
            let target = "pushed-\(round)"
            let push = try await cost {
                var options = ReplicationOptions()
                options.createsTarget = true
                try await work.expectAll(
                    Replication(push: source, to: work.url(target), options: options).run(), "push")
            }
            let copy = try await work.database("pulled-\(round)")
            let pull = try await cost {
                try await work.expectAll(Replication(pull: work.url(target), into: copy).run(), "pull")
            }
            try await compare(copy, source)
            // Not removed before the end: creating files is slow after that, on ext4 without a journal.
            for database in [inserted, copy] { try await database.close() }
            guard round > 0 else { continue }
            pushes.append(own.seconds / push.seconds)
            pulls.append(own.seconds / pull.seconds)
            pushWork.append(push.processorSeconds / own.processorSeconds)
            pullWork.append(pull.processorSeconds / own.processorSeconds)
        }
        report("push, \(work.size)", pushes, atLeast: 0.6)
        report("pull, \(work.size)", pulls, atLeast: 0.6)
        report("processor time of a push", pushWork, of: "× what saving takes")
        report("processor time of a pull", pullWork, of: "× what saving takes")
    }

    private func compare(_ copy: Database, _ source: Database) async throws {
        guard try copy.documentCount == source.documentCount else { throw Failure("not all documents came") }
        for number in stride(from: 0, to: work.documentCount, by: 97) {
            let (left, right) = (try copy[work.id(number)], try source[work.id(number)])
            guard let left = try left?.currentRevision, let right = try right?.currentRevision,
                left.revisionID == right.revisionID, try left.json == right.json
            else { throw Failure("document \(number) is another one") }
            if number < work.attachmentCount, try left.attachment(named: "a")?.content != work.content(number) {
                throw Failure("attachment \(number) is another one")
            }
        }
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// What a part of a round takes, by the clock and of both processors, of this process with all of its threads.
struct Cost {
    var seconds: Double
    var processorSeconds: Double
}

func cost(_ body: () async throws -> Void) async rethrows -> Cost {
    let before = processorSeconds()
    let seconds = try await measure(body)
    return Cost(seconds: seconds, processorSeconds: processorSeconds() - before)
}

private func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

func measure(_ body: () async throws -> Void) async rethrows -> Double {
    try await ContinuousClock().measure(body) / .seconds(1)
}

/// Prints a row: the median, the least and the greatest.
///
/// - Parameter unit: what the values are.
func report(
    _ name: String, _ values: [Double], of unit: String = "of the store's own insert rate", atLeast least: Double = 0,
    atMost most: Double = .infinity
) {
    let sorted = values.sorted()
    let median = (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    let spread = String(format: "%.2f … %.2f", sorted.first ?? 0, sorted.last ?? 0)
    let hasTarget = least > 0 || most.isFinite
    let verdict = !hasTarget ? "" : (least...most).contains(median) ? "reached" : "not reached"
    let target = !hasTarget ? "" : most.isFinite ? "≤ \(most)" : "≥ \(least)"
    print("| \(name) | \(String(format: "%.2f", median)) \(unit) (\(spread)) | \(target) | \(verdict) |")
}
