import Coffer
import CofferModel
import Foundation
import Testing

@testable import CofferSync

/// Of 20 revisions a line, those that came after the last push were all that the server was told, so that what was just a newer
/// revision became a conflict there.
@Suite("Histories longer than a page", .serialized) struct LongHistoryTests {
    /// Saves the document so many times more.
    private func edit(_ database: Database, _ count: Int, _ id: String = "d") throws {
        try database.inTransaction {
            let draft = try database.document(withID: id).newRevision()
            for _ in 0..<count {
                draft["n"] = .number(JSONNumber((draft.parentRevisionID?.generation ?? 0) + 1))
                try draft.save()
            }
        }
    }

    private func history(_ database: Database, _ id: String = "d") throws -> [Int] {
        try database.document(withID: id).revisionHistory.map(\.revisionID.generation)
    }

    private func leafCount(_ database: Database, _ id: String = "d") throws -> Int {
        try database.document(withID: id).leafRevisions.count
    }

    @Test(
        "As many edits as one likes between two pushes make no conflict, and go when the server has them",
        arguments: [
            25, 300,
        ]) func edits(count: Int) async throws
    {
        let peers = try Peers()
        let database = try peers.database()
        try edit(database, 5)
        try await peers.push(database)
        try edit(database, count)
        #expect(try history(database) == Array(5...(5 + count)))
        try await peers.push(database)
        #expect(try leafCount(peers.remote) == 1)
        #expect(
            try peers.remote.document(withID: "d").currentRevisionID == database.document(withID: "d").currentRevisionID
        )
        try edit(database, 1)
        #expect(try history(database) == Array((count - 13)...(count + 6)))
    }

    @Test("A revision that was pulled is known to the server, though nothing was pushed before") func pulled()
        async throws
    {
        let peers = try Peers()
        let database = try peers.database()
        try edit(peers.remote, 3)
        try await peers.pull(database)
        try edit(database, 40)
        try await peers.push(database)
        #expect(try leafCount(peers.remote) == 1)
        #expect(try leafCount(peers.remote) == leafCount(database))
    }

    @Test("A server that was not met for long is told what leads to the revision it has, whatever others have")
    func twoServers() async throws {
        let peers = try Peers()
        let other = TestServer()
        _ = try other.database()
        let database = try peers.database()
        try edit(database, 2)
        func pushToOther() async throws {
            try await peers.replication(.push, database, through: other, url: "http://other/db").run()
        }
        try await pushToOther()
        for _ in 0..<3 {
            try edit(database, 30)
            try await peers.push(database)
        }
        try await pushToOther()
        #expect(try leafCount(other.database()) == 1)
        #expect(try leafCount(peers.remote) == 1)
    }

    @Test("A server that nothing is pushed to any more takes nothing from documents that it has never had")
    func staleServer() async throws {
        let peers = try Peers()
        let former = TestServer()
        _ = try former.database()
        let database = try peers.database()
        try edit(database, 1, "early")
        try await peers.replication(.push, database, through: former, url: "http://former/db").run()
        try edit(database, 1)
        try await peers.push(database)
        try edit(database, 26)
        try await peers.push(database)
        #expect(try leafCount(peers.remote) == 1)
    }

    @Test("A line is kept for 1,000 revisions at most, and as the depth says where nobody is known to have it")
    func bounds() async throws {
        let peers = try Peers()
        let database = try peers.database()
        try edit(database, 30, "before")
        #expect(try history(database, "before") == Array(11...30))
        try edit(database, 1)
        try await peers.push(database)
        try edit(database, 1_100)
        // What is not reached any more is not kept either.
        #expect(try history(database) == Array(1_082...1_101))
        try edit(database, 30, "after")
        #expect(try history(database, "after") == Array(11...30))
        try await peers.push(database)
        #expect(try leafCount(peers.remote) == 2, "what is beyond that is a conflict, as the documentation says")
        #expect(try await database.verify(.everything).findings.isEmpty)
    }

    @Test("A smaller depth takes nothing from the server that it needs, and what was rolled back is not known")
    func depth() async throws {
        let peers = try Peers()
        let database = try peers.database()
        try edit(database, 4)
        try await peers.push(database)
        try edit(database, 30)
        try await database.setMaxRevTreeDepth(2)
        #expect(try history(database) == Array(4...34))
        try? await database.inTransaction {
            try database.notePeer("x", has: 0)
            throw CancellationError()
        }
        try await peers.push(database)
        try edit(database, 1)
        #expect(try history(database) == [34, 35])
        #expect(try leafCount(peers.remote) == 1)
        // A copy knows them too.
        try database.notePeer("x", has: database.lastSequenceNumber)
        try edit(database, 10)
        try await database.changeEncryptionKey(to: nil)
        try edit(database, 10)
        #expect(try history(database).count == 22)
    }
}
