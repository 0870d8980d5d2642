import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

@Suite("A pull that meets a conflict")
struct PullConflictTests {
    private struct Refusal: Error {}

    /// A document that was changed on both sides since the last exchange.
    private func conflict() async throws -> (peers: Peers, database: Database) {
        let peers = try Peers()
        let database = try peers.database()
        try database.write("a", ["n": 0])
        try await peers.push(database)
        try database.write("a", ["n": 1, "ours": true])
        try peers.remote.write("a", ["n": 2, "theirs": true])
        return (peers, database)
    }

    private func pull(
        _ peers: Peers, _ database: Database,
        _ handler: @escaping @Sendable (ReplicationConflict) throws -> ConflictResolution
    ) async throws -> Replication {
        let replication = try await peers.pull(database) { $0.conflictHandler = handler }
        return replication
    }

    @Test("A pull that meets a conflict leaves it where nobody says what becomes of it") func unhandled() async throws {
        let (peers, database) = try await conflict()
        try await peers.pull(database)
        #expect(try database.document(withID: "a").conflictingRevisions.count == 2)
    }

    @Test(
        "A pull that meets a conflict keeps ours, theirs, or what comes of both, on both sides",
        arguments: ["ours", "theirs", "merged"])
    func resolved(choice: String) async throws {
        let (peers, database) = try await conflict()
        let asked = Lock(0)
        let replication = try await pull(peers, database) { conflict in
            asked.withLock { $0 += 1 }
            #expect(conflict.documentID == "a")
            #expect(try conflict.ours["n"] == 1 && conflict.theirs["n"] == 2)
            switch choice {
            case "ours": return .ours
            case "theirs": return .theirs
            default:
                var properties = try conflict.theirs.properties
                properties["ours"] = try conflict.ours["ours"]
                return .merged(properties)
            }
        }
        #expect(asked.withLock { $0 } == 1)
        #expect(replication.failures.isEmpty)
        let expected: [String: JSONObject] = [
            "ours": ["n": 1, "ours": true], "theirs": ["n": 2, "theirs": true],
            "merged": ["n": 2, "theirs": true, "ours": true],
        ]
        #expect(try database.document(withID: "a").conflictingRevisions.count == 1)
        let kept = try #require(try database["a"]?.properties)
        #expect(Set(kept.keys) == Set(expected[choice]?.keys ?? []))
        for (key, value) in expected[choice] ?? [:] { #expect(kept[key] == value) }
        try await peers.push(database)
        #expect(try Contents(database) == Contents(peers.remote))
        #expect(try peers.remote.document(withID: "a").conflictingRevisions.count == 1)
        // What was resolved is asked about no more.
        _ = try await pull(peers, database) { _ in throw Refusal() }
        #expect(asked.withLock { $0 } == 1)
    }

    @Test("A pull that meets a conflict goes on where a handler fails, and reports the document, whose conflict stays")
    func failed() async throws {
        let (peers, database) = try await conflict()
        try peers.remote.write("b", ["n": 1])
        for isHandlerToBlame in [true, false] {
            let other = try peers.database(isHandlerToBlame ? "local" : "other")
            if other !== database {
                try other.write("a", ["n": 3, "ours": true])
            }
            let replication = try await pull(peers, other) { _ in
                if isHandlerToBlame { throw Refusal() }
                return .merged(["_secret": 1])
            }
            #expect(replication.failures.map(\.documentID) == ["a"])
            #expect(replication.failures.first.map { $0.error is Refusal } == isHandlerToBlame)
            #expect(try other.document(withID: "a").conflictingRevisions.count == 2)
            #expect(try other["b"] != nil)
        }
    }

    @Test("A pull that meets a conflict asks about each revision that is in conflict, and about none that isn't")
    func several() async throws {
        let (peers, database) = try await conflict()
        try peers.remote.write("new", ["n": 1])
        let draft = try #require(try database.document(withID: "a").revisionHistory.first).createRevision()
        draft["n"] = 7
        try await draft.saveAllowingConflict()
        try database.write("same", ["n": 1])
        try await peers.push(database) { $0.documentIDs = ["same"] }
        let asked = Lock<[String]>([])
        _ = try await pull(peers, database) { conflict in
            asked.withLock { $0.append(conflict.documentID) }
            return .theirs
        }
        #expect(asked.withLock { $0 } == ["a", "a"])
        #expect(try database.document(withID: "a").conflictingRevisions.count == 1)
        #expect(try database["a"]?["n"] == 2)
    }

    /// The winner was deleted for a revision that it had been in conflict with before, as if that one had come.
    @Test("A pull that meets a conflict leaves those that were in conflict here before, where ours is kept")
    func oursOfSeveral() async throws {
        let (peers, database) = try await conflict()
        let draft = try #require(try database.document(withID: "a").revisionHistory.first).createRevision()
        draft["n"] = 7
        try await draft.saveAllowingConflict()
        let before = Set(try database.document(withID: "a").conflictingRevisions.map(\.revisionID))
        let asked = Lock(0)
        _ = try await pull(peers, database) { conflict in
            asked.withLock { $0 += 1 }
            let came: Bool? = try conflict.theirs["theirs"]
            #expect(came == true)
            return .ours
        }
        #expect(asked.withLock { $0 } == 1)
        #expect(Set(try database.document(withID: "a").conflictingRevisions.map(\.revisionID)) == before)
    }
}
