import CofferFaults
import Foundation

@testable import Coffer
@testable import CofferVault
import TestSupport

/// Replays what a change did to the disk, cuts the power after each operation, and lets the library open what may be left;
/// then does the same with what that opening did.
struct PowerCutReplay {
    let rehearsed: RehearsedChange
    /// The place in the log of a sync that has no effect, to see whether anything depends on it.
    private(set) var omitted: Int?
    /// How many random outcomes of each cut there are beside those that always are.
    var sampleCount = 3
    /// How many second cuts are tried after each first one.
    var secondCutCount = 1
    var generator = SeededNumbers(seed: 1)

    private(set) var coverage = Coverage()
    private(set) var findings: [String] = []
    /// What left nothing to find, and needn't be checked a second time.
    private var sound: Set<Outcome> = []

    struct Coverage: CustomStringConvertible {
        var cuts = 0, disks = 0, recoveries = 0, secondDisks = 0
        var states: [Int: Int] = [:]

        var description: String {
            let states = states.sorted { $0.key < $1.key }.map(\.value)
            return "\(cuts) cuts left \(disks) different disks, \(recoveries) of them to recover, \(states) in each"
                + " state; \(secondDisks) more by a second cut"
        }
    }

    init(_ rehearsed: RehearsedChange) { self.rehearsed = rehearsed }

    /// The same without the sync that is at this place in the log: what other replays have found sound is so here too.
    func omitting(_ index: Int) -> PowerCutReplay {
        var replay = PowerCutReplay(rehearsed)
        (replay.omitted, replay.sound) = (index, sound)
        return replay
    }

    /// What may be there, and what must be.
    private struct Outcome: Hashable {
        let paths: [String: Data?]
        let acknowledged: Int
    }

    /// - Parameter stopsAtFinding: whether one finding is enough.
    mutating func run(stopsAtFinding: Bool = false) throws {
        var disk = PowerCutDisk(rehearsed.base)
        var acknowledged = 0
        // Before the sync that is left out, all is as it is with it.
        let first = omitted.map { $0 + 1 } ?? 0
        for index in 0...rehearsed.log.count {
            if index > 0 {
                let operation = rehearsed.log[index - 1]
                if case .acknowledged(let number) = operation { acknowledged = number }
                if index - 1 != omitted { disk.apply(operation) }
            }
            guard index >= first else { continue }
            coverage.cuts += 1
            for tree in disk.outcomes(sampleCount: sampleCount, using: &generator) {
                let outcome = Outcome(paths: tree.paths, acknowledged: acknowledged)
                guard !sound.contains(outcome) else { continue }
                let knownCount = findings.count
                try check(outcome, "\(name(of: index))")
                if findings.count == knownCount { sound.insert(outcome) } else if stopsAtFinding { return }
            }
        }
    }

    /// After what the power is cut.
    private func name(of index: Int) -> String {
        guard index > 0 else { return "at the start" }
        return "after operation \(index), \(rehearsed.steps[stepIndex(upTo: index)])"
    }

    private func stepIndex(upTo index: Int) -> Int { max(0, rehearsed.log[..<index].count(where: \.isStep) - 1) }

    /// The syncs that the change makes, each by its place in the log and its step.
    var synchronizations: [(index: Int, step: String)] {
        rehearsed.log.indices.filter { rehearsed.log[$0].isSynchronization }
            .map { ($0, rehearsed.steps[stepIndex(upTo: $0 + 1)]) }
    }

    private mutating func check(_ outcome: Outcome, _ cut: String) throws {
        coverage.disks += 1
        let sandbox = try Sandbox(outcome.paths)
        let recording = RecordingFileSystem()
        let base = try recording.watch(sandbox.path)
        var log: [DiskOperation] = []
        var oracle = StoreOracle(rehearsed: rehearsed)
        oracle.fileSystem = recording
        oracle.usesStore = omitted == nil
        oracle.didOpen = {
            recording.observe()
            log = recording.log
        }
        let verdict = oracle.check(sandbox, acknowledged: outcome.acknowledged)
        findings += verdict.findings.map { "\(cut): \($0)" }
        if let state = verdict.state { coverage.states[state, default: 0] += 1 }
        guard log.contains(where: \.isStep), verdict.findings.isEmpty else { return }
        coverage.recoveries += 1
        if omitted == nil { try checkSecondCuts(of: log, on: base, outcome, verdict.state, cut) }
    }

    /// Cuts the power again while the first opening after it recovers the store.
    private mutating func checkSecondCuts(
        of log: [DiskOperation], on base: DiskTree, _ outcome: Outcome, _ state: Int?, _ cut: String
    ) throws {
        // Every one for the first, some for the others.
        let isThorough = coverage.recoveries == 1
        var seen: Set<[String: Data?]> = []
        for number in 0..<(isThorough ? log.count : secondCutCount) {
            let end = isThorough ? number + 1 : Int.random(in: 1...log.count, using: &generator)
            var disk = PowerCutDisk(base)
            for operation in log[..<end] { disk.apply(operation) }
            var left = disk.outcomes(sampleCount: 1, using: &generator).map(\.paths)
            if !isThorough { left = [left.randomElement(using: &generator) ?? [:]] }
            for paths in left where seen.insert(paths).inserted {
                coverage.secondDisks += 1
                var oracle = StoreOracle(rehearsed: rehearsed)
                oracle.usesStore = false
                let verdict = oracle.check(try Sandbox(paths), acknowledged: outcome.acknowledged)
                let second = "\(cut), and then after operation \(end) of recovery"
                findings += verdict.findings.map { "\(second): \($0)" }
                if verdict.state != state { findings.append("\(second): recovery has changed what the store holds") }
            }
        }
    }
}

extension DiskOperation {
    var isStep: Bool {
        switch self {
        case .databaseFile, .acknowledged: false
        default: true
        }
    }
}
