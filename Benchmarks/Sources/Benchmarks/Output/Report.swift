internal import Foundation

/// All that one run found, and how it is written.
struct Report {
    let machine: Machine
    let isQuick: Bool
    /// Whether the rows are sealed pages beside SQLCipher, and not Coffer beside work by hand.
    var comparesEngines = false
    var findings = Findings()
    /// Empty unless that was asked for.
    var others: [OtherRow] = []

    init(machine: Machine, isQuick: Bool) {
        self.machine = machine
        self.isQuick = isQuick
    }

    static let notMeasured = [
        "a cold page cache: everything read was in memory",
        "opening by a password: that is one derivation more, a quarter of a second, as it should be",
        "replication",
        "a quiet disk: a sync waits for what others write to the same file system, and syncfs for all of it",
        "a file system where many files were just removed: without a journal, ext4 is slow to create files for minutes then",
    ]

    private static let aboutRatios = [
        "× is the time by hand divided by Coffer's in the same round: the median, and the least and greatest;",
        "CPU the same of processor time, of all threads, which the machine's other work disturbs less.",
    ]
    private static let aboutEngines = [
        "× less CPU is SQLCipher's processor time, of all threads, divided by that of sealed pages in the same round:",
        "the median, and the least and greatest. Both through the same calls.",
    ]

    // MARK: JSON

    /// As Benchmarks/README.md describes: what is there keeps its name and its meaning as long as `schema` is the same.
    var json: String {
        get throws {
            struct Whole: Encodable {
                let schema = 1
                let isQuick: Bool
                let machine: Machine
                let rows: [Row]
                let series: [Series]
                let others: [OtherRow]
                let notMeasured = Report.notMeasured
            }
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            let whole = Whole(
                isQuick: isQuick, machine: machine, rows: findings.rows, series: findings.series, others: others)
            return String(decoding: try encoder.encode(whole), as: UTF8.self) + "\n"
        }
    }

    // MARK: Tables

    /// For people, with all that is to be said of the figures.
    var table: String {
        var lines = machine.lines
        if isQuick { lines.append("quick: small sizes, rough figures") }
        for table in tables { lines += ["", table.text] }
        lines += [""] + (comparesEngines ? Self.aboutEngines : Self.aboutRatios)
        lines += findings.rows.map { "- \($0.name): \($0.explanation)" }
        lines += findings.series.map { "- growth, \($0.name): \($0.explanation)" }
        if !others.isEmpty { lines += ["- others: \(Others.explanation)"] }
        lines += ["Not measured:"] + Self.notMeasured.map { "- \($0)" }
        return lines.joined(separator: "\n")
    }

    /// The tables, for docs/SPEED.md.
    var markdown: String {
        let lines = machine.lines + (isQuick ? ["quick: small sizes, rough figures"] : [])
        let parts = [lines.joined(separator: "  \n")] + tables.map(\.markdown)
        return parts.joined(separator: "\n\n") + "\n"
    }

    private var tables: [Table] {
        ([rowTable] + Series.Axis.allCases.map(seriesTable) + [otherTable]).filter { !$0.rows.isEmpty }
    }

    private var rowTable: Table {
        Table(
            head: ["work", "measured", "of all rounds", "in processor time", "target", ""],
            rows: findings.rows.map { row in
                [
                    row.name, "\(row.value.short) \(row.unit.rawValue)",
                    row.spread.map(\.short).joined(separator: " … "),
                    row.processorRatio.map { "\($0.short) ×" } ?? "", row.target.text, row.verdict.rawValue,
                ]
            })
    }

    private func seriesTable(_ axis: Series.Axis) -> Table {
        let all = findings.series.filter { $0.axis == axis }
        let places = Set(all.flatMap { $0.points.map(\.at) }).sorted()
        return Table(
            head: ["growth with \(axis.rawValue)", "unit"] + places.map(\.short) + ["growth", "by hand", "target", ""],
            rows: all.map { series in
                let values = places.map { place in series.points.first { $0.at == place }?.value.short ?? "" }
                return [series.name, series.unit] + values
                    + [
                        "\(series.growth.short) ×", series.byHandGrowth.map { "\($0.short) ×" } ?? "",
                        series.target.text, series.verdict.rawValue,
                    ]
            })
    }

    private var otherTable: Table {
        Table(
            head: ["the same with something else", "with", "takes", "Coffer takes", "Coffer is", "of all rounds"],
            rows: others.map { row in
                [
                    row.work, row.with, "\((row.seconds.median * 1e3).short) ms",
                    "\((row.ownSeconds.median * 1e3).short) ms", "\(row.ratio.short) ×",
                    row.spread.map(\.short).joined(separator: " … "),
                ]
            })
    }
}

extension Target {
    fileprivate var text: String {
        switch self {
        case .atLeast(let least): "≥ \(least.short)"
        case .atMost(let most): "≤ \(most.short)"
        }
    }
}

extension Double {
    /// With about three digits.
    var short: String {
        if self == rounded() || abs(self) >= 1_000 { return "\(Int(rounded()))" }
        return String(format: abs(self) >= 100 ? "%.0f" : abs(self) >= 10 ? "%.1f" : "%.2f", self)
    }
}

extension Int {
    /// 1 k, 1 M, 1 G.
    var short: String {
        for (size, name) in [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")] where self % size == 0 && self > 0 {
            return "\(self / size) \(name)"
        }
        return "\(self)"
    }
}
