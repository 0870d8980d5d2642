import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

@Suite("Conflicts")
struct ConflictTests {
    let stores = TestStores()
    let database: Database
    let document: Document

    init() throws {
        database = try stores.open()
        document = database.document(withID: "doc")
    }

    /// A document whose first revision has been followed in several ways.
    @discardableResult
    private func branch(_ names: String...) throws -> [SavedRevision] {
        let root = try document.newRevision().save()
        return try names.map { name in
            let draft = try root.createRevision()
            draft["name"] = .string(name)
            return try draft.saveAllowingConflict()
        }
    }

    @Test("Conflicts are the live leaves, the winner first, and end when all but one are deleted")
    func leaves() throws {
        #expect(try document.leafRevisions == [])
        #expect(try document.conflictingRevisions == [])
        #expect(try document.revisionHistory == [])
        let saved = try branch("a", "b", "c").sorted { $0.revisionID > $1.revisionID }
        #expect(try document.leafRevisions == saved)
        #expect(try document.conflictingRevisions == saved)
        #expect(try document.currentRevision == saved[0])
        #expect(try document.revisionHistory.map(\.revisionID.generation) == [1, 2])
        #expect(try document.leafRevisions.map { try $0.properties } == saved.map { try $0.properties })

        let end = try saved[0].deleteDocument()
        #expect(end.isDeletion)
        #expect(try end.parentRevisionID == saved[0].revisionID)
        #expect(try document.currentRevision == saved[1], "the next one counts")
        #expect(try document.leafRevisions == [saved[1], saved[2], end])
        #expect(try document.conflictingRevisions == [saved[1], saved[2]])
        try saved[2].deleteDocument()
        #expect(try document.conflictingRevisions == [saved[1]])
        #expect(thrown { try saved[2].deleteDocument() }?.code == .conflict, "it was deleted")
        try saved[1].deleteDocument()
        #expect(try document.conflictingRevisions == [])
        #expect(try document.leafRevisions.count == 3)
        #expect(try document.isDeleted)
        #expect(try database.contradictions() == [])
    }

    @Test("Conflicts come of a save only where it is allowed, and of the same save twice never")
    func saving() throws {
        let saved = try branch("a", "b")
        let root = try #require(try saved[0].parentRevision)
        let draft = try root.createRevision()
        draft["name"] = "z"
        #expect(thrown { try draft.save() }?.code == .conflict)
        let last = try database.lastSequenceNumber
        draft["name"] = "a"
        #expect(try draft.saveAllowingConflict() == saved[0])
        #expect(try database.lastSequenceNumber == last)
        #expect(try document.leafRevisions.count == 2)

        // Each leaf goes on by itself.
        for leaf in saved {
            let next = try leaf.createRevision()
            next["more"] = true
            #expect(try next.save().revisionID.generation == 3)
        }
        #expect(try document.leafRevisions.map(\.revisionID.generation) == [3, 3])
        #expect(try database.contradictions() == [])
    }

    @Test("Conflicts come of two first revisions, where that is allowed")
    func twoFirst() throws {
        let mine = try document.newRevision()
        let yours = try document.newRevision()
        mine["who"] = "me"
        yours["who"] = "you"
        try mine.save()
        #expect(thrown { try yours.save() }?.code == .conflict)
        let saved = try yours.saveAllowingConflict()
        #expect(saved.revisionID.generation == 1)
        #expect(try saved.parentRevision == nil)
        #expect(try document.leafRevisions.count == 2)
        let same = UnsavedRevision(document: document, parent: nil, properties: ["who": "you"])
        #expect(try same.saveAllowingConflict() == saved)
        #expect(try database.contradictions() == [])
    }

    @Test("Conflicts can't be made from a revision that isn't there any more: a 404")
    func missingParent() throws {
        let root = try document.newRevision().save()
        let draft = try root.createRevision()
        try database.setMaxRevTreeDepth(1)
        let next = try root.createRevision()
        next["n"] = 1
        try next.save()
        #expect(thrown { try draft.save() }?.code == .conflict)
        #expect(thrown { try draft.saveAllowingConflict() }?.code == .revisionNotFound)
        try document.purge()
        #expect(thrown { try draft.saveAllowingConflict() }?.code == .documentNotFound)
    }

    @Test("Conflicts are resolved in one transaction by what follows the winner, attachments and all")
    func resolve() throws {
        let saved = try branch("a", "b", "c").sorted { $0.revisionID > $1.revisionID }
        let withPhoto = try saved[0].createRevision()
        withPhoto.setAttachment(named: "photo", contentType: nil, content: Data("photo".utf8))
        let current = try withPhoto.save()
        let resolved = try document.resolveConflicts { draft, others in
            #expect(draft.parentRevisionID == current.revisionID)
            #expect(others == Array(saved.dropFirst()))
            for other in others { draft["with " + (try other["name"]?.stringValue ?? "")] = true }
        }
        #expect(try resolved == document.currentRevision)
        #expect(try resolved?.parentRevision == current)
        #expect(try resolved?.properties.count == 3)
        #expect(try resolved?.attachment(named: "photo")?.content == Data("photo".utf8))
        #expect(try document.conflictingRevisions == [try #require(resolved)])
        #expect(try document.leafRevisions.count == 3)

        let last = try database.lastSequenceNumber
        #expect(try document.resolveConflicts { _, _ in Issue.record("there is no conflict") } == resolved)
        #expect(try database.lastSequenceNumber == last)
        #expect(try database.contradictions() == [])
    }

    @Test("Conflicts are resolved without a new revision where the winner stays as it is")
    func keepWinner() async throws {
        let saved = try branch("a", "b").sorted { $0.revisionID > $1.revisionID }
        let resolved = try await document.resolveConflicts { _, _ in }
        #expect(resolved == saved[0])
        #expect(try document.currentRevision == saved[0])
        #expect(try document.conflictingRevisions == [saved[0]])
    }

    @Test("Conflicts stay as they are where resolving them fails")
    func failedResolution() throws {
        let saved = try branch("a", "b").sorted { $0.revisionID > $1.revisionID }
        struct Undecided: Error {}
        #expect(throws: Undecided.self) { try document.resolveConflicts { _, _ in throw Undecided() } }
        #expect(throws: CofferError.self) { try document.resolveConflicts { draft, _ in draft["_no"] = 1 } }
        #expect(try document.conflictingRevisions == saved)
        #expect(try document.resolveConflicts { draft, _ in draft.isDeletion = true }?.isDeletion == true)
        #expect(try document.isDeleted)
        #expect(try database.contradictions() == [])
    }

    @Test("Conflicts that two databases resolve in the same way end without a new one")
    func sameResolution() throws {
        let other = try stores.open("other")
        try branch("a", "b")
        try replicate(database, other)
        for database in [database, other] {
            try database.document(withID: "doc").resolveConflicts { draft, others in
                draft["names"] = .array([draft["name"] ?? .null] + (try others.map { try $0["name"] ?? .null }))
            }
        }
        try replicate(database, other)
        try replicate(other, database)
        #expect(try document.leafTexts == other.document(withID: "doc").leafTexts)
        #expect(try document.conflictingRevisions.count == 1)
    }

    @Test("Conflicts keep the bodies of all their leaves when the database is compacted, and nothing else does")
    func compact() throws {
        let saved = try branch("a", "b", "c").sorted { $0.revisionID > $1.revisionID }
        let next = try saved[1].createRevision()
        next["more"] = true
        let later = try next.save()
        let tombstone = try saved[2].createRevision()
        tombstone.isDeletion = true
        let end = try tombstone.save()
        let single = try database.document(withID: "single").newRevision()
        try single.save()
        single["n"] = 2
        try single.save()
        let result = try database.compact()
        #expect(result.revisionCount == 4)
        for kept in [saved[0], later, end] {
            let again = try #require(try document.revision(withID: kept.revisionID))
            #expect(try again.properties == kept.properties)
        }
        for dropped in [saved[1], saved[2], try #require(try saved[0].parentRevision)] {
            #expect(try document.revision(withID: dropped.revisionID)?.propertiesAvailable == false)
        }
        #expect(try database.document(withID: "single").properties == ["n": 2])
        #expect(try database.compact().revisionCount == 0)
    }

    @Test("Conflicts of a document with an older page in it are damage, not other revisions")
    func damagedLeaf() throws {
        try branch("a", "b")
        try database.storage.write { (writer) throws(CofferError) in
            try writer.tables.connection.execute("UPDATE leaves SET sequence = 1")
        }
        #expect(thrown { try document.leafRevisions }?.code == .damaged)
        #expect(thrown { try document.conflictingRevisions }?.code == .damaged)
    }
}

/// Brings every leaf of the source that the target doesn't know, as a replicator does.
///
/// - Parameter order: puts the revisions in the order in which they go over.
@discardableResult
func replicate(
    _ source: Database, _ target: Database, order: ([SavedRevision]) -> [SavedRevision] = { $0 }
) throws -> Int {
    var leaves: [SavedRevision] = []
    for id in try source.storage.read({ (tables) throws(CofferError) in
        var batch = DocumentBatch()
        try tables.appendDocuments(
            from: nil, to: nil, descending: false, includesDeleted: true, loadsBodies: false, to: &batch
        ) { _ in true }
        return batch.elements.map { batch.id(of: $0) }
    }) {
        leaves += try source.document(withID: id).leafRevisions
    }
    var count = 0
    for leaf in order(leaves) {
        let result = try target.putExistingRevision(
            json: leaf.json, withID: leaf.document.documentID,
            history: try leaf.history.reversed().map(\.revisionID), isDeletion: leaf.isDeletion)
        if !result.wasKnown { count += 1 }
    }
    return count
}

extension Database {
    fileprivate func putExistingRevision(
        json: Data, withID id: String, history: [RevisionID], isDeletion: Bool
    ) throws -> ExistingRevisionResult {
        var text = String(decoding: json, as: UTF8.self)
        if isDeletion { text = #"{"_deleted":true"# + (text == "{}" ? "}" : "," + text.dropFirst()) }
        return try putExistingRevision(json: Data(text.utf8), withID: id, history: history)
    }
}
