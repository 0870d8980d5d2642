import Coffer
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A store that `coffer serve` has open is rotated through it, and at random times one of the two is killed, or the one that asks
/// interrupted. COFFER_KILL_SECONDS says for how long, 10 unless it does.
@Suite("A rotation through another process, of which one is killed", .serialized)
struct StoresInUseKillTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let time = Duration.seconds(Int(environment["COFFER_KILL_SECONDS"] ?? "") ?? 10)
    private static let seed = UInt64(environment["COFFER_KILL_SEED"] ?? "") ?? .random(in: 0 ... .max)

    @Test(
        "A killed rotation through another process leaves a store that one of the keys opens, and true receipts",
        .timeLimit(.minutes(30)))
    func killed() throws {
        let use = try StoresInUse()
        // Most of the time is the change itself then.
        try use.fill("people", 10_000)
        var numbers = SeededNumbers(seed: Self.seed)
        var names = ["old", "new"]
        var (rounds, found) = (0, [String: Int]())
        var longest = Duration.milliseconds(1)
        let end = ContinuousClock.now + Self.time
        while ContinuousClock.now < end || rounds < 8 {
            // Of the first the time is taken.
            let victim = rounds < 2 ? "nobody" : ["server", "tool", "interrupt"].randomElement(using: &numbers) ?? ""
            let pause = UInt64.random(in: 0...UInt64(longest / .microseconds(1)), using: &numbers)
            let (outcome, took) = try round(use, names, victim, UInt32(pause))
            if rounds < 2 { longest = max(longest, took) }
            let endings: [Int32] =
                switch victim {
                case "tool": [0, 128 + SIGKILL]
                case "interrupt": [0, 130, 128 + SIGINT]
                // It rotates the store itself, once the other has gone.
                default: [0]
                }
            #expect(endings.contains(outcome.status), "\(victim): \(outcome.status) \(outcome.errors)")
            let isChanged = try use.opens("people", names[1])
            #expect(try use.opens("people", names[0]) != isChanged)
            #expect(outcome.status != 0 || isChanged)
            #expect(outcome.status != 130 || !isChanged || outcome.output.contains("rotated"))
            let check = try use.run(["check", "stores/people.coffer", "--key", "raw+file:\(names[isChanged ? 1 : 0])"])
            #expect(check.status == 0, "\(check.output)")
            #expect(
                try use.work.contents(of: "stores/people.coffer").keys.count { $0.hasPrefix("g") && !$0.contains("/") }
                    == 1)
            if !isChanged || outcome.status != 0 {
                // What the receipts don't say yet they say after this.
                let arguments = rotate(names) + (try hasBegun(use) ? ["--resume"] : [])
                let rest = try use.run(arguments)
                #expect(rest.status == 0, "\(victim) \(rest.errors)")
                #expect(try use.opens("people", names[1]))
            }
            #expect(try [0, 3].contains(use.run(["receipts", "verify", "receipts"]).status))
            found["\(victim): \(isChanged ? "new" : "old") key, \(outcome.status)", default: 0] += 1
            rounds += 1
            names.swapAt(0, 1)
        }
        print("rotations through another process with seed \(Self.seed), \(longest) each: \(rounds) rounds, \(found)")
    }

    private func rotate(_ names: [String]) -> [String] {
        [
            "rotate", "stores", "--key", "raw+file:\(names[0])", "--new-key", "raw+file:\(names[1])", "--receipts",
            "receipts",
        ]
    }

    /// Whether the last rotation in the receipts has not ended: then it is resumed.
    private func hasBegun(_ use: StoresInUse) throws -> Bool {
        let file = use.work.folder.appending(path: "receipts")
        guard let text = try? String(contentsOf: file, encoding: .utf8), let last = text.split(separator: "\n").last
        else { return false }
        let record = (try? JSONSerialization.jsonObject(with: Data(last.utf8))) as? [String: Any]
        return record?["type"] as? String != "end"
    }

    private func round(
        _ use: StoresInUse, _ names: [String], _ victim: String, _ pause: UInt32
    ) throws -> (CofferProcess.Outcome, Duration) {
        var surroundings = use.surroundings
        let output = use.work.folder.appending(path: ".served-\(UUID())").path
        surroundings.outputPath = output
        defer { try? FileManager.default.removeItem(atPath: output) }
        var result: (CofferProcess.Outcome, Duration)?
        let served = try CofferProcess.run(
            ["serve", "stores", "--port", "0", "--key", "raw+file:\(names[0])", "--no-authentication"],
            in: use.work.folder, surroundings, goesOnForEver: true
        ) { server in
            let url = try CofferProcess.firstLine(of: output, by: server) ?? ""
            let opened = try use.work.shell("curl -s --max-time 300 \(url)/people").output
            try #require(opened.contains("doc_count"), "\(opened)")
            let start = ContinuousClock.now
            let outcome = try use.run(rotate(names)) { tool in
                guard victim != "nobody" else { return }
                usleep(pause)
                kill(victim == "server" ? server : tool, victim == "interrupt" ? SIGINT : SIGKILL)
            }
            result = (outcome, .now - start)
        }
        #expect(served.status == (victim == "server" ? 128 + SIGKILL : 0), "\(served.errors)")
        return try #require(result)
    }
}
