import TestSupport
import Testing

@testable import CofferSync

/// What requests hold of a listener's memory, and who waits for whom.
@Suite("The memory of a listener's requests") struct MemoryBudgetTests {
    @Test("Free memory of the budget is given at once, and comes back with the last who holds the part")
    func free() async throws {
        let budget = MemoryBudget(byteLimit: 100)
        var part: MemoryPart? = budget.part()
        try await part?.grow(to: 60)
        try await part?.grow(to: 40)
        #expect(budget.usage.now == 60)
        try await part?.grow(to: 100)
        part = nil
        #expect(budget.usage.now == 0 && budget.usage.greatest == 100)
    }

    @Test("A part that could never be had is a 413 at once")
    func never() async throws {
        let budget = MemoryBudget(byteLimit: 100)
        let part = budget.part()
        let error = await #expect(throws: SyncError.self) { try await part.grow(to: 101) }
        #expect(error?.status == 413)
        #expect(budget.usage.greatest == 0)
    }

    @Test("Those who wait go on in the order of their age, a small one not before a large one")
    func order() async throws {
        let budget = MemoryBudget(byteLimit: 100, patience: longestWait)
        var first: MemoryPart? = budget.part()
        let (second, third) = (budget.part(), budget.part())
        try await first?.grow(to: 80)
        let doneCount = Counter()
        let younger = Task {
            try await third.grow(to: 30)
            doneCount.add(1)
        }
        #expect(try await eventually { budget.waitingCount == 1 })
        let older = Task {
            try await second.grow(to: 70)
            doneCount.add(1)
        }
        #expect(try await eventually { budget.waitingCount == 2 })
        // There is room for it, but somebody older waits.
        let fourth = budget.part()
        let last = Task { try await fourth.grow(to: 10) }
        #expect(try await eventually { budget.waitingCount == 3 })
        #expect(doneCount.value == 0)
        first = nil
        _ = try await (older.value, younger.value)
        #expect(budget.usage.greatest <= 100)
        last.cancel()
        _ = try? await last.value
        #expect(budget.waitingCount == 0)
        _ = (first, fourth)
    }

    @Test("Where all requests for memory wait for each other the youngest is refused, and the others come to their end")
    func deadlock() async throws {
        let budget = MemoryBudget(byteLimit: 100, patience: longestWait)
        let statuses = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    // Bodies that come in steps, as they grow.
                    let part = budget.part()
                    do {
                        for byteCount in stride(from: 10, through: 60, by: 10) {
                            try await part.grow(to: byteCount)
                            await Task.yield()
                        }
                        return 200
                    } catch {
                        return (error as? SyncError)?.status ?? 0
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.allSatisfy { [200, 503].contains($0) })
        #expect(statuses.contains(200))
        #expect(budget.usage.now == 0 && budget.usage.greatest <= 100)
    }

    @Test("A request that alone holds memory is refused where it waits behind an older one that holds nothing")
    func behindAnOlderOne() async throws {
        let budget = MemoryBudget(byteLimit: 100, patience: longestWait)
        let older = budget.part()
        var younger: MemoryPart? = budget.part()
        try await younger?.grow(to: 60)
        let waiting = Task { try await older.grow(to: 50) }
        #expect(try await eventually { budget.waitingCount == 1 })
        do {
            try await younger?.grow(to: 80)
            Issue.record("there is no room for it")
        } catch {
            #expect((error as? SyncError)?.status == 503)
        }
        younger = nil
        try await waiting.value
        #expect(budget.usage.now == 50)
    }

    @Test("Memory that a part no longer needs goes to those who wait, and it never grows that way")
    func shrinking() async throws {
        let budget = MemoryBudget(byteLimit: 100, patience: longestWait)
        let (first, second) = (budget.part(), budget.part())
        try await first.grow(to: 80)
        let waiting = Task { try await second.grow(to: 70) }
        #expect(try await eventually { budget.waitingCount == 1 })
        first.shrink(to: 30)
        try await waiting.value
        first.shrink(to: 90)
        #expect(budget.usage.now == 100)
    }

    @Test("Whoever waits too long is a 503, and holds nobody up")
    func patience() async throws {
        let budget = MemoryBudget(byteLimit: 100, patience: .milliseconds(20))
        let (first, second) = (budget.part(), budget.part())
        try await first.grow(to: 100)
        let error = await #expect(throws: SyncError.self) { try await second.grow(to: 1) }
        #expect(error?.status == 503)
        #expect(budget.waitingCount == 0)
        _ = first
    }

    @Test("A task that is cancelled while it waits leaves at once")
    func cancelled() async throws {
        let budget = MemoryBudget(byteLimit: 100, patience: longestWait)
        let (first, second) = (budget.part(), budget.part())
        try await first.grow(to: 100)
        let waiting = Task { try await second.grow(to: 1) }
        #expect(try await eventually { budget.waitingCount == 1 })
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await second.grow(to: 2)
        }
        await #expect(throws: CancellationError.self) { try await late.value }
        _ = first
    }
}
