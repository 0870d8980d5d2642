import Foundation
import Testing

@testable import Coffer

/// `_id`, `_rev` and `_deleted` among properties once were dropped without a word, where they did not say what was refused.
@Suite("Names of Coffer's own among properties")
struct ReservedNameTests {
    let stores = TestStores()
    let database: Database

    init() throws { database = try stores.open() }

    private struct Reserved: Encodable {
        var _id: String?
        var _rev: String?
        var _deleted: Bool?
        var n = 1
    }

    /// Tries to save properties in each way that takes them from an app.
    private func refusals(_ properties: JSONObject, _ value: Reserved) -> [CofferError.Code?] {
        let document = database.document(withID: "a")
        return [
            thrown {
                let draft = try document.newRevision()
                for (key, value) in properties { draft[key] = value }
                try draft.save()
            }?.code,
            thrown {
                let mutable = try document.toMutable()
                for (key, value) in properties { mutable[key] = value }
                try database.saveDocument(mutable)
            }?.code,
            thrown {
                let current = try document.currentRevision?.revisionID
                let json = try JSONValue.object(properties).canonicalJSON()
                let isStated = properties["_rev"] != nil
                try database.save(json: Data(json), withID: "a", replacing: isStated ? nil : current)
            }?.code,
            thrown {
                let current = try document.currentRevision?.revisionID
                try database.save(value, withID: "a", replacing: value._rev != nil ? nil : current)
            }?.code,
        ]
    }

    @Test("Reserved names among properties say what CouchDB means by them, or are refused, whichever way they come")
    func allWays() throws {
        let first = try database.save(json: Data(#"{"n":0}"#.utf8), withID: "a")
        let stale = first.revisionID.description
        try database.save(json: Data(#"{"n":1}"#.utf8), withID: "a", replacing: first.revisionID)
        let sequence = try database.lastSequenceNumber
        let deleted = (0..<4).map { _ in CofferError.Code.invalidJSON as CofferError.Code? }
        #expect(refusals(["_deleted": false], Reserved(_deleted: false)) == deleted)
        #expect(refusals(["_deleted": true], Reserved(_deleted: true)) == deleted)
        #expect(refusals(["_id": "b"], Reserved(_id: "b")) == deleted)
        #expect(refusals(["_rev": "x"], Reserved(_rev: "x")) == deleted)
        let replaced = deleted.map { _ in CofferError.Code.conflict as CofferError.Code? }
        #expect(refusals(["_rev": .string(stale)], Reserved(_rev: stale)) == replaced)
        #expect(refusals(["_rev": "9-f"], Reserved(_rev: "9-f")) == replaced)
        #expect(thrown { try database.saveLocalDocument(["_deleted": false], withID: "a") }?.code == .invalidJSON)
        #expect(try database.lastSequenceNumber == sequence)

        let current = try #require(try database["a"]?.currentRevision?.revisionID.description)
        let draft = try database.document(withID: "a").newRevision()
        draft.properties = ["_id": "a", "_rev": .string(current), "n": 2]
        let saved = try draft.save()
        #expect(try saved.properties == ["n": 2])
        #expect(draft["_rev"] == .string(saved.revisionID.description), "it is brought up to date with the draft")
        draft["n"] = 3
        #expect(try draft.save().revisionID.generation == 4)
    }

    @Test("Reserved names among properties name the revision to replace where a draft was made from none")
    func madeFromNone() throws {
        let draft = try database.document(withID: "a").newRevision()
        let mutable = MutableDocument(id: "a", ["n": 2])
        let first = try database.save(json: Data(#"{"n":1}"#.utf8), withID: "a")
        #expect(thrown { try draft.save() }?.code == .conflict)
        mutable["_rev"] = .string(first.revisionID.description)
        let second = try database.saveDocument(mutable)
        #expect(try second.parentRevision == first)
        draft["_rev"] = .string(first.revisionID.description)
        #expect(thrown { try draft.save() }?.code == .conflict, "it was replaced")
        draft["_rev"] = .string(second.revisionID.description)
        #expect(try draft.save().parentRevision == second)
        let missing = MutableDocument(id: "b", ["_rev": "1-a"])
        #expect(thrown { try database.saveDocument(missing) }?.code == .documentNotFound)
    }

    @Test("Reserved names among properties are what they were when the transaction of their save is rolled back")
    func rolledBack() throws {
        struct Stop: Error {}
        let first = try database.save(json: Data(#"{"n":1}"#.utf8), withID: "a")
        let stated = JSONValue.string(first.revisionID.description)
        let draft = try first.createRevision()
        draft["_rev"] = stated
        let mutable = try database.document(withID: "a").toMutable()
        mutable["_rev"] = stated
        for _ in 0..<2 {
            #expect(throws: Stop.self) {
                try database.inTransaction {
                    try draft.save()
                    throw Stop()
                }
            }
            #expect(draft["_rev"] == stated)
            #expect(throws: Stop.self) {
                try database.inTransaction {
                    try database.deleteDocument(mutable)
                    #expect(mutable["_rev"] == nil)
                    throw Stop()
                }
            }
            #expect(mutable["_rev"] == stated)
        }
        #expect(try draft.save().parentRevision == first)
        #expect(thrown { try database.deleteDocument(mutable) }?.code == .conflict)
        mutable["_rev"] = "9-f"
        #expect(thrown { try database.saveDocument(mutable, concurrencyControl: .lastWriteWins) }?.code == .conflict)
        mutable["_rev"] = stated
        #expect(try database.saveDocument(mutable, concurrencyControl: .lastWriteWins).revisionID.generation == 3)
    }
}
