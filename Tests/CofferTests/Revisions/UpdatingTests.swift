import Foundation
import Testing

@testable import Coffer

@Suite("A document that others change too")
struct UpdatingTests {
    private struct Stop: Error {}
    let stores = TestStores()
    let database: Database

    init() throws { database = try stores.open() }

    /// What somebody else does meanwhile.
    private func changeElsewhere(_ properties: JSONObject = ["theirs": true]) throws {
        let draft = try database.document(withID: "a").newRevision()
        for (key, value) in properties { draft[key] = value }
        draft["count"] = .number(JSONNumber(Int64((draft["count"] as Int? ?? 0) + 1)))
        try draft.save()
    }

    @Test("A document that others change too is changed by a draft, again where somebody else was faster")
    func updated() throws {
        try changeElsewhere()
        var attempts = 0
        let saved = try database.update("a") { draft in
            attempts += 1
            if attempts < 4 { try changeElsewhere() }
            draft["mine"] = true
        }
        #expect(attempts == 4)
        #expect(try saved.properties == ["theirs": true, "count": 4, "mine": true])
        #expect(try database.document(withID: "a").conflictingRevisions == [saved])
    }

    @Test("A document that others change too is never changed by who is always overtaken, throws, or is contradictory")
    func refused() throws {
        var attempts = 0
        #expect(thrown { try database.update("a") { _ in attempts += 1 } }?.code == .documentNotFound)
        #expect(attempts == 0)
        try changeElsewhere()
        let error = thrown {
            try database.update("a") { draft in
                attempts += 1
                try changeElsewhere()
                draft["mine"] = true
            }
        }
        #expect(error?.code == .conflict)
        #expect(attempts == 10)
        #expect(throws: Stop.self) { try database.update("a") { _ in throw Stop() } }
        attempts = 0
        let contradiction = thrown {
            try database.update("a") { draft in
                attempts += 1
                draft["_rev"] = "9-f"
            }
        }
        #expect(contradiction?.code == .conflict)
        #expect(attempts == 1)
        #expect(try database["a"]?["mine"] == nil)
        try database.update("a") { $0.isDeletion = true }
        #expect(try database["a"] == nil)
    }

    @Test("A document that others change too is changed by a task as well")
    func updatedByTask() async throws {
        try changeElsewhere()
        let saved = try await database.update("a") { draft in draft["mine"] = true }
        #expect(try saved["mine"] == true)
    }

    /// A document that somebody else has saved since it was read.
    private func overtaken() throws -> MutableDocument {
        try changeElsewhere(["n": 0])
        let document = try database.document(withID: "a").toMutable()
        try changeElsewhere()
        document["n"] = 1
        return document
    }

    @Test("A document that others change too is saved as the later one says: ours, theirs, or what comes of both")
    func resolved() throws {
        let document = try overtaken()
        let ours = try database.saveDocument(document) { mine, theirs in
            #expect(mine === document)
            let count: Int? = try theirs?["count"]
            #expect(count == 2)
            return true
        }
        #expect(try ours.properties == ["n": 1, "count": 1])
        #expect(document.revisionID == ours.revisionID)

        let second = try overtaken()
        let theirs = try database.saveDocument(second) { mine, theirs in
            mine.properties = try theirs?.properties ?? [:]
            return true
        }
        #expect(try theirs["theirs"] == true)

        let third = try overtaken()
        var attempts = 0
        let merged = try database.saveDocument(third) { mine, theirs in
            attempts += 1
            if attempts < 5 { try changeElsewhere() }
            mine["count"] = try theirs?["count"]
            return true
        }
        #expect(attempts == 5)
        #expect(try merged["n"] == 1)
        let counts: [Int?] = [try merged["count"], try merged.parentRevision?["count"]]
        #expect(counts[0] != nil && counts[0] == counts[1])
        #expect(try database.document(withID: "a").conflictingRevisions == [merged])
        var calls = 0
        try database.saveDocument(third) { _, _ in
            calls += 1
            return true
        }
        #expect(calls == 0, "there is no conflict")
    }

    @Test("A document that others change too is not saved where a conflict is left as it is, or never ends")
    func unresolved() throws {
        let document = try overtaken()
        let before = document.revisionID
        #expect(thrown { try database.saveDocument(document) { _, _ in false } }?.code == .conflict)
        #expect(throws: Stop.self) { try database.saveDocument(document) { _, _ in throw Stop() } }
        var attempts = 0
        let endless = thrown {
            try database.saveDocument(document) { _, _ in
                attempts += 1
                try changeElsewhere()
                return true
            }
        }
        #expect(endless?.code == .conflict)
        #expect(attempts == 10)
        #expect(document.revisionID == before)
        #expect(try database["a"]?["n"] == 0)
    }

    @Test("A document that others change too may be deleted or made since, and has the attachments of its parent")
    func deletedAndNew() throws {
        let document = try overtaken()
        try database.document(withID: "a").delete()
        let back = try database.saveDocument(document) { _, theirs in
            #expect(theirs == nil)
            return true
        }
        #expect(try back["n"] == 1)
        let new = MutableDocument(id: "b", ["n": 1])
        let draft = try database.document(withID: "b").newRevision()
        draft.setAttachment(named: "x", contentType: nil, content: Data("x".utf8))
        let first = try draft.save()
        let second = try database.saveDocument(new) { _, theirs in theirs == first }
        #expect(try second.parentRevision == first)
        #expect(try second.attachmentNames == ["x"])
        let missing = MutableDocument(id: "b", ["_rev": "x"])
        #expect(thrown { try database.saveDocument(missing) { _, _ in true } }?.code == .invalidJSON)
    }

    @Test("A document that others change too is saved by a task as well, which is asked where it is")
    func resolvedByTask() async throws {
        let document = try overtaken()
        var wasAsked = false
        let saved = try await database.saveDocument(document) { mine, theirs in
            wasAsked = true
            mine["count"] = try theirs?["count"]
            return true
        }
        #expect(wasAsked)
        #expect(try saved["count"] == 2)
        let other = try overtaken()
        await #expect(throws: CofferError.self) { try await database.saveDocument(other) { _, _ in false } }
    }
}
