import Foundation
import Testing

@testable import CofferTool

@Suite("How far a rotation of many stores is")
struct RotationProgressTests {
    let work: Workspace

    init() throws {
        work = try Workspace(inMemory: true)
        try work.write(Data(0..<32), to: "old")
        try work.write(Data(32..<64), to: "new")
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "stores"), withIntermediateDirectories: false)
        for name in ["a", "b", "c"] { try work.coffer("create", "stores/\(name).coffer", "--key", "raw+file:old") }
    }

    private func rotate(
        _ arguments: String..., surroundings: CofferProcess.Surroundings = .init()
    ) throws -> CofferProcess.Outcome {
        try CofferProcess.run(
            ["rotate", "stores", "--key", "raw+file:old", "--new-key", "raw+file:new"] + arguments, in: work.folder,
            surroundings)
    }

    private func progress(_ outcome: CofferProcess.Outcome) throws -> [[String: Any]] {
        try outcome.errors.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }.filter { $0["type"] as? String == "progress" }
    }

    @Test("Without a terminal a rotation reports no progress, unless that is asked for")
    func onlyWhenAsked() throws {
        #expect(try rotate().errors.isEmpty)
    }

    @Test("The lines say which stores are under way, and at the end that all are done", arguments: [1, 3])
    func lines(jobs: Int) throws {
        let text = try rotate("--progress", "--jobs", "\(jobs)", "--dry-run")
        let lines = text.errors.split(separator: "\n")
        #expect(lines.first?.hasPrefix("coffer: 0 of 3 stores: stores/") == true)
        #expect(lines.last == "coffer: 3 of 3 stores")
        #expect(text.lines.count == 4)

        let outcome = try rotate("--progress", "--jobs", "\(jobs)", "--json")
        #expect(outcome.status == 0)
        let objects = try progress(outcome)
        let first = try #require(objects.first), last = try #require(objects.last)
        #expect(first["phase"] as? String == "rotation")
        #expect(first["items"] as? Int == 0 && first["totalItems"] as? Int == 3)
        let named = try #require(first["stores"] as? [[String: Any]])
        #expect((named.first?["path"] as? String)?.hasPrefix("stores/") == true)
        #expect(named.first?["bytes"] as? Int == 0)
        #expect(last["items"] as? Int == 3 && (last["stores"] as? [Any])?.isEmpty == true)
        #expect(last["secondsLeft"] == nil)
    }

    @Test("A large store says how much of it is done, and about how long the rest takes, at most once a second")
    func largeStore() throws {
        try work.write(Data(count: 300 << 20), to: "large")
        try work.coffer("put", "stores/b.coffer", "x", "--key", "raw+file:old", input: "{}")
        let attached = try work.coffer("attach", "stores/b.coffer", "x", "file", "large", "--key", "raw+file:old")
        try #require(attached.status == 0)
        let start = ContinuousClock.now
        let outcome = try rotate("--progress", "--json", "--dry-run", "--verify")
        #expect(outcome.status == 0)
        let seconds = Int((ContinuousClock.now - start) / .seconds(1))
        #expect(try progress(outcome).count <= seconds + 3)
        let rotated = try progress(rotate("--progress", "--json"))
        let sizes = rotated.flatMap { ($0["stores"] as? [[String: Any]]) ?? [] }
        #expect(sizes.allSatisfy { ($0["bytes"] as? Int ?? -1) <= ($0["totalBytes"] as? Int ?? 0) })
    }

    @Test("A terminal shows a bar that names the store of a rotation, and what results there are stand above it")
    func terminal() throws {
        let terminal = try FakeTerminal()
        let outcome = try rotate(surroundings: .init(terminal: terminal, showsErrorsOnTerminal: true))
        #expect(outcome.status == 0)
        #expect(outcome.lines.count == 4)
        try terminal.wait(for: "3 of 3 stores\u{1B}[K\r\u{1B}[K")
        #expect(terminal.shown.contains("] 0 of 3 stores: a.coffer"))
    }

    @Test("A line that is longer than the terminal is wide is cut")
    func shortened() {
        #expect(ProgressLine.shortened("abcdef", to: 6) == "abcdef")
        #expect(ProgressLine.shortened("abcdefg", to: 6) == "abcde…")
        #expect(ProgressLine.shortened("ab店铺", to: 6) == "ab店铺")
        #expect(ProgressLine.shortened("ab店铺店", to: 6) == "ab店…")
        #expect(ProgressLine.shortened("", to: 0) == "")
    }

    @Test(
        "Times are said as people say them",
        arguments: [
            (0, "0 s"), (59, "59 s"), (60, "1 min"), (61, "2 min"), (3_600, "1 h 0 min"), (7_500, "2 h 5 min"),
        ])
    func times(seconds: Int, text: String) {
        #expect(RotationMeter.text(seconds: seconds) == text)
    }
}

@Suite("How long the rest of a rotation takes")
struct TimeLeftTests {
    private let start = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

    private func estimate(_ left: TimeLeft, at seconds: Double, limit: Int? = nil) -> Double? {
        left.estimate(at: at(seconds), limit: limit).map { $0 / .seconds(1) }
    }

    /// Does stores one after the other, each of which takes what `seconds` says of its bytes.
    private func doing(
        _ done: [String], of sizes: [(String, Int)], known: Bool = true, jobCount: Int = 1,
        seconds: (Int) -> Double
    ) -> (TimeLeft, Double) {
        let byteCounts = Dictionary(uniqueKeysWithValues: sizes)
        var left = TimeLeft(paths: sizes.map(\.0), byteCounts: known ? byteCounts : [:], jobCount: jobCount)
        var time = 0.0
        for path in done {
            left.update(StoreProgress(path: path), at: at(time))
            time += seconds(byteCounts[path] ?? 0)
            left.finish(path, isChange: true, at: at(time))
        }
        return (left, time)
    }

    @Test("Nothing is estimated before there is something to estimate from")
    func nothing() {
        var left = TimeLeft(paths: ["a", "b"], byteCounts: ["a": 100, "b": 100], jobCount: 1)
        #expect(left.estimate(at: at(0)) == nil)
        left.update(StoreProgress(path: "a"), at: at(0))
        #expect(left.estimate(at: at(9)) == nil)
    }

    @Test("Before the first store is done, it goes by the bytes of those under way")
    func fromBytes() throws {
        var left = TimeLeft(paths: ["a", "b"], byteCounts: ["a": 100, "b": 300], jobCount: 1)
        left.update(StoreProgress(path: "a"), at: at(0))
        left.update(StoreProgress(path: "a", completedByteCount: 50, totalByteCount: 100), at: at(10))
        #expect(try #require(estimate(left, at: 10)) == 70)
    }

    @Test("Stores that cost a base and so much for each byte are told from a few, in any order of sizes")
    func baseAndBytes() throws {
        let sizes = [("a", 10), ("b", 1_000), ("c", 5), ("d", 100_000), ("e", 10)]
        let (left, time) = doing(["a", "b", "c"], of: sizes) { 2 + Double($0) / 100 }
        #expect(abs(try #require(estimate(left, at: time)) - (2 + 1_000 + 2.1)) < 0.01)
    }

    @Test("Stores all of one size, or of unknown sizes, take as long as those before", arguments: [true, false])
    func allAlike(known: Bool) throws {
        let sizes = (0..<10).map { ("\($0)", 500) }
        let (left, time) = doing(["0", "1"], of: sizes, known: known) { _ in 3 }
        #expect(abs(try #require(estimate(left, at: time)) - 24) < 0.01)
        #expect(abs(try #require(estimate(left, at: time, limit: 2)) - 6) < 0.01)
        #expect(try #require(estimate(left, at: time, limit: -1)) == 0)
    }

    @Test("Several at a time share what is left, and the longest of them is waited for")
    func parallel() throws {
        let sizes = (0..<10).map { ("\($0)", 500) }
        let (many, time) = doing(["0", "1"], of: sizes, jobCount: 4) { _ in 3 }
        #expect(abs(try #require(estimate(many, at: time)) - 6) < 0.01)
        var (last, end) = doing((0..<8).map { "\($0)" }, of: sizes, jobCount: 4) { _ in 3 }
        last.update(StoreProgress(path: "8", completedByteCount: 450, totalByteCount: 500), at: at(end))
        last.update(StoreProgress(path: "9", completedByteCount: 100, totalByteCount: 500), at: at(end))
        #expect(abs(try #require(estimate(last, at: end)) - 2.4) < 0.01)
    }

    @Test("Stores that were rotated before, and take no time, don't count once one was rotated")
    func others() throws {
        let sizes = (0..<4).map { ("\($0)", 500) }
        var (left, time) = doing([], of: sizes) { _ in 0 }
        left.update(StoreProgress(path: "0"), at: at(0))
        left.finish("0", isChange: false, at: at(1))
        #expect(abs(try #require(estimate(left, at: 1)) - 3) < 0.01)
        left.update(StoreProgress(path: "1"), at: at(1))
        time = 11
        left.finish("1", isChange: true, at: at(time))
        #expect(abs(try #require(estimate(left, at: time)) - 20) < 0.01)
    }
}
