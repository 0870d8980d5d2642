import Foundation
import Testing

@testable import Coffer

@Suite("Documents and revisions")
struct DocumentTests {
    let stores = TestStores()
    let database: Database

    init() throws { database = try stores.open() }

    @Test("A draft is saved, read back, changed and saved again")
    func drafts() throws {
        let document = database.document(withID: "Robin")
        #expect(try document.currentRevision == nil)
        #expect(try document.properties == nil)
        #expect(try database["Robin"] == nil)

        let draft = try document.newRevision()
        let name = "Robin"
        draft["name"] = name
        draft.properties["age"] = 31
        draft["nickname"] = .null
        let first = try draft.save()
        #expect(first.revisionID.generation == 1)
        #expect(try document.properties == ["name": "Robin", "age": 31, "nickname": .null])
        let age: Int? = try document.currentRevision?["age"]
        #expect(age == 31)

        draft["age"] = nil
        let second = try draft.save()
        #expect(second.revisionID.generation == 2)
        #expect(try second.parentRevision == first)
        #expect(try second.history == [first, second])
        #expect(try document.properties == ["name": "Robin", "nickname": .null])
        #expect(try document.revision(withID: first.revisionID)?.properties["age"] == 31)
        #expect(second.sequence > first.sequence)
        #expect(try database.lastSequenceNumber == second.sequence)
    }

    @Test("A save on a parent that was replaced is a 409, and changes nothing")
    func conflict() throws {
        let document = database.document(withID: "a")
        let first = try document.newRevision().save()
        let mine = try first.createRevision()
        mine["who"] = "me"
        let yours = try first.createRevision()
        yours["who"] = "you"
        let saved = try mine.save()
        let error = thrown { try yours.save() }
        #expect(error?.code == .conflict)
        #expect(error?.status == 409)
        #expect(try document.currentRevision == saved)
        #expect(try database.lastSequenceNumber == saved.sequence)
        #expect(yours["who"] == "you")
        #expect(thrown { try first.deleteDocument() }?.code == .conflict)
    }

    @Test("A conflict that is allowed makes a branch; the winner is the same wherever the branches come first")
    func branches() throws {
        func winner(_ order: [String]) throws -> String? {
            let document = database.document(withID: UUID().uuidString)
            let root = try document.newRevision().save()
            for who in order {
                let draft = try root.createRevision()
                draft["who"] = .string(who)
                try draft.saveAllowingConflict()
            }
            return try document.currentRevision?["who"]
        }
        // The ids depend on parent and content alone, so the order of arrival must not matter.
        let results = try Set([["x", "y", "z"], ["z", "y", "x"], ["y", "z", "x"]].map { try winner($0) })
        #expect(results.count == 1)
    }

    @Test("A branch can be extended and deleted, and then the other one wins")
    func deleteBranch() throws {
        let document = database.document(withID: "a")
        let root = try document.newRevision().save()
        let left = try root.createRevision()
        left["side"] = "left"
        let right = try root.createRevision()
        right["side"] = "right"
        try left.save()
        try right.saveAllowingConflict()
        try left.save()  // generation 3 wins
        #expect(try document.currentRevision?["side"] == "left")
        try document.currentRevision?.deleteDocument()
        #expect(try document.currentRevision?["side"] == "right")
        #expect(try !document.isDeleted)
        try document.delete()
        #expect(try document.isDeleted)
        #expect(try document.currentRevision == nil)
    }

    @Test("The same edit of the same revision is the same revision, whoever makes it")
    func sameEdit() throws {
        let other = try stores.open("other", key: nil)
        var ids: [RevisionID] = []
        for database in [database, other] {
            let document = database.document(withID: "a")
            let draft = try document.newRevision()
            draft["a"] = 1
            ids.append(try draft.save().revisionID)
        }
        #expect(ids[0] == ids[1])
    }

    @Test("A deleted document is absent, and its id can be used again")
    func deletion() throws {
        let document = database.document(withID: "a")
        try database.save(json: Data(#"{"a":1}"#.utf8), withID: "a")
        #expect(try database.documentCount == 1)
        let tombstone = try document.delete()
        #expect(tombstone.isDeletion && tombstone.revisionID.generation == 2)
        #expect(try tombstone.properties == [:])
        #expect(try document.currentRevision == nil)
        #expect(try document.isDeleted)
        #expect(try document.currentRevisionID == tombstone.revisionID)
        #expect(try database["a"] == nil)
        #expect(try database.documentCount == 0)
        #expect(try database.documentIDs() == [])
        #expect(thrown { try document.delete() }?.code == .documentNotFound)
        #expect(thrown { try database.document(withID: "none").delete() }?.code == .documentNotFound)

        let again = try database.save(json: Data(#"{"a":2}"#.utf8), withID: "a")
        #expect(again.revisionID.generation == 3)
        #expect(try document["a"] == 2)
        #expect(try database.documentCount == 1)
    }

    @Test("A mutable document is saved, brought up to date and saved again")
    func mutable() throws {
        let task = MutableDocument(id: "task-1", ["type": "task"])
        task["done"] = false
        try database.saveDocument(task)
        task["done"] = true
        try database.saveDocument(task)
        #expect(try database["task-1"]?.properties == ["type": "task", "done": true])

        #expect(thrown { try database.saveDocument(MutableDocument(id: "task-1")) }?.code == .conflict)
        let stale = try database.document(withID: "task-1").toMutable()
        task["done"] = nil
        try database.saveDocument(task)
        #expect(thrown { try database.saveDocument(stale) }?.status == 409)
        stale["done"] = "twice"
        try database.saveDocument(stale, concurrencyControl: .lastWriteWins)
        #expect(try database["task-1"]?["done"] == "twice")
        try database.saveDocument(MutableDocument(id: "task-1", ["new": 1]), concurrencyControl: .lastWriteWins)
        #expect(try database["task-1"]?.properties == ["new": 1])

        try database.saveDocument(MutableDocument(id: "task-2"), concurrencyControl: .lastWriteWins)
        let gone = try database.document(withID: "task-2").toMutable()
        try database.deleteDocument(gone)
        #expect(try database["task-2"] == nil)
        #expect(thrown { try database.deleteDocument(MutableDocument(id: "task-2")) }?.code == .documentNotFound)

        let elsewhere = try stores.open("elsewhere")
        #expect(thrown { try elsewhere.saveDocument(task) }?.code == .invalidArgument)
        #expect(MutableDocument().id != MutableDocument().id)
    }

    @Test("JSON goes in and comes out as bytes, in canonical form")
    func json() throws {
        let saved = try database.save(
            json: Data(#" { "b" : 1.0, "a" : [ 9007199254740993, "\u00e9" ] } "#.utf8), withID: "a")
        #expect(try String(decoding: saved.json, as: UTF8.self) == #"{"a":[9007199254740993,"é"],"b":1}"#)
        #expect(try database["a"]?.currentRevision?.json == saved.json)

        let named = try database.save(json: Data(#"{"_id":"named","x":1}"#.utf8))
        #expect(named.document.documentID == "named")
        #expect(try named.properties == ["x": 1])
        let next = try database.save(json: Data(#"{"_id":"named","_rev":"\#(named.revisionID)","x":2}"#.utf8))
        #expect(next.revisionID.generation == 2)
        #expect(thrown { try database.save(json: Data(#"{"_id":"named","x":2}"#.utf8)) }?.code == .conflict)
        #expect(try database.save(json: Data("{}".utf8)).document.documentID.utf8.count >= 23)
    }

    @Test(
        "JSON that a document cannot hold is a 400, and changes nothing",
        arguments: [
            "", "[]", "1", "{", #"{"a":1,"a":2}"#, #"{"a":NaN}"#, #"{"a":"\ud800"}"#, #"{"_x":1}"#, #"{"_id":"other"}"#,
            #"{"_deleted":true}"#, #"{"_attachments":1}"#, #"{"_rev":"x"}"#, #"{"a":18446744073709551616}"#,
            #"{"a":1e999}"#, #"{"a":1}x"#,
        ])
    func badJSON(text: String) throws {
        #expect(thrown { try database.save(json: Data(text.utf8), withID: "a") }?.code == .invalidJSON)
        #expect(try database.lastSequenceNumber == 0)
    }

    @Test("Properties that a document cannot hold are a 400 when they are saved")
    func badProperties() throws {
        for properties in [["_x": 1], ["a": JSONValue(Double.nan)], ["_deleted": true]] as [JSONObject] {
            let draft = try database.document(withID: "a").newRevision()
            draft.properties = properties
            #expect(thrown { try draft.save() }?.code == .invalidJSON)
            #expect(thrown { try database.saveDocument(MutableDocument(id: "a", properties)) }?.code == .invalidJSON)
        }
        #expect(try database.lastSequenceNumber == 0)
    }

    @Test("Ids of documents are 1 to 900 bytes that do not start with an underscore")
    func ids() throws {
        for id in ["", "_x", "_", "_local/x", String(repeating: "a", count: 901)] {
            #expect(thrown { try database.document(withID: id).newRevision().save() }?.code == .invalidDocumentID)
            #expect(thrown { _ = try database.document(withID: id).currentRevision }?.status == 400)
        }
        for id in ["a", String(repeating: "a", count: 900), "a/b c", "é", "_design/x", "a\0b"] {
            try database.document(withID: id).newRevision().save()
            #expect(try database[id] != nil)
        }
    }

    @Test("Ids and keys of documents that differ only in composition are two")
    func composition() throws {
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        try database.save(json: Data(#"{"n":1}"#.utf8), withID: composed)
        try database.save(json: Data(#"{"n":2}"#.utf8), withID: decomposed)
        #expect(try database[composed]?["n"] == 1)
        #expect(try database[decomposed]?["n"] == 2)
        try database.save(json: Data("{\"\(composed)\":1,\"\(decomposed)\":2}".utf8), withID: "keys")
        #expect(try database["keys"]?.properties?.count == 2)
        #expect(try database["keys"]?[decomposed] == 2)
    }

    @Test(
        "Integers in documents keep every digit",
        arguments: [Int64.min, -(1 << 53) - 1, 0, (1 << 53) + 1, Int64.max] as [Int64])
    func integers(number: Int64) throws {
        let draft = try database.document(withID: "a").newRevision()
        draft["n"] = number
        draft["u"] = UInt64.max
        try draft.save()
        let properties = try #require(try database.document(withID: "a").properties)
        let n: Int64? = properties["n"]
        let u: UInt64? = properties["u"]
        #expect(n == number)
        #expect(u == .max)
    }

    @Test(
        "Bodies of every length around the limits of a page come back",
        arguments: [0, 2047, 2048, 2049, 3900, 4100, 8200, 200_000])
    func lengths(count: Int) throws {
        let text = String(repeating: "x", count: count)
        try database.save(json: Data(#"{"t":"\#(text)"}"#.utf8), withID: "a")
        try database.close()
        let again = try stores.open()
        #expect(try again["a"]?["t"] == .string(text))
    }

    @Test("Ids of documents are listed in the order of their bytes, in pieces if asked")
    func listing() throws {
        for id in ["b", "a", "é", "Z", "c"] { try database.save(json: Data("{}".utf8), withID: id) }
        #expect(try database.documentIDs() == ["Z", "a", "b", "c", "é"])
        #expect(try database.documentIDs(after: "a", limit: 2) == ["b", "c"])
        #expect(try database.documentIDs(limit: 0) == [])
        #expect(try database.documentCount == 5)
    }
}
