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

    @Test("A revision that has contents is not sent as text")
    func contents() throws {
        let peers = try Peers()
        let draft = try peers.database().document(withID: "a").newRevision()
        draft.setAttachment(named: "file", contentType: nil, content: Data("content".utf8))
        let revision = try draft.save()
        #expect(try OutgoingRevision.text(of: revision, history: nil) == nil)
    }

    private func check(_ revision: SavedRevision, _ withHistory: Bool) throws {
        let history = withHistory ? try revision.history.reversed().map(\.revisionID) : nil
        let text = try #require(try OutgoingRevision.text(of: revision, history: history))
        var expected = try revision.properties
        expected["_id"] = .string(revision.documentID)
        expected["_rev"] = .string(revision.revisionID.description)
        if revision.isDeletion { expected["_deleted"] = true }
        if let history { expected["_revisions"] = OutgoingRevision.revisions(history) }
        #expect(try JSONValue(json: Data(text)) == .object(expected))
    }
}
