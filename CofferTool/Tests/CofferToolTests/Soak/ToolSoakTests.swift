import Foundation
import Testing

/// Many processes of the built tool do everything that it can to several stores, one after another and side by side, half of
/// the time beside threads that burn processor time. What a worker chooses follows from the seed alone; how the processes
/// meet does not.
///
/// `COFFER_SOAK_SECONDS` says how long, 40 seconds unless said; `COFFER_SEED` has only that one seed. A failure names its
/// seed, and with `COFFER_KEEP=1` the stores of a seed that failed stay.
@Suite("Soak of the tool", .serialized)
struct ToolSoakTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let seconds = environment["COFFER_SOAK_SECONDS"].flatMap(Int.init) ?? 40
    private static let isExhaustive = environment["COFFER_EXHAUSTIVE"] == "1"

    /// Each gets an equal part of the time, of 20 seconds or a little more.
    static let seeds: [UInt64] =
        environment["COFFER_SEED"].flatMap(UInt64.init).map { [$0] } ?? Array(1...UInt64(max(1, seconds / 20)))

    @Test(
        "Stores stay sound and hold exactly what commands acknowledged, one after another and side by side",
        arguments: seeds)
    func everything(seed: UInt64) async throws {
        let run = try ToolSoakRun(seed: seed, time: .seconds(Self.seconds) / Self.seeds.count)
        ToolSoakRun.say("soak of the tool with seed \(seed) begins")
        await onThread {
            run.watch()
            // Some races are lost where threads are interrupted, others where much is done.
            if seed % 2 == 1 { withBusyProcessors { Self.soak(run) } } else { Self.soak(run) }
            run.finish()
        }
        ToolSoakRun.say(run.summary)
        #expect(run.failure == nil)
        #expect(run.count(of: "round") >= ToolSoakStore.Kind.allCases.count || run.failure != nil)
        #expect(run.count(of: "comparison") >= ToolSoakStore.Kind.allCases.count || run.failure != nil)
    }

    private static func soak(_ run: ToolSoakRun) {
        onThreads(ToolSoakStore.Kind.allCases.count) { number in
            ToolSoakStore(ToolSoakStore.Kind.allCases[number], number, run).live()
        }
    }

    /// With a compaction due, opening a store used the writer's connection on two threads. On a busy machine half of the
    /// stores that these commands made were damaged, with one process at a time and nobody killed.
    @Test("A store that twelve large attachments follow 4,000 imported documents into stays sound on a busy machine")
    func largeAttachments() async throws {
        let run = try ToolSoakRun(seed: 0, time: .seconds(24 * 3600))
        await onThread {
            run.watch()
            withBusyProcessors {
                do {
                    for round in 0..<(Self.isExhaustive ? 36 : 5) { try Self.fill(round, run) }
                } catch {
                    run.fail("\(error)")
                }
            }
            run.finish()
        }
        #expect(run.failure == nil)
    }

    private static func fill(_ round: Int, _ run: ToolSoakRun) throws {
        let store = ToolSoakStore(.encrypted, round, run)
        func command(_ words: String..., input: Data = Data()) throws {
            let outcome = try store.command([words[0]], Array(words.dropFirst()), by: "test", input: input)
            if outcome == nil { throw ToolSoakMismatch("\(words) found the store in use") }
        }
        try command("create")
        let text = String(repeating: "text ", count: 60)
        let records = (0..<4_000).map { #"{"_id":"d\#($0)","n":\#($0),"t":"\#(text)"}"# }
        let file = run.scratch("records")
        try Data(records.joined(separator: "\n").utf8).write(to: file)
        try command("import", file.path(percentEncoded: false))
        for number in 0..<12 {
            // To documents that are there, since replacing is what makes a compaction due; after the first three it is.
            let content = ToolSoakContent.pool.prefix(8_000_000 - number * 660_000)
            try command("attach", "d\(number)", "file", "-", input: content + Data([UInt8(number)]))
        }
        try store.check()
        try FileManager.default.removeItem(at: store.url)
    }
}
