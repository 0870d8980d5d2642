import Foundation
import Testing

/// `coffer rotate` is ended in the middle at random times, and run again until it is through; then the receipts are compared with
/// the stores. COFFER_KILL_SECONDS says for how long at least, 10 unless it does, COFFER_KILL_INTERRUPTS how many runs are ended at
/// least, and COFFER_KILL_STORES how many stores there are, 8 unless it does.
@Suite("Receipts of runs that are ended", .serialized)
struct ReceiptKillTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let time = Duration.seconds(Int(environment["COFFER_KILL_SECONDS"] ?? "") ?? 10)
    private static let interruptCount = Int(environment["COFFER_KILL_INTERRUPTS"] ?? "") ?? 0
    private static let seed = UInt64(environment["COFFER_KILL_SEED"] ?? "") ?? .random(in: 0 ... .max)

    /// So many interrupts as are asked for come in about three rotations, however long one of them takes.
    private static func longestPause(ofRunsThatTake time: Duration) -> Duration {
        interruptCount == 0 ? time : min(time, .seconds(1) + time * 6 / interruptCount)
    }

    @Test("Receipts of runs that are killed are neither false, nor lost, nor there twice")
    func compared() throws {
        let stores = try ReceiptWorkspace(storeCount: Int(Self.environment["COFFER_KILL_STORES"] ?? "") ?? 8)
        var numbers = SeededNumbers(seed: Self.seed)
        var names = ["old", "new"]
        var (rotations, endedRuns) = (0, [Int32: Int]())
        var longest = Duration.milliseconds(1)
        let end = ContinuousClock.now + Self.time
        while ContinuousClock.now < end || rotations < 3
            || endedRuns.values.reduce(0, +) < Self.interruptCount
        {
            var arguments = ["--keep-going", "--jobs", "\(1 + rotations % 3)", "--json"]
            while true {
                let signals = rotations == 0 ? [0] : [SIGKILL, SIGKILL, SIGINT, SIGTERM]
                let signal = signals.randomElement(using: &numbers) ?? 0
                let microseconds = UInt64(Self.longestPause(ofRunsThatTake: longest) / .microseconds(1))
                let pause = UInt32(UInt64.random(in: 0...microseconds, using: &numbers))
                let start = ContinuousClock.now
                let outcome = try CofferProcess.run(
                    [
                        "rotate", "stores", "--key", "raw+file:\(names[0])", "--new-key", "raw+file:\(names[1])",
                        "--receipts", "receipts",
                    ] + arguments, in: stores.work.folder
                ) { process in
                    guard signal != 0 else { return }
                    usleep(pause)
                    kill(process, signal)
                }
                if rotations == 0 { longest = ContinuousClock.now - start }
                if outcome.status == 0 { break }
                endedRuns[outcome.status, default: 0] += 1
                // A signal that comes before the command watches for it ends it as the system does.
                let endings = [130, 128 + SIGKILL, 128 + SIGINT, 128 + SIGTERM]
                #expect(endings.contains(outcome.status), "\(outcome.errors)")
                #expect(try [0, 3].contains(stores.verify().status))
                // Killed before it wrote anything, it leaves nothing to resume.
                if !arguments.contains("--resume"), try rotationCount(stores) > rotations {
                    arguments.append("--resume")
                }
            }
            rotations += 1
            names.swapAt(0, 1)
            let counts = try stores.rotationCounts
            for name in stores.names {
                // One more with each change of the key, from 1.
                #expect(try stores.generation(of: name) == 1 + rotations, "\(name)")
                #expect(counts[name] == rotations, "\(name)")
                #expect(try stores.opens(name, rotations % 2) && !stores.opens(name, 1 - rotations % 2))
            }
            let verified = try stores.verify()
            #expect(verified.status == 0, "\(verified.errors)")
            #expect(try verified.objects.first?["begun"] as? [String] == [])
        }
        let completedCount = try stores.records.count { $0["completes"] != nil }
        print(
            "receipts compared with seed \(Self.seed): \(rotations) rotations of \(stores.names.count) stores, "
                + "\(endedRuns) runs ended, \(completedCount) receipts completed later")
    }

    /// How many rotations the receipts tell of.
    private func rotationCount(_ stores: ReceiptWorkspace) throws -> Int {
        Set(try stores.records.compactMap { $0["rotation"] as? String }).count
    }
}
