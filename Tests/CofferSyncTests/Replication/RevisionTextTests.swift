import Coffer
import CofferModel
import Foundation
import Testing

@testable import CofferSync

/// Revisions without contents are sent as the text that they are kept as: it must say what the parts would.
@Suite("Revisions that are sent as text") struct RevisionTextTests {
    @Test("A revision's text says what its parts say", arguments: [true, false])
    func sameAsParts(withHistory: Bool) throws {
        let peers = try Peers()
        let database = try peers.database()
        let bodies: [JSONObject] = [
            [:], ["a": 1], ["text": "quotes \" and \\ and \u{1F512}"], ["nested": ["a": [1, 2.5, .null, true]]],
            ["@type": "other"],
        ]
        for (number, body) in bodies.enumerated() {
            let document = database.document(withID: "document \(number) \"\u{E9}\"")
            let draft = try document.newRevision()
            draft.properties = body
            try check(try draft.save(), withHistory)
            draft["again"] = .number(JSONNumber(Int64(number)))
            try check(try draft.save(), withHistory)
            draft.isDeletion = true
            let deletion = try draft.save()
            #expect(deletion.isDeletion)
            try check(deletion, withHistory)
        }
    }

    /// Another database may make of an id whatever it likes, and such a text would end the string that it stands in.
    @Test("An id of another database is escaped", arguments: [true, false])
    func foreignIDs(withHistory: Bool) async throws {
        let peers = try Peers()
        let database = try peers.database()
        let history = ["3-\"c\\", "2-\n", "1-\u{1F512}\""].compactMap { RevisionID($0) }
        try await database.putExistingRevision(["a": 1], withID: "a", history: history)
        try database.write("b", ["b": 2])
        let revision = try #require(try database.document(withID: "a").currentRevision)
        #expect(try revision.history.map(\.revisionID) == history.reversed())
        try check(revision, withHistory)
        let push = try await peers.push(database)
        #expect(push.failures.isEmpty)
        let copy = try peers.database("copy")
        try await peers.pull(copy)
        #expect(try Contents(copy) == Contents(database))
    }

    @Test("A revision that has contents is not sent as text")
    func contents() throws {
        let peers = try Peers()
        let draft = try peers.database().document(withID: "a").newRevision()
        draft.setAttachment(named: "file", contentType: nil, content: Data("content".utf8))
        #expect(try text(of: try draft.save(), withHistory: false) == nil)
    }

    private func text(of revision: SavedRevision, withHistory: Bool) throws -> [UInt8]? {
        let found = try revision.document.database.lendRevisions([(revision.documentID, revision.revisionID)]) {
            OutgoingRevision.text(of: $0, withHistory: withHistory)
        }
        #expect(found.count == 1)
        return try #require(found.first ?? nil)
    }

    private func check(_ revision: SavedRevision, _ withHistory: Bool) throws {
        let history = withHistory ? try revision.history.reversed().map(\.revisionID) : nil
        let text = try #require(try text(of: revision, withHistory: withHistory))
        var expected = try revision.properties
        expected["_id"] = .string(revision.documentID)
        expected["_rev"] = .string(revision.revisionID.description)
        if revision.isDeletion { expected["_deleted"] = true }
        if let history { expected["_revisions"] = OutgoingRevision.revisions(history) }
        #expect(try JSONValue(json: Data(text)) == .object(expected))
    }
}
