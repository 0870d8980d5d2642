import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("The depth of revision trees")
struct DepthTests {
    let stores = TestStores()
    let database: Database
    let document: Document

    init() throws {
        database = try stores.open { $0.durability = .relaxed }
        document = database.document(withID: "doc")
    }

    /// Saves the document so many times more.
    private func save(_ count: Int, _ id: String = "doc") throws {
        try database.inTransaction {
            let draft = try database.document(withID: id).newRevision()
            for _ in 0..<count {
                draft["n"] = .number(JSONNumber((draft.parentRevisionID?.generation ?? 0) + 1))
                try draft.save()
            }
        }
    }

    private var generations: [Int] { get throws { try document.revisionHistory.map(\.revisionID.generation) } }

    @Test("The depth of revision trees is 20, and can be set, and stays set")
    func setting() throws {
        #expect(try database.maxRevTreeDepth == 20)
        try database.setMaxRevTreeDepth(7)
        #expect(try database.maxRevTreeDepth == 7)
        for depth in [0, -1, .min] {
            #expect(thrown { try database.setMaxRevTreeDepth(depth) }?.code == .invalidArgument)
        }
        try? database.inTransaction {
            try database.setMaxRevTreeDepth(3)
            #expect(try database.maxRevTreeDepth == 3)
            throw CancellationError()
        }
        #expect(try database.maxRevTreeDepth == 7)
        try save(9)
        #expect(try generations == Array(3...9), "what was rolled back is not what holds")
        try database.close()
        let again = try stores.open()
        #expect(try again.maxRevTreeDepth == 7)
        try again.setMaxRevTreeDepth(.max)
        #expect(try again.maxRevTreeDepth == .max)
        try again.close()
        let reading = try stores.open { $0.readOnly = true }
        #expect(try reading.maxRevTreeDepth == .max)
        #expect(thrown { try reading.setMaxRevTreeDepth(5) }?.code == .readOnly)
    }

    @Test("The depth of revision trees is how many revisions stay as others are added", arguments: [1, 2, 5, 20])
    func adding(depth: Int) throws {
        try database.setMaxRevTreeDepth(depth)
        for count in 1...25 {
            try save(1)
            #expect(try generations == Array(max(1, count - depth + 1)...count))
        }
        let oldest = try #require(try document.revisionHistory.first)
        #expect(try oldest.parentRevision == nil)
        #expect(try oldest.parentRevisionID == nil)
        #expect(try database.contradictions() == [])
        let rows = try database.storage.read { (tables) throws(CofferError) in
            try tables.trees.revisions(ofDocument: 1).count
        }
        #expect(rows == depth, "the first revision, whose number is the document's, goes, too")
    }

    @Test("The depth of trees prunes what a revision used, too: its attachments go when the database is compacted")
    func uses() throws {
        try database.setMaxRevTreeDepth(2)
        let draft = try document.newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("a".utf8))
        try draft.save()
        draft.removeAttachment(named: "a")
        draft["face"] = .blob(Blob(data: Data("b".utf8)))
        try draft.save()
        draft["face"] = nil
        try draft.save()
        #expect(try database.contradictions() == [])
        try save(1)
        #expect(try database.contradictions() == [])
        #expect(try database.compact().attachmentCount == 2)
    }

    @Test("The depth that is lowered prunes at once, in all documents; when it is raised, nothing comes back")
    func lowering() throws {
        try save(15)
        try save(3, "short")
        try save(12, "other")
        let fork = try #require(try document.revision(withID: document.revisionHistory[9].revisionID))
        #expect(fork.revisionID.generation == 10)
        let draft = try fork.createRevision()
        draft["fork"] = true
        try draft.saveAllowingConflict()
        try save(5, "deleted")
        try database.document(withID: "deleted").delete()

        try database.setMaxRevTreeDepth(4)
        #expect(try generations == [12, 13, 14, 15])
        #expect(try document.leafRevisions[1].history.map(\.revisionID.generation) == [8, 9, 10, 11])
        #expect(try database.document(withID: "short").revisionHistory.count == 3)
        #expect(try database.document(withID: "other").revisionHistory.map(\.revisionID.generation) == [9, 10, 11, 12])
        #expect(try database.document(withID: "deleted").revisionHistory.map(\.revisionID.generation) == [3, 4, 5, 6])
        #expect(try document.properties == ["n": 15])
        #expect(try database.contradictions() == [])

        try database.setMaxRevTreeDepth(6)
        #expect(try generations == [12, 13, 14, 15])
        try save(1)
        #expect(try generations == [12, 13, 14, 15, 16])
    }

    @Test("The depth of revision trees keeps what any branch is near to, and no more", arguments: [2, 3, 5])
    func branches(depth: Int) throws {
        try database.setMaxRevTreeDepth(depth)
        // One branch stands still while the other goes on.
        try save(3)
        let stub = try #require(try document.currentRevision)
        try save(1)
        let draft = try stub.createRevision()
        draft["still"] = true
        let still = try draft.saveAllowingConflict()
        #expect(still.revisionID.generation == 4)
        while try document.leafRevisions[0].revisionID.generation < 14 {
            let leaf = try #require(try document.leafRevisions.first { $0 != still })
            let next = try leaf.createRevision()
            next["n"] = .number(JSONNumber(leaf.revisionID.generation + 1))
            try next.save()
            let generation = leaf.revisionID.generation + 1
            let line = try document.leafRevisions.first { $0 != still }?.history.map(\.revisionID.generation)
            let expected = Array(max(1, generation - depth + 1)...generation)
            // Where both lines meet, what is kept for one is there for the other.
            if generation - depth + 1 > 4 { #expect(line == expected, "\(generation)") }
            #expect(try still.history.map(\.revisionID.generation) == Array(max(1, 4 - depth + 1)...4))
        }
        #expect(try database.contradictions() == [])
        let count = try database.storage.read { (tables) throws(CofferError) in
            try tables.trees.revisions(ofDocument: 1).count
        }
        #expect(count == depth + min(depth, 4))
    }

    @Test("A history that reaches further back than the depth is kept in no more than that")
    func longHistory() throws {
        let history = try ids((1...50).reversed().map { "\($0)-x" })
        _ = try database.putExistingRevision([:], withID: "doc", history: history)
        #expect(try generations == Array(31...50))
        // Joins at 50, which is too far then: nothing of the old line stays.
        let later = try ids((40...90).reversed().map { "\($0)-x" })
        let result = try database.putExistingRevision([:], withID: "doc", history: later)
        #expect(!result.isBranch)
        #expect(try generations == Array(71...90))
        #expect(try document.leafTexts == ["90-x"])
        #expect(try database.contradictions() == [])

        // The same in a document with two branches, of which one stays.
        _ = try database.putExistingRevision([:], withID: "doc", history: ids("88-y", "87-x"))
        let last = try ids((90...130).reversed().map { "\($0)-x" })
        _ = try database.putExistingRevision([:], withID: "doc", history: last)
        #expect(try document.leafTexts == ["130-x", "88-y"])
        #expect(try generations == Array(111...130))
        let kept = try document.leafRevisions[1].history.map(\.revisionID.description)
        #expect(kept == (71...87).map { "\($0)-x" } + ["88-y"])
        #expect(try document.revision(withID: ids("90-x")[0]) == nil)
        #expect(try database.contradictions() == [])

        // What is known and was followed makes a branch, however far it is.
        let branch = try ids((87...120).reversed().map { $0 == 87 ? "87-x" : "\($0)-z" })
        #expect(try database.putExistingRevision([:], withID: "doc", history: branch).isBranch)
        #expect(try document.leafTexts == ["130-x", "120-z", "88-y"])
        #expect(try database.contradictions() == [])
    }

    @Test("The depth of 1 makes a conflict of what is only newer, which a larger one does not")
    func spuriousConflicts() throws {
        for (depth, leafCount) in [(1, 2), (5, 1)] {
            let there = try stores.open("there\(depth)")
            let here = try stores.open("here\(depth)")
            try here.setMaxRevTreeDepth(depth)
            let draft = try here.document(withID: "doc").newRevision()
            try draft.save()
            try replicate(here, there)
            for number in 0..<3 {
                draft["n"] = .number(JSONNumber(number))
                try draft.save()
            }
            try replicate(here, there)
            #expect(try there.document(withID: "doc").leafRevisions.count == leafCount)
        }
    }

    @Test("The depth keeps a revision with very many leaves near by longer, until the database is compacted")
    func manyLeaves() throws {
        try database.setMaxRevTreeDepth(3)
        // Two lines; at the second's end more leaves than are looked at, none of which needs the first line's ancestors.
        _ = try database.putExistingRevision([:], withID: "doc", history: ids("4-a", "3-a", "2-a"))
        try database.inTransaction {
            for number in 0...Pruning.leafLimit {
                let history = try ids("4-m\(number)", "3-b", "2-b")
                _ = try database.putExistingRevision([:], withID: "doc", history: history)
            }
        }
        _ = try database.putExistingRevision([:], withID: "doc", history: ids("5-a", "4-a"))
        #expect(try document.revision(withID: ids("2-a")[0]) != nil)
        #expect(try database.contradictions() == [])
        // Further on it could be told that 4-a is not needed, were it not for what stays before it.
        _ = try database.putExistingRevision([:], withID: "doc", history: ids("7-a", "6-a", "5-a"))
        #expect(try document.historyTexts == ["7-a", "6-a", "5-a", "4-a", "3-a", "2-a"])
        #expect(try database.contradictions() == [])
        try database.compact()
        #expect(try document.historyTexts == ["7-a", "6-a", "5-a"])

        // A leaf among them whose successor is too far on to be linked to it goes with what only it had.
        let far = try ids("10-m", "9-m", "8-m", "7-m", "6-m", "5-m", "4-m0")
        _ = try database.putExistingRevision([:], withID: "doc", history: far)
        #expect(try document.revision(withID: ids("4-m0")[0]) == nil)
        #expect(try document.leafTexts.prefix(2) == ["10-m", "7-a"])
        #expect(try document.revision(withID: ids("2-b")[0]) != nil)
        #expect(try database.contradictions() == [])
    }
}
