import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

@Suite("Revisions that are lent to a replicator")
struct LentRevisionTests {
    let stores = TestStores()

    /// What was lent, copied.
    private struct Copy: Equatable {
        var documentID: String
        var json: [UInt8]
        var history: [RevisionID]
        var isDeletion: Bool
        var isOnlyLeaf: Bool

        init(_ revision: borrowing LentRevision) {
            documentID = revision.documentID
            json = revision.json.indices.map { revision.json[$0] }
            history = revision.history
            isDeletion = revision.isDeletion
            isOnlyLeaf = revision.isOnlyLeaf
        }

        init(_ revision: SavedRevision) throws {
            documentID = revision.documentID
            json = Array(try revision.json)
            history = try revision.history.reversed().map(\.revisionID)
            isDeletion = revision.isDeletion
            isOnlyLeaf = try revision.document.leafRevisions == [revision]
        }
    }

    private func lend(_ wanted: [(id: String, revision: RevisionID)], in database: Database) throws -> [Copy?] {
        var all: [Copy?] = []
        while all.count < wanted.count {
            let next = try database.lendRevisions(wanted[all.count...]) { Copy($0) }
            try #require(!next.isEmpty)
            all += next
        }
        return all
    }

    @Test("Each revision is what it is alone: current, replaced, a deletion, in conflict, missing or compacted away")
    func sameAsAlone() throws {
        let database = try stores.open()
        var wanted: [(id: String, revision: RevisionID)] = []
        for number in 0..<40 {
            let document = database.document(withID: "document \(number)")
            let first = try document.newRevision().save()
            wanted.append((document.documentID, first.revisionID))
            if number % 4 > 0 {
                let draft = try first.createRevision()
                draft["n"] = .number(JSONNumber(Int64(number)))
                wanted.append((document.documentID, try draft.save().revisionID))
            }
            if number % 4 == 2 { wanted.append((document.documentID, try document.delete().revisionID)) }
            if number % 4 == 3 {
                let draft = try first.createRevision()
                draft["branch"] = true
                wanted.append((document.documentID, try draft.saveAllowingConflict().revisionID))
            }
            if number == 20 { try database.compact() }
        }
        let unknown = try #require(RevisionID("1-0123456789abcdef0123456789abcdef"))
        wanted += [("document 0", unknown), ("nobody", unknown)]
        let found = try lend(wanted, in: database)
        for (number, (id, revision)) in wanted.enumerated() {
            let alone = try database.document(withID: id).revision(withID: revision)
            guard let alone, try alone.propertiesAvailable else {
                #expect(found[number] == nil, "\(id) \(revision)")
                continue
            }
            #expect(found[number] == (try Copy(alone)), "\(id) \(revision)")
        }
        #expect(found.count { $0 == nil } > 10)
        #expect(found.count { $0?.isOnlyLeaf == true } > 20 && found.count { $0?.isOnlyLeaf == false } > 10)
    }

    @Test("No more is read at once than one batch may have, though each revision of it comes")
    func batches() throws {
        let database = try stores.open()
        let text = String(repeating: "x", count: 300_000)
        for number in 0..<9 { try database.save(["text": .string(text)], withID: "long \(number)") }
        for number in 0..<600 { try database.save(["n": 1], withID: "short \(number)") }
        let wanted = try database.allDocuments().map { (id: $0.documentID, revision: $0.revisionID) }
        let first = try database.lendRevisions(wanted) { $0.json.count }
        #expect(first.count == 4)
        #expect(try database.lendRevisions(wanted.filter { $0.id.hasPrefix("short") }) { _ in true }.count == 256)
        #expect(try lend(wanted, in: database).map { $0?.documentID } == wanted.map(\.id))
    }

    @Test("Inside a transaction, what it has saved is lent")
    func transaction() throws {
        let database = try stores.open()
        try database.inTransaction {
            let saved = try database.save(["n": 1], withID: "a")
            #expect(try lend([("a", saved.revisionID)], in: database) == [try Copy(saved)])
        }
    }

    @Test("A damaged revision is an error where it comes first, and others beside it are lent")
    func damage() throws {
        let wanted: [(id: String, revision: RevisionID)]
        do {
            let database = try stores.open(key: nil)
            for number in 0..<5 { try database.save(["n": .number(JSONNumber(Int64(number)))], withID: "\(number)") }
            wanted = try database.allDocuments().map { ($0.documentID, $0.revisionID) }
            try database.close()
        }
        let connection = try Connection(
            path: try stores.databaseFile().path, subject: "test", access: .readWrite, key: nil,
            cacheByteCount: 1 << 20)
        try connection.execute("UPDATE revisions SET suffix = x'00' WHERE id = '2'")
        try connection.close()
        let database = try stores.open(key: nil)
        #expect(try database.lendRevisions(wanted) { $0.documentID } == ["0"])
        #expect(try database.lendRevisions(wanted[1...]) { $0.documentID } == ["1"])
        #expect(thrown { _ = try database.lendRevisions(wanted[2...]) { $0.documentID } }?.code == .damaged)
        #expect(try database.lendRevisions(wanted[3...]) { $0.documentID } == ["3", "4"])
    }

    @Test("An id that no document can have is a 400 where it comes first")
    func invalidID() throws {
        let database = try stores.open()
        let saved = try database.save(["n": 1], withID: "a")
        let wanted = [(id: "a", revision: saved.revisionID), (id: "_a", revision: saved.revisionID)]
        #expect(try database.lendRevisions(wanted) { $0.documentID } == ["a"])
        #expect(thrown { _ = try database.lendRevisions(wanted[1...]) { $0.documentID } }?.code == .invalidDocumentID)
    }
}
