import Coffer
import CofferModel
import CofferTesting
import Foundation
import TestSupport
import Testing

@testable import CofferSync

@Suite("Replicating two databases") struct ReplicationTests {
    private static let picture = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })

    /// Documents of every kind: with attachments and blobs, deleted, in conflict.
    private func fill(_ database: Database) throws {
        for number in 0..<250 { try database.write("doc-\(number)", ["n": .number(.init(Int64(number)))]) }
        try database.write("picture", ["title": "one"], attachment: ("p.jpg", Self.picture))
        try database.write("picture", ["title": "two"])
        try database.write("blob", ["avatar": .blob(Blob(contentType: "image/png", data: Data([1, 2, 3])))])
        try database.write(
            "both", ["list": [.blob(Blob(data: Data("x".utf8))), .blob(Blob(data: Data("y".utf8)))]],
            attachment: ("../a/b", Data()))
        try database.write("deleted", ["a": 1])
        try database.document(withID: "deleted").delete()
        for ids in [["2-b", "1-a"], ["3-c", "2-c", "1-a"]] {
            try database.putExistingRevision(
                ["w": .string(ids[0])], withID: "conflict", history: ids.compactMap { RevisionID($0) })
        }
        try database.write("_design/d", ["filters": [:]])
        try database.write("a/b?c#d %", ["ü": "🙂"])
    }

    @Test("Documents that are pushed and pulled are the same on all sides") func roundTrip() async throws {
        let peers = try Peers()
        let (one, two) = (try peers.database("one"), try peers.database("two"))
        try fill(one)
        let push = try await peers.push(one)
        #expect(push.status.completedCount == push.status.totalCount && push.status.failedCount == 0)
        #expect(push.status.activity == .stopped)
        #expect(try Contents(try peers.remote) == Contents(one))
        let pull = try await peers.pull(two)
        #expect(pull.status.failedCount == 0, "\(pull.failures)")
        #expect(try Contents(two) == Contents(one))
        #expect(
            try two.document(withID: "conflict").conflictingRevisions.map(\.revisionID.description) == ["3-c", "2-b"])
        #expect(try two.document(withID: "blob").currentRevision?.blob(forKey: "avatar")?.content == Data([1, 2, 3]))
    }

    @Test("A replication with nothing new takes a handful of requests") func nothingNew() async throws {
        let peers = try Peers()
        let database = try peers.database()
        try fill(database)
        try await peers.push(database)
        try await peers.pull(database)
        for _ in 0..<2 {
            peers.wire.reset()
            try await peers.push(database)
            #expect(peers.wire.all.count <= 2, "\(peers.wire.all)")
            peers.wire.reset()
            try await peers.pull(database)
            #expect(peers.wire.all.count <= 3, "\(peers.wire.all)")
        }
    }

    @Test("Only new revisions travel, and attachments only where they were changed") func increments() async throws {
        let peers = try Peers()
        let (one, two) = (try peers.database("one"), try peers.database("two"))
        try fill(one)
        try await peers.push(one)
        try await peers.pull(two)
        peers.wire.reset()
        try one.write("picture", ["title": "three"])
        try one.write("blob", ["name": "x"])
        try await peers.push(one)
        #expect(peers.wire.sentByteCount < 10_000)
        #expect(peers.wire.count("PUT /db/") == 3, "\(peers.wire.all)")
        peers.wire.reset()
        try await peers.pull(two)
        #expect(peers.wire.count("p.jpg") == 0 && peers.wire.count("blob_1") == 0, "\(peers.wire.all)")
        #expect(peers.wire.count("_bulk_get") == 1)
        #expect(try Contents(two) == Contents(one))
        peers.wire.reset()
        try one.write("picture", [:], attachment: ("p.jpg", Data([4])))
        try await peers.push(one)
        try await peers.pull(two)
        #expect(peers.wire.count("p.jpg") == 1)
        #expect(try Contents(two) == Contents(one))
    }

    @Test("Many small contents go together with their documents, and come back one by one") func small() async throws {
        let peers = try Peers()
        let (one, two) = (try peers.database("one"), try peers.database("two"))
        for number in 0..<30 {
            try one.write(
                "d-\(number)", ["blob": .blob(Blob(contentType: "a/b", data: Data("blob \(number)".utf8)))],
                attachment: ("empty \(number)", Data()))
        }
        try await peers.push(one)
        // Besides the checkpoint's.
        #expect(peers.wire.count("PUT /db/") == 1, "\(peers.wire.all)")
        try await peers.pull(two)
        #expect(try Contents(two) == Contents(one))
        #expect(try Contents(peers.remote) == Contents(one))
        // A blob that is another than its document says.
        let lie: JSONObject = [
            "_id": "lie", "_rev": "1-a",
            "b": ["@type": "blob", "digest": "sha1-cDeAaUm4FRpT/lYEVHrTVgYG3ps=", "length": 3],
            "_attachments": ["blob_1": ["digest": "sha1-cDeAaUm4FRpT/lYEVHrTVgYG3ps=", "data": "AQID"]],
        ]
        let incoming = try IncomingRevision(lie)
        #expect(throws: SyncError.self) { try incoming.save(in: two, contents: [:]) }
    }

    @Test("A new server that knows nothing gets everything, though much was exchanged with the old one")
    func newServer() async throws {
        let peers = try Peers()
        let database = try peers.database()
        try fill(database)
        try await peers.push(database)
        _ = try await peers.server.call("DELETE", "/db")
        let missing = try peers.replication(.push, database)
        let error = await #expect(throws: SyncError.self) { try await missing.run() }
        #expect(error?.status == 404)
        #expect(missing.status.activity == .stopped)
        try await peers.push(database) { $0.createsTarget = true }
        #expect(try Contents(try peers.remote) == Contents(database))
    }

    @Test("A document that is refused is reported, and keeps no other from coming across") func refused() async throws {
        let peers = try Peers()
        let (one, two) = (try peers.database("one"), try peers.database("two"))
        try fill(one)
        let remote = try peers.remote
        for database in [remote, two] {
            database.setValidation(named: "v") { revision in
                if revision.document.documentID == "doc-7" { try revision.reject("no sevens") }
                if revision.document.documentID == "picture" { try revision.reject("no pictures") }
            }
        }
        let push = try await peers.push(one)
        #expect(Set(push.failures.map(\.documentID)) == ["doc-7", "picture"])
        #expect(push.failures.allSatisfy { ($0.error as? SyncError)?.status == 403 && !$0.isTriedAgain })
        #expect(try remote.documentCount == one.documentCount - 2)
        // What is refused for good is not asked for again.
        #expect(try push.pendingDocumentIDs().isEmpty)
        remote.setValidation(named: "v", nil)
        try one.write("doc-7", ["n": 8])
        try await peers.push(one)
        let pull = try await peers.pull(two)
        #expect(pull.failures.map(\.documentID) == ["doc-7"])
        #expect((pull.failures.first?.error as? CofferError)?.status == 403)
    }

    @Test("Filters and lists of ids limit what goes either way") func filters() async throws {
        let peers = try Peers()
        let (one, two, three) = (try peers.database("one"), try peers.database("two"), try peers.database("three"))
        try fill(one)
        let filter: RevisionFilter = { revision, parameters in
            revision.document.documentID.hasPrefix(parameters["prefix"]?.stringValue ?? "?")
        }
        one.setFilter(named: "prefix", filter)
        try await peers.push(one) {
            $0.filter = "prefix"
            $0.filterParameters = ["prefix": "doc-1"]
        }
        #expect(try peers.remote.documentIDs() == one.documentIDs().filter { $0.hasPrefix("doc-1") })
        try await peers.push(one) { $0.documentIDs = ["picture", "nothing"] }
        #expect(try peers.remote.documentIDs().contains("picture"))
        let remote = try peers.remote
        remote.setFilter(named: "f/prefix", filter)
        try await peers.pull(two) {
            $0.filter = "f/prefix"
            $0.filterParameters = ["prefix": "doc-19"]
        }
        #expect(try two.documentIDs() == one.documentIDs().filter { $0.hasPrefix("doc-19") })
        try await peers.pull(three) { $0.documentIDs = ["picture"] }
        #expect(try three.documentIDs() == ["picture"])
        let unknown = try peers.replication(.push, one) { $0.filter = "unknown" }
        let error = await #expect(throws: CofferError.self) { try await unknown.run() }
        #expect(error?.status == 400)
    }

    @Test("A replication knows what is pending without asking anybody") func pending() async throws {
        let peers = try Peers()
        let database = try peers.database()
        try database.write("a", [:])
        let push = try peers.replication(.push, database)
        #expect(try push.pendingDocumentIDs() == ["a"])
        try await push.run()
        #expect(try push.pendingDocumentIDs() == [])
        for id in ["b", "c", "d"] { try database.write(id, [:]) }
        peers.wire.reset()
        #expect(try push.pendingDocumentIDs(limit: 2) == ["b", "c"])
        #expect(try push.isDocumentPending("d"))
        #expect(try !push.isDocumentPending("a"), "it was pushed")
        #expect(try !push.isDocumentPending("e"), "there is none")
        #expect(peers.wire.all.isEmpty)
        let pull = try peers.replication(.pull, database)
        #expect(try pull.pendingDocumentIDs() == [])
        #expect(try !pull.isDocumentPending("d"))
        let filtered = try peers.replication(.push, database) { $0.documentIDs = ["b"] }
        #expect(try filtered.isDocumentPending("b"))
        #expect(try !filtered.isDocumentPending("c"), "it is not to be pushed")
    }

    @Test("A replication goes on after a restart from where it was, with another connection") func restart()
        async throws
    {
        let peers = try Peers()
        let database = try peers.database()
        try database.write("a", [:])
        let push = try peers.replication(.push, database) { $0.isContinuous = true }
        push.start()
        #expect(try await eventually { try push.pendingDocumentIDs().isEmpty && push.status.activity == .idle })
        try database.write("b", [:])
        await push.restart()
        #expect(try await eventually { try push.pendingDocumentIDs().isEmpty && push.status.activity == .idle })
        #expect(push.status.completedCount <= 1, "what was pushed before isn't pushed again")
        await push.stop()
        #expect(push.status.activity == .stopped)
    }

    @Test(
        "Each request says the password, or one does for a cookie, and a wrong one stops the replication",
        arguments: [true, false])
    func credentials(isSession: Bool) async throws {
        let server = TestServer { $0.access = .passwords(["robin": "s3:cret&"]) }
        try server.database().write("a", [:])
        let wire = RecordingTransport(server)
        let peers = try Peers()
        let database = try peers.database()
        func replication(_ password: String) throws -> Replication {
            try peers.replication(.pull, database, through: wire) {
                $0.credentials =
                    isSession ? .session(name: "robin", password: password) : .basic(name: "robin", password: password)
            }
        }
        let wrong = try replication("wrong")
        let error = await #expect(throws: SyncError.self) { try await wrong.run() }
        #expect(error?.status == 401)
        #expect(!"\(error.map { "\($0)" } ?? "")".contains("wrong"))
        try await replication("s3:cret&").run()
        #expect(try database.documentIDs() == ["a"])
        if isSession {
            #expect(wire.count("_session") == 2)
            return
        }
        let inURL = try peers.replication(.pull, database, through: wire, url: "http://robin:s3:cret%26@server/db")
        try await inURL.run()
        #expect(inURL.remoteURL == "http://server/db")
        #expect(throws: SyncError.self) { try peers.replication(.pull, database, url: "ftp://server/db") }
    }

    @Test("A session that ended is begun anew") func sessionEnds() async throws {
        let server = TestServer { $0.access = .passwords(["robin": "secret"]) }
        try server.database().write("a", [:])
        let peers = try Peers()
        let forgetful = InterceptingTransport(server) { request, number, inner in
            // Whoever keeps sessions has forgotten this one.
            if number == 4 { server.service.sessions.endAll() }
            return try await inner.send(request)
        }
        let pull = try peers.replication(.pull, try peers.database(), through: forgetful) {
            $0.credentials = .session(name: "robin", password: "secret")
        }
        try await pull.run()
        #expect(try peers.database().documentIDs() == ["a"])
    }

    @Test("Options of a replication that don't go together are refused") func options() throws {
        let peers = try Peers()
        let database = try peers.database()
        for (direction, change) in [
            (
                .pull,
                {
                    $0.filter = "f"; $0.documentIDs = ["a"]
                }
            ),
            (
                .pull,
                {
                    $0.channels = ["a"]; $0.documentIDs = ["a"]
                }
            ),
            (
                .pull,
                {
                    $0.channels = ["a"]; $0.filter = "f"
                }
            ), (.push, { $0.channels = ["a"] }),
            (.pull, { $0.createsTarget = true }),
        ] as [(Replication.Direction, (inout ReplicationOptions) -> Void)] {
            let error = #expect(throws: SyncError.self) { try peers.replication(direction, database, change) }
            #expect(error?.status == 400)
        }
        for url in [
            "http://server", "http://server/", "file:///db", "http://server/db?x=1", "http:///db",
            "http://server/_users",
        ] {
            #expect(throws: SyncError.self, "\(url)") { try peers.replication(.pull, database, url: url) }
        }
    }

    @Test("Two databases of the same server have checkpoints of their own") func checkpoints() async throws {
        let peers = try Peers()
        _ = try peers.server.database("other")
        let database = try peers.database()
        try database.write("a", [:])
        try await peers.push(database)
        let other = try peers.replication(.push, database, url: "http://server/other")
        #expect(try other.pendingDocumentIDs() == ["a"])
        try await other.run()
        #expect(try peers.server.database("other").documentIDs() == ["a"])
    }

    @Test("A change says which database a pull brought it from, and nothing of others") func source() async throws {
        let peers = try Peers()
        let database = try peers.database()
        try peers.remote.write("theirs", [:])
        let changes = database.changes
        let pull = try peers.replication(.pull, database, url: "http://robin:s3cret@server/db")
        try await pull.run()
        try database.write("ours", [:])
        try await database.putExistingRevision(["_id": "given", "_rev": "1-a"], withID: "given")
        var sources: [String: String?] = [:]
        for await commit in changes {
            for change in commit.changes { sources[change.documentID] = change.source }
            if sources.count == 3 { break }
        }
        #expect(sources == ["theirs": "http://server/db", "ours": nil, "given": nil])
        #expect(pull.remoteURL == "http://server/db")
    }
}
