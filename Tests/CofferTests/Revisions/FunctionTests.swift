import Foundation
import Testing

@testable import Coffer

@Suite("Validations")
struct ValidationTests {
    let stores = TestStores()

    @Test("Validations refuse a revision with a 403 and their message, and nothing of it is saved")
    func rejection() async throws {
        let database = try stores.open()
        let changes = database.changes
        database.setValidation(named: "title") { revision in
            if revision.isDeletion { return }
            if try revision["title"] == nil { try revision.reject("a task needs a title") }
        }
        let error = thrown { try database.save(json: json(1), withID: "a") }
        #expect(error?.code == .rejected && error?.status == 403)
        #expect(error.map { "\($0)" }?.contains("a task needs a title") == true)
        #expect(error.map { "\($0)" }?.hasSuffix("(403)") == true)
        #expect(try database.documentCount == 0 && database.lastSequenceNumber == 0)

        let draft = try database.document(withID: "a").newRevision()
        draft["title"] = "x"
        draft.setAttachment(named: "file", contentType: nil, content: Data([1]))
        try await draft.save()
        draft["title"] = nil
        await #expect(throws: CofferError(.rejected)) { try await draft.save() }
        draft["title"] = "y"
        try await draft.save()
        try await database.document(withID: "a").delete()
        #expect(try database.lastSequenceNumber == 3)
        // A transaction goes on after a refusal that it catches.
        try await database.inTransaction {
            _ = try? database.save(json: json(1), withID: "b")
            try database.saveDocument(MutableDocument(id: "c", ["title": "z"]))
        }
        try await database.close()
        var told: [[String]] = []
        for await commit in changes { told.append(commit.ids) }
        #expect(told == [["a"], ["a"], ["-a"], ["c"]])
    }

    @Test("Validations see the new revision, the one that it replaces, and what is different")
    func content() throws {
        let database = try stores.open()
        let seen = Shared<[String]>([])
        database.setValidation(named: "see") { revision in
            let keys = try revision.changedKeys.joined(separator: ",")
            let parent = revision.parentRevision.map { "\($0.revisionID.generation)" } ?? "none"
            seen.value.append(
                "\(revision.documentID) \(revision.revisionID.generation)<\(parent) \(keys)"
                    + "\(revision.isDeletion ? " deletes" : "")\(revision.isFromPeer ? " peer" : "")")
        }
        let document = MutableDocument(id: "a", ["x": 1, "y": 2, "\u{E9}": 1])
        let first = try database.saveDocument(document)
        document["y"] = 3
        document["z"] = 1
        document["x"] = nil
        document["\u{E9}"] = nil
        document["e\u{301}"] = 1
        try database.saveDocument(document)
        // The same edit of the same revision: nothing to look at.
        let twin = try first.createRevision()
        twin.properties = document.properties
        #expect(try twin.saveAllowingConflict().sequence == 2)
        // Refused anyway: nothing to look at.
        #expect(thrown { try database.save(json: json(1), withID: "a") }?.code == .conflict)
        try database.document(withID: "a").delete()
        try database.save(json: json(1), withID: "a")
        #expect(
            seen.value == [
                "a 1<none x,y,\u{E9}", "a 2<1 e\u{301},x,y,z,\u{E9}", "a 3<2 e\u{301},y,z deletes", "a 4<3 n,t",
            ])
    }

    @Test("Validations that throw anything else are a 403 with that as its cause, and Coffer's own errors stay")
    func failing() throws {
        struct Failure: Error {}
        let database = try stores.open()
        database.setValidation(named: "b") { _ in throw Failure() }
        let error = thrown { try database.save(json: json(1), withID: "a") }
        #expect(error?.code == .rejected && error?.cause is Failure)
        // In the order of their names.
        database.setValidation(named: "a") { _ in throw CofferError(.documentNotFound) }
        #expect(thrown { try database.save(json: json(1), withID: "a") }?.code == .documentNotFound)
        #expect(database.hasValidation(named: "a"))
        database.setValidation(named: "a", nil)
        database.setValidation(named: "b", nil)
        #expect(!database.hasValidation(named: "a"))
        try database.save(json: json(1), withID: "a")
    }

    @Test("Validations read what the transaction sees, and can't write")
    func reading() throws {
        let database = try stores.open()
        let seen = Shared<[String]>([])
        database.setValidation(named: "look") { revision in
            let other: Int? = try database.document(withID: "other")["n"]
            seen.value.append("\(other ?? -1)")
            for write in [
                { _ = try database.save(json: json(1)) }, { try database.saveLocalDocument([:], withID: "x") },
                { try database.document(withID: "other").setExpirationDate(nil) },
                { try database.inTransaction { _ = try database.save(json: json(1)) } },
            ] as [() throws -> Void] {
                seen.value.append("\(thrown(write)?.status ?? 0)")
            }
        }
        try database.inTransaction {
            try database.save(json: json(5), withID: "other")
            try database.save(json: json(6), withID: "a")
        }
        // A document that is not there yet is a 404 before it is a write.
        #expect(seen.value == ["-1", "400", "400", "404", "400", "5", "400", "400", "400", "400"])
        #expect(try database.documentCount == 2)
    }
}

/// What a function holds may use the database when it is let go of. That once was within the lock of the functions.
@Suite("Functions that are taken away")
struct EndedFunctionTests {
    let stores = TestStores()

    /// Looks at the functions of its database as it ends.
    private final class Last: Sendable {
        private let database: Database
        private let ended: Gate

        init(_ database: Database, _ ended: Gate) {
            self.database = database
            self.ended = ended
        }

        deinit {
            if !database.hasValidation(named: "last"), database.filter(named: "last") == nil { ended.open() }
        }
    }

    @Test(
        "Objects that a validation or filter holds can use its database as it ends", arguments: [true, false],
        [true, false])
    func deinits(isValidation: Bool, isReplaced: Bool) throws {
        let database = try stores.open()
        let (ended, isDone) = (Gate(), Gate())
        do {
            let last = Last(database, ended)
            if isValidation {
                database.setValidation(named: "last") { _ in withExtendedLifetime(last) {} }
            } else {
                database.setFilter(named: "last") { _, _ in withExtendedLifetime(last) { true } }
            }
        }
        Thread {
            if isReplaced {
                if isValidation { database.setValidation(named: "last") { _ in } }
                if !isValidation { database.setFilter(named: "last") { _, _ in true } }
            }
            database.setValidation(named: "last", nil)
            database.setFilter(named: "last", nil)
            isDone.open()
        }.start()
        #expect(isDone.wait())
        if !isReplaced { #expect(ended.wait()) }
        try database.close()
    }
}
