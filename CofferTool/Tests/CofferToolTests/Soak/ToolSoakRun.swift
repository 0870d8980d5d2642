import Dispatch
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// What everybody in one seed of the soak shares: the folder, when it ends, what was done, who is at what, and what went
/// wrong.
final class ToolSoakRun: Sendable {
    let seed: UInt64
    let end: ContinuousClock.Instant
    let work: Workspace

    /// Held by whoever changes the keys of stores, or makes or removes one, so that it is known which keys open which store.
    let ring = Mutex(ToolSoakRing())

    private struct State {
        var counts: [String: Int] = [:]
        var failures: [String] = []
        var isFinished = false
        /// What each actor is at, in case one of them never gets on.
        var board: [String: (what: String, process: pid_t?, since: ContinuousClock.Instant)] = [:]
    }
    private let state = Mutex(State())

    /// The key that opens every encrypted store, whatever others come and go.
    static let mainKey = Data(0..<32)

    private static let keepsFailures = ProcessInfo.processInfo.environment["COFFER_KEEP"] == "1"

    init(seed: UInt64, time: Duration) throws {
        self.seed = seed
        end = .now + time
        work = try Workspace(inMemory: true)
        for name in ["stores", "copies", "scratch", "keys"] {
            try FileManager.default.createDirectory(
                at: work.folder.appending(path: name), withIntermediateDirectories: true)
        }
        try work.write(Self.mainKey, to: "keys/main")
    }

    /// A place for a file that only one actor uses.
    func scratch(_ name: String) -> URL { work.folder.appending(path: "scratch/\(name)") }

    // MARK: Running commands

    /// Runs a command to its end, and notes that in `trail`.
    func coffer(
        _ arguments: [String], by actor: String, _ trail: ToolSoakTrail, input: Data = Data()
    ) throws -> CofferProcess.Outcome {
        let line = arguments.joined(separator: " ")
        note(actor, line)
        defer { note(actor, nil) }
        let outcome = try CofferProcess.run(
            arguments + ["--json"], in: work.folder, .init(input: input),
            keepingFilesIn: work.folder.appending(path: "scratch")
        ) { process in
            note(actor, line, process)
        }
        trail.note("\(actor): \(line) → \(outcome.status)")
        let name = arguments.prefix(["key", "index"].contains(arguments[0]) ? 2 : 1).joined(separator: " ")
        count(outcome.status == ToolSoakStatus.busy ? "busy" : name)
        return outcome
    }

    // MARK: Noting

    func count(_ what: String) { state.withLock { $0.counts[what, default: 0] += 1 } }

    func count(of what: String) -> Int { state.withLock { $0.counts[what] ?? 0 } }

    /// Notes what an actor begins; nil when it is through.
    func note(_ actor: String, _ what: String?, _ process: pid_t? = nil) {
        state.withLock { $0.board[actor] = what.map { ($0, process, .now) } }
    }

    func fail(_ what: String) {
        let line = "COFFER_SEED=\(seed): \(what)"
        state.withLock { $0.failures.append(line) }
        Self.say(line)
    }

    var failure: String? { state.withLock { $0.failures.isEmpty ? nil : $0.failures.joined(separator: "\n") } }

    /// Whether everybody stops: time is over, or something went wrong.
    var isOver: Bool { ContinuousClock.now >= end || failure != nil }

    /// One line about everything that was done.
    var summary: String {
        let counts = state.withLock { $0.counts }.sorted { $0.key < $1.key }
        return "soak of the tool with seed \(seed): \(counts.map { "\($0.key) \($0.value)" }.joined(separator: ", "))"
    }

    /// Prints a line that is seen even if the process is stopped right after it.
    static func say(_ line: String) {
        print(line)
        fflush(nil)
    }

    // MARK: Beginning and ending

    /// Watches from a thread of its own until ``finish()``. A command that hangs ends the process, and all say what they were
    /// at: nothing else would end it.
    func watch() {
        Thread { [self] in
            while !state.withLock({ $0.isFinished }) {
                Thread.sleep(forTimeInterval: 1)
                let board = state.withLock { $0.board }
                let now = ContinuousClock.now
                guard board.values.contains(where: { now - $0.since > longestWait }) else { continue }
                for process in board.values.compactMap(\.process) { kill(process, SIGKILL) }
                let lines = board.map { "  \($0.key): \($0.value.what) for \(now - $0.value.since)" }.sorted()
                fatalError("COFFER_SEED=\(seed): a command does not end\n\(lines.joined(separator: "\n"))")
            }
        }.start()
    }

    /// Ends the watch. The folder goes with the run, unless something failed and it is to be looked at.
    func finish() {
        state.withLock { $0.isFinished = true }
        guard failure != nil, Self.keepsFailures else { return }
        // A workspace that is never released keeps its folder.
        _ = Unmanaged.passRetained(work)
        Self.say("COFFER_SEED=\(seed): the stores are in \(work.folder.path(percentEncoded: false))")
    }
}

/// Keys that come and go beside the one that always opens a store: they are numbered, and each encrypted store has one.
struct ToolSoakRing {
    /// What the next rotation is from. It is run until every store has the following one.
    var number = 0
    /// The key that each encrypted store has, by the store's name.
    var ofStores: [String: Int] = [:]

    /// The source of a key of the ring.
    static func source(_ number: Int, _ run: ToolSoakRun) throws -> String {
        try run.work.write(Data(repeating: UInt8(truncatingIfNeeded: number), count: 32), to: "keys/ring-\(number)")
        return "raw+file:keys/ring-\(number)"
    }
}

/// How the tool ends, as `coffer --help` says it.
enum ToolSoakStatus {
    static let done: Int32 = 0
    static let busy: Int32 = 11
    /// That a signal ended it is this and the signal's number.
    static let signal: Int32 = 128
}

/// The last commands, for when something goes wrong.
final class ToolSoakTrail: Sendable {
    private let lines = Mutex<[String]>([])

    func note(_ line: String) { lines.withLock { $0 = $0.suffix(59) + [line] } }

    var text: String { lines.withLock { $0.joined(separator: "\n    ") } }
}

/// The tool did something else than it promises.
struct ToolSoakMismatch: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// - Throws: a ``ToolSoakMismatch`` unless `condition` holds.
func toolSoakExpect(_ condition: Bool, _ text: @autoclosure () -> String) throws {
    if !condition { throw ToolSoakMismatch(text()) }
}

// MARK: Threads

/// Runs `body` on a thread of its own: processes are waited for in it, and the tests' own threads are few.
func onThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        Thread {
            body()
            continuation.resume()
        }.start()
    }
}

/// Runs `body` on `count` threads of its own at once, numbered from 0, and waits for all.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for number in 0..<count {
        group.enter()
        Thread {
            body(number)
            group.leave()
        }.start()
    }
    group.wait()
}

/// Runs `body` while twice as many threads as there are processors do nothing but burn time: those of the commands are
/// interrupted in the middle then, as on a busy machine.
func withBusyProcessors(_ body: () -> Void) {
    final class Flag: Sendable { let isSet = Atomic(false) }
    let isOver = Flag()
    let group = DispatchGroup()
    for _ in 0..<2 * ProcessInfo.processInfo.activeProcessorCount {
        group.enter()
        Thread {
            var number: UInt64 = 1
            while !isOver.isSet.load(ordering: .relaxed) {
                for _ in 0..<100_000 { number = number &* 6_364_136_223_846_793_005 &+ 1 }
            }
            _ = withExtendedLifetime(number) { number }
            group.leave()
        }.start()
    }
    body()
    isOver.isSet.store(true, ordering: .relaxed)
    group.wait()
}
