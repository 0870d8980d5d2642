import CSQLCipher
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

/// Jumps that SQLite's programs have made on the connection that is watched. One test at a time watches one.
private nonisolated(unsafe) var jumpCount = 0

/// Costs that must not grow with what is there. Counted in jumps of SQLite's programs, which are the same on any machine: a
/// look at every revision would take one for each at least.
@Suite("The cost of a revision", .serialized)
struct GrowthTests {
    let stores = TestStores()
    let database: Database
    let document: Document

    init() throws {
        database = try stores.open { $0.durability = .relaxed }
        document = database.document(withID: "doc")
    }

    /// How many jumps `body` takes, which is rolled back.
    private func cost(_ body: () throws -> Void) throws -> Int {
        struct Measured: Error {}
        var count = 0
        do {
            try database.inTransaction {
                // Once without counting: some statements are prepared when they first run.
                try? database.inTransaction {
                    try body()
                    throw Measured()
                }
                jumpCount = 0
                try watch { _ in
                    jumpCount += 1
                    return 0
                }
                defer { try? watch(nil) }
                try body()
                count = jumpCount
                throw Measured()
            }
        } catch is Measured {}
        return count
    }

    private func watch(_ handler: (@convention(c) (UnsafeMutableRawPointer?) -> Int32)?) throws {
        try database.storage.write { (writer) throws(CofferError) in
            sqlcipher_progress_handler(writer.tables.connection.handle.pointer, handler == nil ? 0 : 1, handler, nil)
        }
    }

    private func save() throws {
        let draft = try document.newRevision()
        draft["n"] = .number(JSONNumber((draft.parentRevisionID?.generation ?? 0) + 1))
        try draft.save()
    }

    /// What is done with a document that has grown, with what it costs.
    private func costs() throws -> [String: Int] {
        let current = try #require(try document.currentRevision)
        let oldest = try #require(try document.revisionHistory.first)
        let worst = try #require(try document.leafRevisions.last)
        return [
            "save": try cost { try save() },
            "read": try cost { _ = try document.properties },
            "stale save": try cost {
                let draft = UnsavedRevision(document: document, parent: oldest.revisionID, properties: [:])
                #expect(throws: CofferError.self) { try draft.save() }
            },
            "branch": try cost {
                let draft = UnsavedRevision(document: document, parent: oldest.revisionID, properties: ["new": true])
                try draft.saveAllowingConflict()
            },
            "delete a branch": try cost { _ = try worst.deleteDocument() },
            "put": try cost {
                let ids = try ids("\(current.revisionID.generation + 2)-a", "\(current.revisionID.generation + 1)-b")
                _ = try database.putExistingRevision(
                    [:], withID: "doc", history: ids + [current.revisionID, try #require(try current.parentRevisionID)])
            },
            "put what is known": try cost {
                _ = try database.putExistingRevision([:], withID: "doc", history: [oldest.revisionID])
            },
            "find": try cost { _ = try document.revision(withID: oldest.revisionID) },
            "parent": try cost { _ = try current.parentRevision },
        ]
    }

    private func expectFlat(_ few: [String: Int], _ many: [String: Int]) {
        for (what, count) in few {
            // All take some; none takes a tenth more, or one for each of thousands.
            #expect(count > 0, "\(what)")
            #expect((many[what] ?? .max) <= count + max(count / 10, 40), "\(what): \(count), then \(many[what] ?? 0)")
        }
    }

    @Test(
        "The cost of a revision is the same after 2,000 generations as after 30, pruned or not",
        arguments: [20, 1_000_000])
    func generations(depth: Int) throws {
        try database.setMaxRevTreeDepth(depth)
        try database.inTransaction { for _ in 0..<30 { try save() } }
        let few = try costs()
        try database.inTransaction { for _ in 30..<2_000 { try save() } }
        #expect(try document.revisionHistory.count == min(depth, 2_000))
        expectFlat(few, try costs())
        #expect(try database.contradictions() == [])
    }

    @Test(
        "The cost of a revision is the same with 10,000 leaves as with 100, old ancestors or none", arguments: [2, 40])
    func leaves(trunk: Int) throws {
        // The trunk is older than what is kept, or not; each branch has its own parent.
        try database.inTransaction { for _ in 0..<trunk { try save() } }
        let root = try #require(try document.currentRevision?.revisionID)
        func put(_ numbers: Range<Int>) throws {
            try database.inTransaction {
                for number in numbers {
                    let history = try ids("\(root.generation + 2)-l\(number)", "\(root.generation + 1)-p\(number)")
                    _ = try database.putExistingRevision(
                        ["n": .number(JSONNumber(number))], withID: "doc", history: history + [root])
                }
            }
        }
        // More than are looked at to find out what may be forgotten.
        try put(0..<100)
        let few = try costs()
        try put(100..<10_000)
        expectFlat(few, try costs())

        var leafCount = 0
        let all = try cost { leafCount = try document.leafRevisions.count }
        #expect(leafCount == 10_000)
        #expect(all < 40 * leafCount, "reading all takes a few for each")
        #expect(try document.conflictingRevisions.count == 10_000)
    }

    @Test("The cost of a revision is the same among 20,000 documents as among 10")
    func documents() throws {
        func add(_ numbers: Range<Int>) throws {
            try database.inTransaction {
                for number in numbers { try database.save(json: json(number), withID: "d\(number)") }
            }
        }
        for _ in 0..<3 { try save() }
        try add(0..<10)
        let few = try costs()
        try add(10..<20_000)
        expectFlat(few, try costs())
    }
}
