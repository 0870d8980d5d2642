import Foundation
import Testing

@testable import Coffer

@Suite("Purging")
struct PurgeTests {
    let stores = TestStores()
    let database: Database
    let document: Document

    init() throws {
        database = try stores.open()
        document = database.document(withID: "doc")
        for history in [["4-d", "3-c", "2-b", "1-a"], ["3-x", "2-b"], ["2-z"]] {
            _ = try database.putExistingRevision([:], withID: "doc", history: ids(history))
        }
    }

    private func purge(_ texts: String...) throws -> [String] { try document.purge(ids(texts)).map(\.description) }

    @Test("Purging of a document removes all of it, without a trace")
    func whole() throws {
        let removed = try document.purge()
        #expect(Set(removed.map(\.description)) == ["4-d", "3-c", "3-x", "2-b", "2-z", "1-a"])
        #expect(removed.map(\.generation) == [4, 3, 3, 2, 2, 1])
        #expect(try document.currentRevisionID == nil)
        #expect(try database.documentCount == 0)
        #expect(try database.contradictions() == [])
        #expect(thrown { try document.purge() }?.code == .documentNotFound)
        #expect(thrown { try document.purge(ids("4-d")) }?.code == .documentNotFound)
        let first = try document.newRevision().save()
        #expect(first.revisionID.generation == 1, "it starts anew")
    }

    @Test("Purging of leaves removes the ancestors that only they have, and promotes the next leaf")
    func leaves() throws {
        #expect(try purge("2-b", "3-c", "7-no") == [], "others follow them")
        #expect(try purge("4-d") == ["4-d", "3-c"])
        #expect(try document.leafTexts == ["3-x", "2-z"])
        #expect(try document.currentRevision?.revisionID.description == "3-x")
        #expect(try database.contradictions() == [])
        #expect(try purge("2-z") == ["2-z"])
        #expect(try document.leafTexts == ["3-x"])
        #expect(try database.contradictions() == [])

        // One line again: it goes on as such.
        let draft = try document.newRevision()
        draft["n"] = 1
        try draft.save()
        #expect(try document.revisionHistory.map(\.revisionID.generation) == [1, 2, 3, 4])
        let back = try database.putExistingRevision([:], withID: "doc", history: ids("4-d", "3-c", "2-b"))
        #expect(back.isBranch)
        #expect(try database.contradictions() == [])
        let leaf = try #require(try document.currentRevision?.revisionID.description)
        #expect(try purge("4-d", leaf).count == 6)
        #expect(try database["doc"] == nil)
        #expect(try database.contradictions() == [])
    }

    @Test("Purging gives no number twice, even after the last revision is gone and the database was closed")
    func sequences() throws {
        let last = try database.lastSequenceNumber
        try document.purge(ids("2-z"))
        #expect(try database.lastSequenceNumber == last)
        try database.close()
        let again = try stores.open()
        #expect(try again.lastSequenceNumber == last)
        #expect(try again.document(withID: "new").newRevision().save().sequence == last + 1)
    }

    @Test("Purging leaves contents to the next compaction, and those that others use to them")
    func contents() throws {
        for id in ["p", "q"] {
            let draft = try database.document(withID: id).newRevision()
            draft.setAttachment(named: "x", contentType: nil, content: Data("same".utf8))
            draft.setAttachment(named: id, contentType: nil, content: Data(id.utf8))
            try draft.save()
        }
        try database.document(withID: "p").purge()
        #expect(try database.compact().attachmentCount == 1)
        #expect(try database["q"]?.currentRevision?.attachment(named: "x")?.content == Data("same".utf8))
        #expect(try database.contradictions() == [])
    }

    @Test("Purging is reported: the document that was removed, and the revision that became current")
    func notifications() async throws {
        var changes = database.changes.makeAsyncIterator()
        try await document.purge(ids("4-d"))
        let promoted = try #require(await changes.next()?.changes)
        #expect(promoted.map { $0.revisionID?.description } == ["3-x"])
        #expect(promoted[0].isCurrentRevision && promoted[0].isInConflict && !promoted[0].isPurge)
        try await document.purge()
        let purged = try #require(await changes.next()?.changes)
        #expect(purged.count == 1 && purged[0].isPurge)
    }

    @Test(
        "Purging leaves its revisions to who holds them, who find nothing more: a 404; rolled back it changes nothing")
    func rollback() throws {
        let held = try #require(try document.currentRevision)
        let ancestor = try #require(try document.revision(withID: ids("3-c")[0]))
        try? database.inTransaction {
            try document.purge()
            #expect(try database["doc"] == nil)
            throw CancellationError()
        }
        #expect(try document.leafTexts == ["4-d", "3-x", "2-z"])
        #expect(try database.contradictions() == [])
        try document.purge()
        #expect(try held.properties == [:])
        #expect(thrown { try ancestor.properties }?.code == .revisionNotFound)
        #expect(thrown { try held.history }?.code == .revisionNotFound)
        #expect(thrown { try held.parentRevision }?.code == .revisionNotFound)
        #expect(thrown { try held.deleteDocument() }?.code == .documentNotFound)
    }

    @Test("Purging is refused in a database that is only read, and of ids that no document has")
    func refused() throws {
        try database.close()
        let reading = try stores.open { $0.readOnly = true }
        #expect(thrown { try reading.document(withID: "doc").purge() }?.code == .readOnly)
        #expect(thrown { try reading.document(withID: "_local/x").purge() }?.code == .invalidDocumentID)
        #expect(thrown { try reading.document(withID: "").purge() }?.code == .invalidDocumentID)
    }
}
