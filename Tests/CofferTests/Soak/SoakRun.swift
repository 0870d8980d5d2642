import CofferSealing
import Foundation
import Synchronization

@testable import Coffer
import TestSupport

/// What all actors of one seed share: when it ends, what was done, who is at what, and what went wrong.
final class SoakRun: Sendable {
    let seed: UInt64
    let end: ContinuousClock.Instant
    let done = Tally()
    private let failures = Lock<[String]>([])
    private let isStopped = Atomic(false)

    /// What each actor is at, and since when, in case one of them never gets on.
    private let board = Lock<[String: (what: String, since: ContinuousClock.Instant)]>([:])

    init(seed: UInt64, time: Duration) {
        self.seed = seed
        end = .now + time
    }

    /// Whether everybody stops: time is over, or something went wrong.
    var isOver: Bool { isStopped.load(ordering: .relaxed) || ContinuousClock.now >= end }

    func fail(_ what: String) {
        isStopped.store(true, ordering: .relaxed)
        let line = "COFFER_SEED=\(seed): \(what)"
        failures.withLock { $0.append(line) }
        Self.say(line)
    }

    var failure: String? { failures.withLock { $0.isEmpty ? nil : $0.joined(separator: "\n") } }

    /// Notes what an actor begins; nil when it is through.
    func note(_ actor: String, _ what: String?) {
        board.withLock { $0[actor] = what.map { ($0, .now) } }
    }

    /// Watches from a thread of its own until everybody has stopped. Whoever waits for ever ends the process, and all say
    /// what they were at: nothing else would end it.
    func watch(until isFinished: Shared<Bool>) {
        Thread { [self] in
            while !isFinished.value {
                Thread.sleep(forTimeInterval: 1)
                let now = ContinuousClock.now
                let board = board.withLock { $0 }
                guard board.values.contains(where: { now - $0.since > longestWait }) else { continue }
                let lines = board.map { "  \($0.key): \($0.value.what) for \(now - $0.value.since)" }.sorted()
                fatalError("COFFER_SEED=\(seed): somebody does not get on\n\(lines.joined(separator: "\n"))")
            }
        }.start()
    }

    /// One line about everything that was done.
    var summary: String {
        let counts = done.all.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        return "soak with seed \(seed): \(counts.joined(separator: ", "))"
    }

    /// Prints a line that is seen even if the process is stopped right after it.
    static func say(_ line: String) {
        print(line)
        fflush(nil)
    }
}
