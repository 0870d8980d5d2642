import Foundation

/// What replication costs on this machine, as ratios in one run: `scripts/bench --sync`, with `--quick` smaller, with
/// `--rates`, `--latency` or `--memory` only a part.
@main
enum SyncBenchmarks {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if try await Memory.runAsChild(arguments) { return }
        let isQuick = arguments.contains("--quick")
        let directory = FileManager.default.temporaryDirectory.appending(path: "coffer-sync-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        print("| work | measured | target | |\n|---|---|---|---|")
        let parts = ["--rates", "--latency", "--memory"].filter(arguments.contains)
        let isMeant: (String) -> Bool = { parts.isEmpty || parts.contains($0) }
        if isMeant("--rates") {
            for attachmentCount in [0, isQuick ? 200 : 1_000] {
                let work = try await Work(
                    directory: directory.appending(path: "rates-\(attachmentCount)"),
                    documentCount: isQuick ? 2_000 : 10_000, attachmentCount: attachmentCount, serves: true)
                try await Rates(work: work, roundCount: isQuick ? 3 : 5).run()
            }
        }
        if isMeant("--latency") {
            for (count, attachmentCount, byteCount) in [(10_000, 0, 10_000), (300, 300, 10_000), (300, 300, 40_000)] {
                let work = try await Work(
                    directory: directory.appending(path: "latency-\(count)-\(byteCount)"), documentCount: count,
                    attachmentCount: attachmentCount, attachmentByteCount: byteCount, serves: true)
                try await Latency(work: work, roundCount: isQuick ? 1 : 3).run()
            }
        }
        if isMeant("--memory") {
            try Memory(directory: directory, byteCount: isQuick ? 64 << 20 : 1 << 30).run()
        }
    }
}
