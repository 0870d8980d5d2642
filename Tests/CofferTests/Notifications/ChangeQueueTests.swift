import CofferRecords
import Testing

@testable import Coffer

@Suite("Commits that wait to be told")
struct ChangeQueueTests {
    private func commit(_ count: Int, before: SequenceNumber, isComplete: Bool = true) -> Commit {
        let change = DatabaseChange(documentID: "a", revisionID: nil, sequence: 1)
        return Commit(
            changes: Array(repeating: change, count: count), isComplete: isComplete, sequenceBefore: before)
    }

    private func counts(_ queue: inout ChangeQueue) -> [Int] {
        var counts: [Int] = []
        while let next = queue.next() {
            if case .missed(let sequence) = next { counts.append(-sequence) } else { counts.append(next.changes.count) }
        }
        return counts
    }

    @Test("Commits that wait to be told are at most 1,024", arguments: [1_023, 1_024, 1_025, 3_000])
    func commits(count: Int) {
        var queue = ChangeQueue()
        for number in 0..<count { queue.append(commit(1, before: SequenceNumber(number + 7))) }
        #expect(counts(&queue) == (count > 1_024 ? [-7] : Array(repeating: 1, count: count)))
        #expect(queue.isEmpty)
    }

    @Test("Commits that wait to be told have at most 100,000 changes", arguments: [99_999, 100_000, 100_001])
    func changes(count: Int) {
        var queue = ChangeQueue()
        queue.append(commit(count - 3, before: 5))
        queue.append(commit(3, before: 6))
        #expect(counts(&queue) == (count > 100_000 ? [-5] : [count - 3, 3]))
        queue.append(commit(count, before: 9))
        #expect(counts(&queue) == (count > 100_000 ? [-9] : [count]))
    }

    @Test("Commits that wait to be told take their place again as others are taken, for ever")
    func turnover() {
        var queue = ChangeQueue()
        for number in 0..<1_024 { queue.append(commit(90, before: SequenceNumber(number))) }
        for number in 1_024..<10_000 {
            #expect(queue.next()?.changes.count == 90)
            queue.append(commit(90, before: SequenceNumber(number)))
        }
        #expect(counts(&queue).count == 1_024)
    }

    @Test("Commits that wait to be told are dropped with one that nobody noted, from the first that waits")
    func incomplete() {
        var queue = ChangeQueue()
        queue.append(commit(1, before: 3))
        queue.append(commit(0, before: 4, isComplete: false))
        queue.append(commit(1, before: 5))
        #expect(counts(&queue) == [-3])
        queue.append(commit(2, before: 6))
        #expect(counts(&queue) == [2])
    }

    @Test(
        "Commits that wait note up to 100,000 changes of one transaction, and take back what is rolled back",
        arguments: [1, 2])
    func pending(extra: Int) {
        var pending = PendingChanges()
        pending.isRecording = true
        func note(_ count: Int) {
            for _ in 0..<count {
                pending.note(DatabaseChange(documentID: "a", revisionID: nil, sequence: 1), documentDelta: 1)
            }
        }
        pending.begin(lastSequence: 1)
        note(99_999)
        pending.begin(lastSequence: 2)
        note(extra)
        pending.rollBack()
        pending.begin(lastSequence: 3)
        note(extra)
        pending.commit()
        pending.commit()
        #expect(pending.documentDelta == 99_999 + extra)
        let commit = pending.takeCommit()
        #expect(commit?.isComplete == (extra == 1))
        #expect(commit?.changes.count == 100_000)
        #expect(commit?.sequenceBefore == 1)
        // The next transaction begins with nothing.
        pending.begin(lastSequence: 4)
        pending.commit()
        #expect(pending.takeCommit() == nil)
        #expect(pending.documentDelta == 0)
    }
}
