import Dispatch
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("Listeners to a database")
struct ListenerTests {
    let stores = TestStores()

    @Test("Listeners are called on the queue they ask for, one call after another, even where it runs many at once")
    func queue() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let told = Told()
        let tally = Tally()
        let queue = DispatchQueue(label: "test", attributes: .concurrent)
        let key = DispatchSpecificKey<Int>()
        queue.setSpecific(key: key, value: 1)
        database.addChangeListener(on: queue) { changes in
            if DispatchQueue.getSpecific(key: key) != 1 { tally.count("another queue") }
            tally.count("begun")
            if tally["begun"] != tally["ended"] + 1 { tally.count("beside each other") }
            told.note(changes)
            Thread.sleep(forTimeInterval: 0.002)
            tally.count("ended")
        }
        // All are there at once, so that they could be told at once.
        queue.suspend()
        for number in 0..<200 { try database.save(json: json(number), withID: "d\(number)") }
        queue.resume()
        #expect(told.wait(for: 200))
        #expect(told.ids == (0..<200).map { ["d\($0)"] })
        #expect(tally["another queue"] == 0 && tally["beside each other"] == 0)
    }

    @Test("Listeners may read and write the database, and are told of what they write")
    func writing() throws {
        let database = try stores.open()
        let told = Told()
        database.addChangeListener { changes in
            told.note(changes)
            guard let change = changes.changes.first, change.documentID.utf8.count < 5 else { return }
            _ = try? database.inTransaction { try database.save(json: json(1), withID: change.documentID + "+") }
        }
        try database.save(json: json(1), withID: "a")
        #expect(told.wait(for: 5))
        #expect(told.ids == [["a"], ["a+"], ["a++"], ["a+++"], ["a++++"]])
        #expect(try database.documentCount == 5)
    }

    @Test("Listeners can't close or delete their database: that is a 400, and it goes on")
    func closingInside() throws {
        let database = try stores.open()
        let told = Told()
        let tally = Tally()
        database.addChangeListener { changes in
            tally.count("close \(thrown { try database.close() }?.status ?? 0)")
            tally.count("delete \(thrown { try database.delete() }?.status ?? 0)")
            told.note(changes)
        }
        try database.save(json: json(1), withID: "a")
        #expect(told.wait(for: 1))
        #expect(tally.all == ["close 400": 1, "delete 400": 1])
        #expect(try database["a"]?["n"] == 1)
        try database.close()
    }

    /// Saves as it ends, and says what came of it.
    private final class Last: Sendable {
        private let database: Database
        private let tally: Tally

        init(_ database: Database, _ tally: Tally) {
            self.database = database
            self.tally = tally
        }

        deinit { tally.count(thrown { try database.save(json: json(1)) }?.code == .closed ? "closed" : "another") }
    }

    /// It ended while the close held the locks, and waited for its own thread until it was busy.
    @Test("What a listener holds ends when its database is closed, and whatever that calls finds it closed")
    func endsWithTheDatabase() throws {
        let database = try stores.open { $0.busyTimeout = .milliseconds(500) }
        let tally = Tally()
        do {
            let last = Last(database, tally)
            database.addChangeListener { _ in withExtendedLifetime(last) {} }
        }
        #expect(tally.all == [:])
        try database.close()
        #expect(tally.all == ["closed": 1])
    }

    @Test(
        "Listeners that are under way are waited for by a close, which does not wait for its own transaction's commits")
    func closing() throws {
        let database = try stores.open()
        let (isCalled, mayEnd) = (Gate(), Gate())
        let tally = Tally()
        database.addChangeListener { changes in
            guard changes.changes.first?.documentID == "a" else { return }
            isCalled.open()
            mayEnd.wait()
            // The close is waiting: it has not begun.
            tally.count("read \((try? database.documentCount) ?? -1)")
            tally.count("saved \((try? database.save(json: json(2), withID: "b")) != nil)")
        }
        try database.save(json: json(1), withID: "a")
        isCalled.wait()
        try onThreads(2) { thread in
            if thread == 0 {
                try database.close()
                tally.count("closed after \(tally.all.count)")
            } else {
                Thread.sleep(forTimeInterval: 0.05)
                mayEnd.open()
            }
        }
        #expect(tally["closed after 2"] == 1)
        #expect(tally["read 1"] == 1 && tally["saved true"] == 1)
    }

    @Test("Listeners that take longer than a close may wait make it a 503, and the database goes on")
    func busy() throws {
        let database = try stores.open { $0.busyTimeout = .milliseconds(50) }
        let (isCalled, mayEnd) = (Gate(), Gate())
        let told = Told()
        database.addChangeListener { changes in
            isCalled.open()
            mayEnd.wait()
            told.note(changes)
        }
        try database.save(json: json(1), withID: "a")
        isCalled.wait()
        #expect(thrown { try database.close() }?.code == .busy)
        #expect(try database["a"]?["n"] == 1)
        mayEnd.open()
        #expect(told.wait(for: 1))
        // The listener was told, and may not have returned yet.
        #expect(try eventually { try isClosed(database) })
    }

    /// Closes the database; false if a listener is still under way.
    private func isClosed(_ database: Database) throws -> Bool {
        do throws(CofferError) {
            try database.close()
            return true
        } catch  where error.code == .busy {
            return false
        }
    }

    @Test("Listeners are told after a close what was committed before, and find the database closed")
    func afterClose() throws {
        let database = try stores.open()
        let told = Told()
        let tally = Tally()
        let queue = DispatchQueue(label: "test")
        queue.suspend()
        database.addChangeListener(on: queue) { changes in
            tally.count("\(thrown { try database.documentCount }?.code.description ?? "open")")
            told.note(changes)
        }
        for id in ["a", "b", "c"] { try database.save(json: json(1), withID: id) }
        try database.close()
        queue.resume()
        #expect(told.wait(for: 3))
        #expect(told.ids == [["a"], ["b"], ["c"]])
        #expect(tally.all == ["closed": 3])
    }

    @Test("Listeners stay until they are removed, whether their token is kept or not, and may remove themselves")
    func removal() throws {
        let database = try stores.open()
        let (kept, dropped, own) = (Told(), Told(), Told())
        let token = database.addChangeListener { kept.note($0) }
        database.addChangeListener { dropped.note($0) }
        let queue = DispatchQueue(label: "test")
        queue.suspend()
        let ownToken = Shared<ChangeListenerToken?>(nil)
        ownToken.value = database.addChangeListener(on: queue) { changes in
            own.note(changes)
            ownToken.value?.remove()
        }
        try database.save(json: json(1), withID: "a")
        #expect(kept.wait(for: 1))
        token.remove()
        token.remove()
        try database.save(json: json(1), withID: "b")
        queue.resume()
        #expect(dropped.wait(for: 2))
        try database.save(json: json(1), withID: "c")
        #expect(dropped.wait(for: 3))
        queue.sync {}
        #expect(kept.ids == [["a"]])
        #expect(own.ids == [["a"]])
        #expect(dropped.ids == [["a"], ["b"], ["c"]])
    }

    @Test("Listeners end what their closure holds when they are removed, or with the database")
    func release() throws {
        final class Canary {}
        weak var removed: Canary?
        weak var left: Canary?
        let database = try stores.open()
        do {
            let (first, second) = (Canary(), Canary())
            (removed, left) = (first, second)
            nonisolated(unsafe) let (held, alsoHeld) = (first, second)
            database.addChangeListener { _ in _ = held }.remove()
            database.addChangeListener { _ in _ = alsoHeld }
        }
        #expect(removed == nil && left != nil)
        try database.close()
        #expect(left == nil)
    }

    @Test("Listeners that lag are told once that they missed something, and go on from there")
    func lag() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let told = Told()
        let queue = DispatchQueue(label: "test")
        queue.suspend()
        database.addChangeListener(on: queue) { told.note($0) }
        for number in 0..<1_100 { try database.save(json: json(number)) }
        queue.resume()
        #expect(told.wait(for: 1))
        try database.save(json: json(1), withID: "a")
        #expect(told.wait(for: 2))
        #expect(told.ids == [["0"], ["a"]])
    }
}
