import CofferSealing
import Synchronization
import Testing

@testable import CofferSync

/// One value is made while the last is being used.
@Suite("Reading ahead of a pull")
struct ReadAheadTests {
    private struct Broken: Error {}

    /// Counts what was made, and by whom it is waited for.
    private actor Source {
        private(set) var count = 0
        private let limit: Int
        private var waiting: [(count: Int, CheckedContinuation<Void, Never>)] = []

        init(limit: Int = .max) { self.limit = limit }

        func next() -> Int? {
            guard count < limit else { return nil }
            count += 1
            for (_, waiter) in waiting.filter({ $0.count <= count }) { waiter.resume() }
            waiting.removeAll { $0.count <= count }
            return count
        }

        func made(_ count: Int) async {
            if self.count < count { await withCheckedContinuation { waiting.append((count, $0)) } }
        }
    }

    @Test("Values that are read ahead come in order, and nothing after the last", .timeLimit(.minutes(30)))
    func order() async throws {
        let source = Source(limit: 3)
        let values = ReadAhead { await source.next() }
        var found: [Int] = []
        while let value = try await values.next() { found.append(value) }
        #expect(found == [1, 2, 3])
        #expect(try await values.next() == nil)
    }

    @Test("The next value is read ahead while the last is used, and no more than that", .timeLimit(.minutes(30)))
    func isAhead() async throws {
        let source = Source()
        let values = ReadAhead { await source.next() }
        #expect(try await values.next() == 1)
        // Nobody asks: this would wait forever.
        await source.made(2)
        #expect(await source.count == 2)
        #expect(try await values.next() == 2)
        await source.made(3)
        await values.end()
        #expect(await source.count == 3)
        #expect(try await values.next() == nil)
    }

    @Test("An error of reading ahead comes after the values before it, once", .timeLimit(.minutes(30)))
    func failure() async throws {
        let source = Source(limit: 2)
        let values = ReadAhead { () throws -> Int? in
            guard let value = await source.next() else { throw Broken() }
            return value
        }
        #expect(try await values.next() == 1)
        #expect(try await values.next() == 2)
        await #expect(throws: Broken.self) { try await values.next() }
        #expect(try await values.next() == nil)
    }

    @Test("Whoever ends the reading ahead waits for what is being made", .timeLimit(.minutes(30)))
    func end() async throws {
        let source = Source()
        let hasEnded = Atomic(false)
        let values = ReadAhead { () throws -> Int? in
            guard let value = await source.next(), value > 1 else { return 1 }
            do {
                try await Task.sleep(for: .seconds(3600))
            } catch {
                // The task is cancelled, but not over yet.
                try? await Task { try await Task.sleep(for: .milliseconds(50)) }.value
                hasEnded.store(true, ordering: .releasing)
            }
            return value
        }
        #expect(try await values.next() == 1)
        await source.made(2)
        await values.end()
        let isOver = hasEnded.load(ordering: .acquiring)
        #expect(isOver)
    }
}
