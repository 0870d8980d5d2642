import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer

@Suite("Calls in tasks")
struct AsyncTests {
    let stores = TestStores()

    /// Waits without blocking a thread of the pool, so that a test that fails does not keep others from running.
    private func wait(for condition: () -> Bool) async throws {
        #expect(try await eventually(condition), "it took too long")
    }

    /// Calls `body` again where it is busy: on a busy machine the thread of a transaction that is over may take longer to let
    /// go than a call has time to wait.
    private func untilNotBusy(_ body: () async throws -> Void) async throws {
        let end = ContinuousClock.now + longestWait
        while true {
            do {
                return try await body()
            } catch let error as CofferError where error.code == .busy && ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(2))
            }
        }
    }

    @Test("Calls in tasks save, read back and delete as their namesakes do")
    func roundTrip() async throws {
        let database = try await stores.manager.database(named: "db", encryptionKey: TestStores.key)
        let draft = try database.document(withID: "a").newRevision()
        draft["n"] = 1
        let first = try await draft.save()
        draft["n"] = 2
        try await draft.save()
        #expect(try database["a"]?["n"] == 2)
        await #expect(throws: CofferError(.conflict)) { try await first.deleteDocument() }

        let document = MutableDocument(id: "b", ["n": 1])
        try await database.saveDocument(document)
        document["n"] = 2
        try await database.saveDocument(document)
        try await database.deleteDocument(document)
        try await database.document(withID: "a").delete()
        #expect(try database.documentCount == 0)
        #expect(try await stores.manager.existingDatabase(named: "db") === database)
        try await database.delete()
        #expect(try await stores.manager.existingDatabase(named: "db") == nil)
        await #expect(throws: CofferError(.closed)) { try await database.save(json: json(1)) }
    }

    @Test("Calls in tasks by the thousand all get their turn, and none blocks the others' threads")
    func many() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<1_000 {
                group.addTask { _ = try await database.save(json: json(number), withID: "d\(number)") }
            }
            try await group.waitForAll()
        }
        #expect(try database.documentCount == 1_000)
    }

    /// Holds a transaction on a thread of its own until told to end it.
    private func hold(_ database: Database, until mayEnd: Gate) async throws {
        let isHeld = Atomic(false)
        let hold: @Sendable () throws -> Void = {
            try database.inTransaction {
                isHeld.store(true, ordering: .releasing)
                mayEnd.wait()
            }
        }
        Thread { try? hold() }.start()
        #expect(try await eventually { isHeld.load(ordering: .acquiring) })
    }

    @Test("Calls in tasks that wait for a transaction leave the pool's threads to other tasks")
    func poolIsFree() async throws {
        // Other tests may keep the pool from these tasks for as long as they like.
        let database = try stores.open { $0.busyTimeout = longestWait }
        let mayEnd = Gate()
        try await hold(database, until: mayEnd)
        async let saved: Void = withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<64 { group.addTask { _ = try await database.save(json: json(number)) } }
            try await group.waitForAll()
        }
        // More tasks than the pool has threads, each of which would wait for the transaction.
        for _ in 0..<10 { await Task { try? await Task.sleep(for: .milliseconds(1)) }.value }
        #expect(try database.documentCount == 0)
        mayEnd.open()
        try await saved
        #expect(try database.documentCount == 64)
    }

    /// Those behind a long one once waited for its end, however short a time they were given.
    @Test("Calls in tasks that have waited their time get a 503 then, and not when the transaction before them ends")
    func timeout() async throws {
        let database = try stores.open { $0.busyTimeout = .milliseconds(200) }
        let mayEnd = Gate()
        let long = Task { try await database.inTransaction { mayEnd.wait() } }
        try await wait { thrown { try database.document(withID: "x").delete() }?.code == .busy }
        let start = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    await #expect(throws: CofferError(.busy)) { try await database.save(json: json(number)) }
                }
            }
        }
        // And the transaction is still not through.
        #expect(ContinuousClock.now - start >= .milliseconds(200))
        await #expect(throws: CofferError(.busy)) { try await database.close() }
        mayEnd.open()
        #expect(try await long.value == true)
        // Nothing was done for those who left.
        #expect(try database.documentCount == 0)
        try await untilNotBusy { _ = try await database.save(json: json(1)) }
        #expect(try database.documentCount == 1)
        try await untilNotBusy { try await database.close() }
    }

    /// They were all refused once, since going to another thread took longer than no time.
    @Test("Calls in tasks that may not wait at all succeed when nobody is before them")
    func noTimeout() async throws {
        let database = try stores.open { $0.busyTimeout = .zero }
        for number in 0..<20 { try await database.save(json: json(number)) }
        let mayEnd = Gate()
        try await hold(database, until: mayEnd)
        await #expect(throws: CofferError(.busy)) { try await database.save(json: json(0)) }
        mayEnd.open()
        try await wait { thrown { try database.inTransaction {} } == nil }
        try await database.close()
    }

    @Test("Calls in tasks wait however long they were told to", arguments: [Int64.max, 20_000_000_000])
    func patience(seconds: Int64) async throws {
        let database = try stores.open { $0.busyTimeout = .seconds(seconds) }
        let mayEnd = Gate()
        try await hold(database, until: mayEnd)
        async let one = database.save(json: json(1))
        async let two = database.save(json: json(2))
        try await Task.sleep(for: .milliseconds(20))
        mayEnd.open()
        _ = try await (one, two)
        #expect(try database.documentCount == 2)
    }

    @Test(
        "Calls in tasks that open a database wait no longer for another process when they are cancelled",
        .timeLimit(.minutes(5)))
    func cancelledOpening() async throws {
        try await stores.open().close()
        // Another description of the open directory, as another process has it.
        let descriptor = Foundation.open(stores.url().path, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        try #require(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        let opening = Task { [stores] in
            var options = DatabaseOptions()
            options.encryptionKey = TestStores.key
            options.lockTimeout = longestWait
            return try await stores.manager.openDatabase(named: "db", options: options)
        }
        try await Task.sleep(for: .milliseconds(50))
        opening.cancel()
        await #expect(throws: CofferError(.cancelled)) { try await opening.value }
        try #require(flock(descriptor, LOCK_UN) == 0)
        try await stores.manager.database(named: "db", encryptionKey: TestStores.key).close()
    }

    @Test("Calls in tasks that are cancelled before their turn do nothing and say so; in it, they end what they do")
    func cancellation() async throws {
        let database = try stores.open { $0.busyTimeout = longestWait }
        let (isRunning, mayEnd) = (Tally(), Gate())
        let long = Task {
            try await database.inTransaction {
                isRunning.count("yes")
                return mayEnd.wait()
            }
        }
        try await wait { isRunning["yes"] == 1 }
        let waiting = (0..<8).map { number in Task { try await database.save(json: json(number)) } }
        let last = Task { try await database.save(json: json(9), withID: "last") }
        try await Task.sleep(for: .milliseconds(20))
        for task in waiting { task.cancel() }
        long.cancel()
        for task in waiting {
            await #expect(throws: CofferError(.cancelled)) { _ = try await task.value }
        }
        // All that before the transaction they waited for has ended.
        mayEnd.open()
        #expect(try await long.value == true)
        _ = try await last.value
        #expect(try database.documentIDs() == ["last"])

        let early = Task {
            while !Task.isCancelled { await Task.yield() }
            _ = try await database.save(json: json(1), withID: "early")
        }
        early.cancel()
        await #expect(throws: CofferError(.cancelled)) { try await early.value }
        #expect(try database["early"] == nil)
    }

    @Test("Calls in tasks that were cancelled close the database all the same")
    func closingCancelled() async throws {
        let database = try stores.open()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            try await database.close()
        }
        task.cancel()
        try await task.value
        #expect(thrown { try database.documentCount }?.code == .closed)
    }

    @Test("Calls in tasks that close or delete the database do so behind all before them; later ones find it closed")
    func closing() async throws {
        for isDeleting in [false, true] {
            let database = try stores.open()
            let (saved, closed) = (Tally(), Tally())
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<60 {
                    group.addTask {
                        do {
                            if number == 30 {
                                if isDeleting { try await database.delete() } else { try await database.close() }
                            } else {
                                try await database.save(json: json(number))
                                saved.count("saved")
                            }
                        } catch {
                            #expect((error as? CofferError)?.code == .closed)
                            closed.count("closed")
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(saved["saved"] + closed["closed"] == 59)
            let again = try stores.open()
            #expect(try again.documentCount == (isDeleting ? 0 : saved["saved"]))
            try await again.delete()
        }
    }

    @Test(
        "Calls in tasks share a transaction: nested ones, reads and saves run on its thread, and an error undoes all")
    func transaction() async throws {
        struct Stop: Error {}
        let database = try stores.open()
        let count = try await database.inTransaction {
            try database.save(json: json(1), withID: "a")
            _ = try database.inTransaction { try database.save(json: json(2), withID: "b") }
            return try database.documentCount
        }
        #expect(count == 2)
        await #expect(throws: Stop.self) {
            try await database.inTransaction {
                try database.save(json: json(3), withID: "c")
                throw Stop()
            }
        }
        #expect(try database.documentIDs() == ["a", "b"])
    }
}
