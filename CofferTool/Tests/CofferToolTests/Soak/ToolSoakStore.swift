import Foundation
import Synchronization

/// One store and its workers. Commands follow each other at it or run side by side for a while; then none of them runs, and
/// the store is checked and compared with what the workers know. Then it goes on.
final class ToolSoakStore: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case encrypted, keyed
        /// Unencrypted at first, then encrypted and decrypted now and again.
        case changing
    }

    let kind: Kind
    let number: Int
    let run: ToolSoakRun
    let workers: [ToolSoakWorker]
    let trail = ToolSoakTrail()

    /// Changed only while no worker of the store runs, and by whoever holds ``ToolSoakRun/ring``: others may rotate keys.
    private let state: Mutex<State>
    private struct State {
        var isEncrypted: Bool
        /// How often the store was made.
        var generation = 0
        var roundCount = 0
    }

    init(_ kind: Kind, _ number: Int, _ run: ToolSoakRun) {
        self.kind = kind
        self.number = number
        self.run = run
        workers = (0..<3).map { ToolSoakWorker($0) }
        state = Mutex(State(isEncrypted: kind != .changing))
    }

    var name: String { "\(kind.rawValue)-\(number)-\(state.withLock { $0.generation })" }
    var path: String { "stores/\(name).coffer" }
    var url: URL { run.work.folder.appending(path: path, directoryHint: .isDirectory) }
    var isEncrypted: Bool { state.withLock { $0.isEncrypted } }

    static let mainKey = "raw+file:keys/main"

    /// The key that a command needs, if any.
    var keyArguments: [String] { isEncrypted ? ["--key", Self.mainKey] : [] }

    // MARK: Commands

    /// Runs a command about the store, which does what it is for, or finds the store in use and does nothing.
    ///
    /// - Parameter refusals: the codes of failures that are right.
    /// - Returns: nil where it was in use.
    func command(
        _ words: [String], _ rest: [String] = [], by actor: String = "keeper", key: [String]? = nil,
        input: Data = Data(), refusals: Set<String> = []
    ) throws -> CofferProcess.Outcome? {
        let actor = "\(kind.rawValue) \(actor)"
        let outcome = try run.coffer(words + [path] + rest + (key ?? keyArguments), by: actor, trail, input: input)
        if outcome.status == ToolSoakStatus.busy { return nil }
        try judge(outcome, actor, words + rest, refusals)
        return outcome
    }

    func judge(
        _ outcome: CofferProcess.Outcome, _ actor: String, _ words: [String], _ refusals: Set<String> = []
    ) throws {
        if outcome.status == ToolSoakStatus.done { return }
        let code = (try? outcome.failure)?["code"] as? String
        if let code, refusals.contains(code) { return }
        let end = outcome.status > ToolSoakStatus.signal ? "signal \(outcome.status - 128)" : "status \(outcome.status)"
        throw ToolSoakMismatch(
            """
            \(actor): \(words.joined(separator: " ")) ended with \(end)
              standard error: \(outcome.errors.prefix(4_000))
              standard output: \(outcome.output.prefix(2_000))
            """)
    }

    /// Runs a command again and again until the store isn't in use: only a rotation of all stores can use it meanwhile.
    @discardableResult
    func insist(
        _ words: [String], _ rest: [String] = [], key: [String]? = nil, input: Data = Data()
    ) throws -> CofferProcess.Outcome {
        let end = ContinuousClock.now + .seconds(120)
        while true {
            if let outcome = try command(words, rest, key: key, input: input) { return outcome }
            try toolSoakExpect(ContinuousClock.now < end, "\(words) found the store in use for two minutes")
            Thread.sleep(forTimeInterval: 0.01)
        }
    }

    // MARK: Living

    func live() {
        var random = SeededNumbers(seed: run.seed, number)
        do {
            try create()
            // At least once, however busy the machine is.
            repeat {
                try round(&random)
                guard run.failure == nil else { break }
                try check()
                let isExact = try compare()
                if random.isOne(in: 3) { try copy(&random, isExact: isExact) }
                if kind == .changing && random.isOne(in: 3) { try changeEncryption() }
                if random.isOne(in: 12) {
                    try remove()
                    try create()
                }
            } while !run.isOver
        } catch {
            fail(error)
        }
    }

    func fail(_ error: any Error) {
        run.fail("\(path): \(error)\n  after\n    \(trail.text)")
    }

    private func create() throws {
        for worker in workers { worker.model = ToolSoakModel() }
        try run.ring.withLock { ring in
            state.withLock {
                $0.generation += 1
                $0.isEncrypted = kind != .changing
            }
            try insist(["create"], kind == .keyed ? ["--keyed-names"] : [], key: isEncrypted ? nil : ["--unencrypted"])
            if isEncrypted { try addKeyOfRing(&ring) }
        }
    }

    private func addKeyOfRing(_ ring: inout ToolSoakRing) throws {
        try insist(["key", "add"], ["--new-key", try ToolSoakRing.source(ring.number, run)])
        ring.ofStores[name] = ring.number
    }

    private func remove() throws {
        try run.ring.withLock { ring in
            ring.ofStores[name] = nil
            try FileManager.default.removeItem(at: url)
        }
    }

    /// Encrypts the store, or decrypts it.
    private func changeEncryption() throws {
        try run.ring.withLock { ring in
            if isEncrypted {
                try insist(["decrypt"], ["--yes-remove-encryption", "--drop-other-keys"])
                state.withLock { $0.isEncrypted = false }
                ring.ofStores[name] = nil
            } else {
                try insist(["encrypt"], ["--new-key", Self.mainKey], key: [])
                state.withLock { $0.isEncrypted = true }
                try addKeyOfRing(&ring)
            }
        }
    }

    // MARK: Rounds

    /// Lets the workers run commands, one after another with a check after each, or all workers at once.
    private func round(_ random: inout SeededNumbers) throws {
        let count = state.withLock { state in
            state.roundCount += 1
            return state.roundCount
        }
        trail.note("round \(count)")
        if random.isOne(in: 2) { try setExpirations(&random) }
        if count % 3 == 0 {
            for _ in 0..<4 + random.below(8) {
                guard let worker = random.pick(workers) else { break }
                try worker.act(self)
                if run.isOver { break }
                try check()
            }
        } else {
            let end = min(run.end, .now + .milliseconds(500 + random.below(1_500)))
            onThreads(workers.count) { [self] number in
                do {
                    repeat { try workers[number].act(self) } while ContinuousClock.now < end && run.failure == nil
                } catch {
                    fail(error)
                }
            }
        }
        run.count("round")
    }
}
