internal import Foundation

/// One measured row: a figure, what it should be, and where it comes from.
struct Row: Encodable {
    enum Target: Encodable {
        case atLeast(Double)
        case atMost(Double)
    }

    enum Verdict: String, Encodable {
        case met, missed
        /// The condition under which the target is meant doesn't hold on this machine.
        case notMeaningful = "not meaningful here"
    }

    let name: String
    let value: Double
    /// "×": times as fast as by hand. Else a unit of the value.
    let unit: String
    /// The least and the greatest value of a round.
    let spread: [Double]
    let target: Target
    let verdict: Verdict
    /// In seconds, one per round, interleaved.
    var byHandSeconds: [Double] = []
    var ownSeconds: [Double] = []
    /// The ratio of the processor time, the median. On a busy machine it is steadier than the clock's.
    var processorRatio: Double?
    /// What was compared, and how.
    let explanation: String

    init(
        _ name: String, value: Double, unit: String, spread: [Double], target: Target, isMeaningful: Bool = true,
        explanation: String
    ) {
        self.name = name
        self.value = value
        self.unit = unit
        self.spread = spread
        self.target = target
        let isMet =
            switch target {
            case .atLeast(let least): value >= least
            case .atMost(let most): value <= most
            }
        verdict = !isMeaningful ? .notMeaningful : isMet ? .met : .missed
        self.explanation = explanation
    }

    init(
        _ name: String, _ comparison: Comparison, atLeast least: Double, isMeaningful: Bool = true, explanation: String
    ) {
        let ratios = comparison.ratios
        self.init(
            name, value: ratios.median, unit: "×", spread: [ratios.min() ?? 0, ratios.max() ?? 0],
            target: .atLeast(least), isMeaningful: isMeaningful, explanation: explanation)
        byHandSeconds = comparison.byHand.map(\.time.seconds)
        ownSeconds = comparison.own.map(\.time.seconds)
        processorRatio = comparison.processorRatios.median
    }
}

/// All that one run found.
struct Report: Encodable {
    let machine: Machine
    let isQuick: Bool
    var rows: [Row] = []
    let notMeasured = [
        "a cold page cache: everything read was in memory",
        "opening",
        "a quiet disk: a sync waits for what others write to the same file system, and syncfs for all of it",
        "a file system where many files were just removed: ext4 is slow to create files for some minutes then",
    ]

    var json: String {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        }
    }

    var table: String {
        var lines = machine.lines
        if isQuick { lines.append("quick: small sizes, rough figures") }
        lines += ["", Self.line("row", "measured", "of all rounds", "target", "", "by hand", "coffer", "CPU")]
        for row in rows {
            let target =
                switch row.target {
                case .atLeast(let least): "≥ \(text(least))"
                case .atMost(let most): "≤ \(text(most))"
                }
            lines.append(
                Self.line(
                    row.name, "\(text(row.value)) \(row.unit)", row.spread.map(text).joined(separator: " … "), target,
                    row.verdict.rawValue, seconds(row.byHandSeconds), seconds(row.ownSeconds),
                    row.processorRatio.map { "\(text($0)) ×" } ?? ""))
        }
        lines += [
            "",
            "× is the time by hand divided by Coffer's in the same round: the median, and the least and greatest;",
            "CPU the same of processor time, of all threads, which the machine's other work disturbs less.",
        ]
        lines += rows.map { "- \($0.name): \($0.explanation)" }
        lines += ["Not measured:"] + notMeasured.map { "- \($0)" }
        return lines.joined(separator: "\n")
    }

    private static func line(_ cells: String...) -> String {
        let widths = [36, 12, 19, 10, 20, 12, 12, 8]
        return zip(cells, widths).map { cell, width in
            cell + String(repeating: " ", count: max(1, width - cell.count))
        }.joined().trimmingCharacters(in: .whitespaces)
    }

    private func text(_ value: Double) -> String {
        value == value.rounded() || abs(value) >= 1_000
            ? "\(Int(value.rounded()))" : String(format: abs(value) >= 100 ? "%.0f" : "%.2f", value)
    }

    private func seconds(_ rounds: [Double]) -> String {
        rounds.isEmpty ? "" : String(format: "%.1f ms", rounds.median * 1_000)
    }
}
