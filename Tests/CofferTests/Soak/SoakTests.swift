import Foundation
import Testing

@testable import Coffer

/// Several threads and tasks do everything that the library can to several stores at once, which are opened and closed all
/// the time, with all that happens automatically happening as often as it can. What an actor chooses follows from the seed
/// alone; how the actors meet does not.
///
/// `COFFER_SOAK_SECONDS` says how long, 60 seconds unless said; `COFFER_SEED` has only that one seed. A failure names its
/// seed.
@Suite("Soak", .serialized)
struct SoakTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let seconds = environment["COFFER_SOAK_SECONDS"].flatMap(Int.init) ?? 60

    /// Each gets an equal part of the time, of 20 seconds or a little more.
    static let seeds: [UInt64] =
        environment["COFFER_SEED"].flatMap(UInt64.init).map { [$0] } ?? Array(1...UInt64(max(1, seconds / 20)))

    @Test(
        "Stores stay sound and hold exactly what was acknowledged, whatever threads and tasks do to them at once",
        arguments: seeds)
    func everythingAtOnce(seed: UInt64) async {
        let run = SoakRun(seed: seed, time: .seconds(Self.seconds) / Self.seeds.count)
        SoakRun.say("soak with seed \(seed) begins")
        // On threads of their own: the pool's are for the actors that are tasks.
        await withCheckedContinuation { continuation in
            Thread {
                let isFinished = Shared(false)
                run.watch(until: isFinished)
                Self.soak(run)
                isFinished.value = true
                continuation.resume()
            }.start()
        }
        SoakRun.say(run.summary)
        #expect(run.failure == nil)
        #expect(run.done["openings"] > 0)
        #expect(run.done["verified"] >= SoakStore.Kind.allCases.count || run.failure != nil)
    }

    private static func soak(_ run: SoakRun) {
        let stores = TestStores()
        let body = {
            do {
                try onThreads(SoakStore.Kind.allCases.count) { number in
                    SoakStore(SoakStore.Kind.allCases[number], number, stores, run).live()
                }
            } catch {
                run.fail("\(error)")
            }
        }
        // Some races are lost where threads are interrupted, others where much is done.
        if run.seed % 2 == 1 { withBusyProcessors(body) } else { body() }
    }
}
