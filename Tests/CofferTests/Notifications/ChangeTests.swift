import CofferSealing
import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer

/// What a listener was told, for another thread to look at.
final class Told: Sendable {
    private let all = Lock<[DatabaseChanges]>([])

    func note(_ changes: DatabaseChanges) { all.withLock { $0.append(changes) } }

    var commits: [DatabaseChanges] { all.withLock { $0 } }

    /// The ids of each commit, `-` before a deletion and `!` before a purge; a number where commits were missed.
    var ids: [[String]] { commits.map(\.ids) }

    /// Waits until it was told of `count` commits; false when that never comes.
    func wait(for count: Int) -> Bool {
        eventually { all.withLock { $0.count >= count } }
    }
}

extension DatabaseChanges {
    var ids: [String] {
        switch self {
        case .committed(let changes):
            changes.map { ($0.isPurge ? "!" : $0.isDeletion ? "-" : "") + $0.documentID }
        case .missed(let sequence): ["\(sequence)"]
        }
    }
}

@Suite("Changes of a database")
struct ChangeTests {
    let stores = TestStores()

    /// What the sequence has had to say so far: only after the database was closed.
    private func all(_ changes: DatabaseChangeSequence) async -> [DatabaseChanges] {
        var all: [DatabaseChanges] = []
        for await commit in changes { all.append(commit) }
        return all
    }

    @Test("Changes of a database are told once a commit, in the order of commits and of what was saved in them")
    func order() async throws {
        let database = try stores.open()
        let changes = database.changes
        try await database.save(json: json(1), withID: "a")
        try await database.inTransaction {
            try database.save(json: json(2), withID: "b")
            try database.inTransaction { try database.document(withID: "a").delete() }
            try database.save(json: json(3), withID: "c")
        }
        try await database.inTransaction {}
        try await database.compact()
        try await database.save(json: json(4), withID: "a")
        try await database.close()
        #expect(await all(changes).map(\.ids) == [["a"], ["b", "-a", "c"], ["a"]])
    }

    @Test("Changes of a database say which revision, and whether it deletes, counts and is in conflict")
    func content() async throws {
        let database = try stores.open()
        let changes = database.changes
        let document = database.document(withID: "a")
        func save() throws -> [SavedRevision] {
            let first = try database.save(json: json(1), withID: "a")
            let second = try database.save(json: json(2), withID: "a", replacing: first.revisionID)
            let draft = try first.createRevision()
            draft["n"] = 3
            let branch = try draft.saveAllowingConflict()
            let winner = try document.currentRevision
            let loser = winner == branch ? second : branch
            return [first, second, branch, try loser.deleteDocument()] + [winner].compactMap(\.self)
        }
        let saved = try save()
        try await database.close()
        let told = await all(changes).flatMap(\.changes)
        #expect(told.map(\.revisionID) == saved[..<4].map(\.revisionID))
        #expect(told.map(\.sequence) == [1, 2, 3, 4])
        #expect(told.map(\.isDeletion) == [false, false, false, true])
        #expect(told.map(\.isInConflict) == [false, false, true, false])
        #expect(told.map(\.isCurrentRevision) == [true, true, saved[4] == saved[2], false])
        #expect(told.allSatisfy { $0.documentID == "a" && !$0.isFromPeer && !$0.isPurge })
    }

    @Test("Changes of a database are not told of what was rolled back; an inner transaction takes only its own back")
    func rollback() async throws {
        let database = try stores.open()
        let changes = database.changes
        try rollBack(in: database)
        try await database.close()
        #expect(await all(changes).map(\.ids) == [["a", "b"]])
    }

    private func rollBack(in database: Database) throws {
        try? database.inTransaction {
            try database.save(json: json(1), withID: "x")
            throw CancellationError()
        }
        try database.inTransaction {
            try database.save(json: json(1), withID: "a")
            try? database.inTransaction {
                try database.save(json: json(1), withID: "x")
                try database.inTransaction { try database.save(json: json(1), withID: "y") }
                throw CancellationError()
            }
            try database.inTransaction { try database.save(json: json(1), withID: "b") }
            #expect(thrown { try database.save(json: json(1), withID: "a") }?.code == .conflict)
            try? database.inTransaction {
                try database.save(json: json(1), withID: "z")
                throw CancellationError()
            }
        }
        try? database.inTransaction {
            try database.inTransaction { try database.save(json: json(1), withID: "v") }
            throw CancellationError()
        }
    }

    @Test("Changes of a database are not told before their commit: what is told can be read, by any thread")
    func durable() throws {
        let database = try stores.open()
        let told = Told()
        let missing = Tally()
        let token = database.addChangeListener { changes in
            for change in changes.changes where (try? database[change.documentID]) == nil { missing.count("missing") }
            told.note(changes)
        }
        try onThreads(4) { thread in
            for number in 0..<25 {
                try database.inTransaction {
                    try database.save(json: json(number), withID: "t\(thread) n\(number)")
                    Thread.sleep(forTimeInterval: 0.000_5)
                }
            }
        }
        #expect(told.wait(for: 100))
        token.remove()
        #expect(missing.all == [:])
        let sequences = told.commits.flatMap(\.changes).map(\.sequence)
        #expect(sequences == Array(1...100))
    }

    @Test(
        "Changes of a database that are more than 1,024 commits old are dropped, and the consumer is told so once",
        arguments: [0, 3])
    func lag(taken: Int) async throws {
        let database = try stores.open { $0.durability = .relaxed }
        let changes = database.changes
        var iterator = changes.makeAsyncIterator()
        func save(_ count: Int) async throws {
            for _ in 0..<count { try await database.save(json: json(1)) }
        }
        try await save(taken)
        for number in 0..<taken { #expect(await iterator.next()?.changes.map(\.sequence) == [number + 1]) }
        try await save(1_024)
        #expect(await iterator.next()?.changes.map(\.sequence) == [taken + 1])
        try await save(1)
        #expect(await iterator.next()?.changes.map(\.sequence) == [taken + 2])
        // One more than fits, and then some.
        try await save(2)
        #expect(await iterator.next() == .missed(since: taken + 2))
        try await save(1)
        #expect(await iterator.next()?.changes.map(\.sequence) == [taken + 1_024 + 1 + 2 + 1])
        try await database.close()
        #expect(await iterator.next() == nil)
    }

    @Test("Changes of a database are told of in full after a transaction that was under way as somebody began to watch")
    func lateWatcher() async throws {
        let database = try stores.open()
        try await database.save(json: json(1), withID: "a")
        let told = Told()
        let changes = try await database.inTransaction {
            try database.save(json: json(1), withID: "b")
            database.addChangeListener { told.note($0) }
            let changes = database.changes
            try database.save(json: json(1), withID: "c")
            return changes
        }
        var iterator = changes.makeAsyncIterator()
        #expect(await iterator.next() == .missed(since: 1))
        #expect(told.wait(for: 1))
        try await database.save(json: json(1), withID: "d")
        #expect(told.wait(for: 2))
        #expect(await iterator.next() == told.commits[1])
        #expect(told.ids == [["1"], ["d"]])
    }

    @Test("Changes of a database of one document are told without the others', and its id is compared by bytes")
    func oneDocument() async throws {
        let database = try stores.open()
        let told = Told()
        let changes = database.document(withID: "\u{E9}").changes
        let token = database.document(withID: "\u{E9}").addChangeListener { told.note($0) }
        try await database.save(json: json(1), withID: "e\u{301}")
        try await database.inTransaction {
            try database.save(json: json(2), withID: "\u{E9}")
            try database.save(json: json(2), withID: "a")
        }
        try await database.document(withID: "\u{E9}").delete()
        try await database.save(json: json(1), withID: "b")
        #expect(told.wait(for: 2))
        database.removeChangeListener(token)
        try await database.close()
        let both = await all(changes)
        #expect(both.map { $0.changes.map(\.isDeletion) } == [[false], [true]])
        #expect(told.commits == both)
        #expect(both.allSatisfy { $0.changes.allSatisfy { $0.documentID.utf8.count == 2 } })
    }

    @Test("Changes of a database end with it, after the last that was committed; a sequence does not keep it open")
    func end() async throws {
        var database: Database? = try stores.open()
        let changes = try #require(database?.changes)
        try await database?.save(json: json(1), withID: "a")
        database = nil
        #expect(await all(changes).map(\.ids) == [["a"]])
        let again = try stores.open()
        try await again.close()
        #expect(await all(again.changes) == [])
        let told = Told()
        again.addChangeListener { told.note($0) }.remove()
        #expect(told.commits == [])
    }

    @Test("Changes of a database stop being awaited when the task is cancelled, and a second consumer goes on")
    func cancellation() async throws {
        let database = try stores.open()
        let changes = database.changes
        let task = Task { await all(changes) }
        try await Task.sleep(for: .milliseconds(20))
        task.cancel()
        #expect(await task.value == [])
        try await database.save(json: json(1), withID: "a")
        var iterator = changes.makeAsyncIterator()
        #expect(await iterator.next()?.ids == ["a"])
        try await database.close()
    }

    @Test("Changes of a database reach many who wait at once, each commit all of them")
    func many() async throws {
        let database = try stores.open()
        try await withThrowingTaskGroup(of: [[String]].self) { group in
            for _ in 0..<20 {
                let changes = database.changes
                group.addTask { await all(changes).map(\.ids) }
            }
            for number in 0..<20 { try await database.save(json: json(number), withID: "d\(number)") }
            try await database.close()
            for try await ids in group { #expect(ids == (0..<20).map { ["d\($0)"] }) }
        }
    }

    @Test("Changes of a database of an open for reading never come, and end with it")
    func readOnly() async throws {
        try await stores.open().close()
        let database = try stores.open { $0.readOnly = true }
        let changes = database.changes
        try await database.close()
        #expect(await all(changes) == [])
    }

    @Test(
        "Changes of a database of a commit that failed are not told",
        .enabled(if: SmallDisk.isAvailable, "no small disk can be mounted here"))
    func failedCommit() async throws {
        let disk = try SmallDisk(megabytes: 8)
        let database = try disk.open()
        let changes = database.changes
        try await database.save(json: json(1), withID: "a")
        try disk.fill(leaving: 100_000)
        func saveTooMuch() throws {
            try database.inTransaction {
                for number in 0..<200 { try database.save(json: json(number, byteCount: 4_000), withID: "x\(number)") }
            }
        }
        let error = thrown { try saveTooMuch() }
        #expect(error?.code == .noSpace)
        try disk.empty()
        try await database.save(json: json(1), withID: "b")
        try await database.close()
        #expect(await all(changes).map(\.ids) == [["a"], ["b"]])
    }
}
