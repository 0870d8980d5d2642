internal import Foundation

@main
enum Main {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            if arguments == ["--help"] { return print(Settings.usage) }
            if try Child.runIfAsked(arguments) { return }
            if try CofferWork.runIfAsked(arguments) { return }
            let settings = try Settings(arguments)
            if settings.listsGroups { return print(RowGroup.all.map(\.name).joined(separator: "\n")) }
            try run(settings)
        } catch let error as UsageError {
            stop("\(error.text)\n\(Settings.usage)", status: 64)
        } catch {
            stop("\(error)", status: 1)
        }
    }

    private static func run(_ settings: Settings) throws {
        let groups = (settings.comparesEngines ? [RowGroup.engines] : RowGroup.all).filter { group in
            settings.only.isEmpty || settings.only.contains { group.name.contains($0) }
        }
        if groups.isEmpty { throw UsageError(text: "no group of rows has that in its name: see --list") }
        let baseline = try settings.baselineToCheck.map { try Baseline(contentsOf: $0, isQuick: settings.isQuick) }

        let bench = try Bench(settings)
        var report = Report(machine: bench.machine, isQuick: settings.isQuick)
        report.comparesEngines = settings.comparesEngines
        var groupOfFigure: [String: RowGroup] = [:]
        for group in groups {
            let found = try group.measure(bench)
            for figure in found.figures { groupOfFigure[figure.name] = group }
            report.findings += found
        }
        if !settings.others.isEmpty { report.others = try Others(bench).measure(settings.others) }

        print(report.table)
        try settings.json.map { try report.json.write(to: $0, atomically: true, encoding: .utf8) }
        try settings.markdown.map { try report.markdown.write(to: $0, atomically: true, encoding: .utf8) }
        try settings.chart.map { try Chart(report).svg.write(to: $0, atomically: true, encoding: .utf8) }
        try settings.baselineToWrite.map { try Baseline(report).write(to: $0) }
        let failures = try baseline?.failures(report.findings.figures) { name in
            bench.say("\(name) is less than half as good as it was: once more …")
            return try groupOfFigure[name]?.measure(bench).figures ?? []
        }
        guard let failures, !failures.isEmpty else { return }
        throw Failure("against the baseline:\n" + failures.map { "  \($0)" }.joined(separator: "\n"))
    }

    private static func stop(_ text: String, status: Int32) -> Never {
        FileHandle.standardError.write(Data("bench: error: \(text)\n".utf8))
        exit(status)
    }
}
