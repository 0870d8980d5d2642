import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords

/// Those who are told of commits, held in the middle of it while something happens to the store.
@Suite("Listening in the middle of something else")
struct ListenerMeetingTests {
    let stores = TestStores()

    @Test(
        "A listener under way is waited for by who closes and by nobody else, and is told of what comes after",
        arguments: Moment.allCases)
    func listener(moment: Moment) throws {
        let database = try stores.open()
        let stop = Hold()
        let told = Shared<[String]>([])
        database.addChangeListener { changes in
            stop.pause()
            // It reads what is there by then.
            let count = (try? database.documentCount) ?? -1
            told.value += changes.changes.map { "\($0.documentID) of \(count)" }
        }
        try database.save(json: json(1), withID: "a")
        try stop.wait()
        let other = Side { try moment.act(on: database, in: stores) }
        guard Moment.others.contains(moment) else {
            #expect(other.isKept)
            #expect(!database.storage.isClosing)
            try database.save(json: json(2), withID: "b")
            stop.release()
            try other.outcome()
            #expect(told.value.first == "a of 2")
            return try moment.expectSound(stores, holds: ["a": nil, "b": nil])
        }
        try other.outcome()
        try database.save(json: json(2), withID: "b")
        stop.release()
        #expect(eventually { told.value.count == 2 })
        #expect(told.value == ["a of 2", "b of 2"])
        try moment.expectSound(stores, closing: database, holds: ["a": nil, "b": nil])
    }

    @Test("A listener may neither close its database nor change its key, and may make a backup and verify")
    func withinACall() throws {
        let database = try stores.open()
        let codes = Shared<[CofferError.Code?]>([])
        let isDone = Gate()
        database.addChangeListener { [stores] _ in
            codes.value = [Moment.close, .deletion, .keyChange, .backup].map { moment in
                thrown { try moment.act(on: database, in: stores) }?.code
            }
            codes.value.append(thrown { _ = try database.verify() }?.code)
            isDone.open()
        }
        try database.save(json: json(1), withID: "a")
        isDone.wait()
        #expect(codes.value == [.invalidArgument, .invalidArgument, .invalidArgument, nil, nil])
        try Moment.backup.expectSound(stores, closing: database, holds: ["a": nil])
    }

    @Test("A sequence of changes brings all that is committed, whichever writer commits it", arguments: Moment.others)
    func sequence(moment: Moment) async throws {
        let database = try stores.open()
        let changes = database.changes
        try await database.save(json: json(1), withID: "a")
        try await onThreadOfItsOwn { [stores] in try moment.act(on: database, in: stores) }
        // The next transaction begins with another writer.
        if moment == .renewal { database.storage.writer.hasMetDamage = true }
        try await database.save(json: json(2), withID: "b")
        try await database.close()
        var ids: [String] = []
        for await commit in changes { ids += commit.changes.map(\.documentID) }
        #expect(ids == ["a", "b"])
        try moment.expectSound(stores, holds: ["a": nil, "b": nil])
    }

    @Test(
        "A live query that is making its result is waited for, and goes on in what comes after or ends",
        arguments: Moment.allCases)
    func liveQuery(moment: Moment) async throws {
        let database = try stores.open()
        try await database.save(json: json(1), withID: "a")
        let stop = Hold(isArmed: false)
        let view = database.view(named: "v")
        try view.setMap(version: "1") { _, emit in
            stop.pause()
            emit("row")
        }
        let results = Shared<[[String]]>([])
        let end = Shared<CofferError.Code??>(nil)
        let live = view.liveRows()
        Task {
            do {
                for try await result in live { results.value.append(try result.rows.all.map(\.documentID)) }
                end.value = .some(nil)
            } catch {
                end.value = (error as? CofferError)?.code
            }
        }
        #expect(try await eventually { results.value.count == 1 })
        stop.arm()
        try await database.save(json: json(2), withID: "b")
        #expect(try await eventually { stop.hasHeld })
        let other = Side { [stores] in try moment.act(on: database, in: stores) }
        if moment == .backup { try other.outcome() } else { #expect(other.isKept) }
        stop.release()
        try other.outcome()
        let contents: [String: Data?] = ["a": nil, "b": nil]
        guard Moment.others.contains(moment) else {
            // A result whose rows are asked for too late says so.
            #expect(try await eventually { end.value != nil })
            #expect(end.value == .some(nil) || end.value == .some(.closed))
            #expect(results.value.dropFirst().allSatisfy { $0 == ["a", "b"] })
            return try moment.expectSound(stores, holds: contents)
        }
        #expect(try await eventually { results.value.last == ["a", "b"] })
        try await database.document(withID: "b").delete()
        #expect(try await eventually { results.value.last == ["a"] })
        try await database.save(json: json(3), withID: "b2")
        #expect(try await eventually { results.value.last == ["a", "b2"] })
        try await database.close()
        #expect(try await eventually { end.value != nil })
        #expect(end.value == .some(nil))
        try moment.expectSound(stores, holds: ["a": nil, "b2": nil])
    }
}

/// Runs what waits on a thread of its own.
private func onThreadOfItsOwn(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        Thread { continuation.resume(with: Result(catching: body)) }.start()
    }
}
