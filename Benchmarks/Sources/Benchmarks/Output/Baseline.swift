internal import Foundation

/// A figure that can become worse.
struct Figure {
    let name: String
    let value: Double
    let target: Target
    /// Whether it says the same on any machine: growth depends on caches, processors and the disk.
    let isRatio: Bool
    let isMeaningful: Bool
}

extension Findings {
    var figures: [Figure] {
        rows.map { row in
            Figure(
                name: row.name, value: row.value, target: row.target, isRatio: row.unit.isRatio,
                isMeaningful: row.verdict != .notMeaningful)
        }
            + series.map { series in
                Figure(
                    name: "growth: \(series.name)", value: series.growth, target: series.target, isRatio: false,
                    isMeaningful: true)
            }
    }
}

/// What the figures were when all was well: names and values.
struct Baseline: Codable {
    private let isQuick: Bool
    private let figures: [String: Double]

    init(_ report: Report) {
        isQuick = report.isQuick
        figures = Dictionary(
            uniqueKeysWithValues: report.findings.figures.map { figure in
                // Three digits are more than any figure here is worth.
                (figure.name, Double(String(format: "%.3g", figure.value)) ?? figure.value)
            })
    }

    init(contentsOf file: URL, isQuick: Bool) throws {
        self = try JSONDecoder().decode(Baseline.self, from: Data(contentsOf: file))
        if self.isQuick != isQuick {
            throw UsageError(text: "\(file.lastPathComponent) is of \(self.isQuick ? "" : "no ")--quick run")
        }
    }

    func write(to file: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try (encoder.encode(self) + Data("\n".utf8)).write(to: file)
    }

    /// How often a figure is measured before it counts as worse: other programs may have been in the way.
    private static let attemptCount = 3

    /// What is less than half as good as it was, and what is missing on either side.
    ///
    /// What depends on the machine must miss its target, too.
    ///
    /// - Parameter measureAgain: all figures of the group that this one belongs to.
    func failures(_ found: [Figure], measureAgain: (String) throws -> [Figure]) rethrows -> [String] {
        let names = Set(found.map(\.name))
        var failures = figures.keys.filter { !names.contains($0) }.sorted().map { "\($0): not measured any more" }
        for first in found {
            guard let before = figures[first.name] else {
                failures.append("\(first.name): not in the baseline; write that anew")
                continue
            }
            var best = first
            for _ in 1..<Self.attemptCount where isWorse(best, than: before) {
                guard let again = try measureAgain(first.name).first(where: { $0.name == first.name }) else { break }
                if again.target.quality(of: again.value, against: best.value) > 1 { best = again }
            }
            if isWorse(best, than: before) {
                failures.append(first.name + String(format: ": %.2f, and it was %.2f", best.value, before))
            }
        }
        return failures
    }

    private func isWorse(_ figure: Figure, than before: Double) -> Bool {
        guard figure.isMeaningful, figure.isRatio || !figure.target.isMet(by: figure.value) else { return false }
        return figure.target.quality(of: figure.value, against: before) < 0.5
    }
}
