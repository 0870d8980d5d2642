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
        try work.fill(source)
        for round in 0...roundCount {
            let inserted = try await work.database("inserted-\(round)")
            let own = try measure { try work.fill(inserted) }
            let target = "pushed-\(round)"
            let push = try await measure {
                var options = ReplicationOptions()
                options.createsTarget = true
                try await work.expectAll(
                    Replication(push: source, to: work.url(target), options: options).run(), "push")
            }
            let copy = try await work.database("pulled-\(round)")
            let pull = try await measure {
                try await work.expectAll(Replication(pull: work.url(target), into: copy).run(), "pull")
            }
            try await compare(copy, source)
            // Not removed before the end: creating files is slow after that, on ext4 without a journal.
            for database in [inserted, copy] { try await database.close() }
            guard round > 0 else { continue }
            pushes.append(own / push)
            pulls.append(own / pull)
        }
        report("push, \(work.size)", pushes, atLeast: 0.6)
        report("pull, \(work.size)", pulls, atLeast: 0.6)
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

func measure(_ body: () throws -> Void) rethrows -> Double { try ContinuousClock().measure(body) / .seconds(1) }

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
    let verdict = (least...most).contains(median) ? "reached" : "not reached"
    let target = most.isFinite ? "≤ \(most)" : "≥ \(least)"
    print("| \(name) | \(String(format: "%.2f", median)) \(unit) (\(spread)) | \(target) | \(verdict) |")
}
