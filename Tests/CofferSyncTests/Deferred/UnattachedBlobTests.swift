import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// CouchDB knows no blobs: it may hold a document that names one, and no such attachment. The entry that was added to it could
/// never be pushed, and ended CouchDB's pull of everything.
@Suite("Blobs without an attachment", .serialized) struct UnattachedBlobTests {
    private static let content = Data([4, 5, 6])
    private static let blob = #"{"@type":"blob","digest":"\#(digest)","length":3}"#
    private static var digest: String { Blob(data: content).digest ?? "" }

    /// A transport behind which no answer of `_bulk_get` has an entry for a blob.
    private func withoutEntries(_ server: TestServer) -> InterceptingTransport {
        InterceptingTransport(server) { request, _, inner in
            var response = try await inner.send(request)
            guard request.target.contains("_bulk_get") else { return response }
            let json = try JSONValue(json: try await response.body.stream.collect(upTo: 1 << 20))
            let rows = try #require(json["results"]?.arrayValue).map { row in
                var row = row.objectValue ?? [:]
                var document = row["docs"]?[0]?["ok"]?.objectValue ?? [:]
                document["_attachments"] = nil
                row["docs"] = [["ok": .object(document)]]
                return JSONValue.object(row)
            }
            response.body = .bytes(try JSONValue.object(["results": .array(rows)]).canonicalJSON())
            return response
        }
    }

    private func push(_ peers: Peers, _ database: Database, to server: TestServer) async throws -> Replication {
        _ = try server.database()
        let push = try peers.replication(.push, database, through: server)
        try await push.run()
        return push
    }

    @Test(
        "A document whose blob never was here goes on as it came, and so does what is made of it",
        arguments: [digest, "another kind of digest " + String(repeating: "x", count: 2_000), "\u{0}"])
    func asItCame(_ digest: String) async throws {
        let peers = try Peers()
        let server = TestServer()
        _ = try server.database()
        let blob: JSONValue = ["@type": "blob", "digest": .string(digest), "length": 3]
        let body: JSONValue = [
            "new_edits": false,
            "docs": [["_id": "face", "_rev": "1-a", "face": blob, "list": [blob]], ["_id": "plain", "_rev": "1-b"]],
        ]
        #expect(try await server.call("POST", "/db/_bulk_docs", body).text == "[]\n")
        let document = try await server.call("GET", "/db/face?attachments=true")
        #expect(document.status == 200 && document.json["_attachments"] == nil, "\(document.text)")
        let open = try await server.call("GET", "/db/face?open_revs=all", fields: ["Accept": "multipart/mixed"])
        #expect(open.text.contains(#""_id":"face""#) && !open.text.contains("blob_1"), "\(open.text)")

        let database = try server.database()
        try database.write("face", ["n": 2])
        let other = TestServer()
        let push = try await push(peers, database, to: other)
        #expect(push.failures.isEmpty, "\(push.failures)")
        #expect(try Contents(other.database()) == Contents(database))
        #expect(try await database.verify(.everything).findings.isEmpty)
    }

    @Test("A blob that had an entry keeps it, and one that gets an entry later has it from then on") func entries()
        async throws
    {
        let peers = try Peers()
        try peers.remote.write("face", ["face": .blob(Blob(data: Self.content))])
        let database = try peers.database()
        let bare = try peers.replication(.pull, database, through: withoutEntries(peers.server)) {
            $0.downloadsAttachments = false
        }
        try await bare.run()
        let revision = try #require(try database.document(withID: "face").currentRevision)
        #expect(try OutgoingRevision(revision).contents.isEmpty)
        #expect(try await push(peers, database, to: TestServer()).failures.isEmpty)

        // Another document says who has it.
        try peers.remote.write("again", ["face": .blob(Blob(data: Self.content))])
        try await peers.pull(database) { $0.downloadsAttachments = false }
        for id in ["face", "again"] {
            let revision = try #require(try database.document(withID: id).currentRevision)
            #expect(try OutgoingRevision(revision).contents.map(\.name) == ["blob_1"], "\(id)")
        }
        // A later one without an entry takes it away from nobody.
        let answer: JSONObject = ["_id": "third", "_rev": "1-c", "face": try json(Self.blob)]
        try IncomingRevision(answer).save(in: database, contents: [:])
        #expect(try OutgoingRevision(revision).contents.map(\.name) == ["blob_1"])
    }

    @Test("A content that came with its blob goes with it, whatever was noted before") func present() async throws {
        let peers = try Peers()
        let database = try peers.database()
        let bare: JSONObject = ["_id": "face", "_rev": "1-a", "face": try json(Self.blob)]
        try IncomingRevision(bare).save(in: database, contents: [:])
        try database.write("other", ["face": .blob(Blob(data: Self.content))])
        let server = TestServer()
        #expect(try await push(peers, database, to: server).failures.isEmpty)
        let face = try #require(try server.database().document(withID: "face").currentRevision?.blob(forKey: "face"))
        #expect(try face.content == Self.content)
    }

    @Test("A revision that is refused leaves no note of its blobs") func refused() throws {
        let database = try Peers().database()
        database.setValidation(named: "none") { _ in throw SyncError(403, "no") }
        let bare: JSONObject = ["_id": "face", "_rev": "1-a", "face": try json(Self.blob)]
        #expect(throws: (any Error).self) { try IncomingRevision(bare).save(in: database, contents: [:]) }
        #expect(try !UnattachedBlobs.contains(Self.digest, in: database))
    }
}

/// A stub, an error, or an answer without parts ends CouchDB 3.5's pull of everything.
@Suite("Serving documents whose contents are away", .serialized) struct DeferredServiceTests {
    private func ask(_ server: TestServer, _ target: String, _ accept: String) async throws -> TestServer.Answer {
        try await server.call("GET", target, fields: ["Accept": accept])
    }

    @Test("A revision whose content is elsewhere has no part among open_revs, and an error of its own elsewhere")
    func leftOut() async throws {
        let server = TestServer()
        let database = try server.database()
        let stub: JSONObject = [
            "_id": "film", "_rev": "1-a",
            "_attachments": ["a": ["stub": true, "revpos": 1, "length": 3, "digest": "md5-x", "content_type": "a/b"]],
        ]
        try IncomingRevision(stub).save(in: database, contents: [:])
        try database.write("film", ["n": 2])
        let leaf = try #require(try database.document(withID: "film").currentRevision?.revisionID)
        let list = "%5B%22\(leaf)%22,%229-z%22%5D"
        let open = try await ask(server, "/db/film?revs=true&open_revs=\(list)", "multipart/mixed")
        #expect(open.status == 200 && !open.text.contains("film") && open.text.contains(#""missing":"9-z""#))
        // One who has the revision before it has its content.
        let since = try await ask(
            server, "/db/film?revs=true&open_revs=\(list)&atts_since=%5B%221-a%22%5D", "multipart/mixed")
        #expect(since.text.contains(#""_id":"film""#) && since.text.contains(#""stub":true"#), "\(since.text)")
        let inJSON = try await ask(server, "/db/film?open_revs=\(list)&attachments=true", "application/json")
        #expect(inJSON.json[0]?["missing"] == .string(leaf.description), "\(inJSON.text)")
        for accept in ["application/json", "multipart/mixed"] {
            let answer = try await server.call(
                "POST", "/db/_bulk_get?attachments=true", ["docs": [["id": "film"]]], fields: ["Accept": accept])
            #expect(answer.text.contains("the content of an attachment is not here"), "\(answer.text)")
        }
        // Who asks for no contents is told what there is.
        let bare = try await server.call(
            "POST", "/db/_bulk_get", ["docs": [["id": "film"]]], fields: ["Accept": "application/json"])
        #expect(bare.json["results"]?[0]?["docs"]?[0]?["ok"]?["_attachments"]?["a"]?["stub"] == true)
    }

    @Test("CouchDB's replicator is told of no revision whose content is not here, and of all others") func changes()
        async throws
    {
        let server = TestServer()
        let database = try server.database()
        for (id, revision) in [("film", "1-a"), ("both", "1-b")] {
            let stub: JSONObject = [
                "_id": .string(id), "_rev": .string(revision),
                "_attachments": ["a": ["stub": true, "revpos": 1, "length": 3, "digest": "md5-x"]],
            ]
            try IncomingRevision(stub).save(in: database, contents: [:])
        }
        try IncomingRevision(["_id": "both", "_rev": "1-a"]).save(in: database, contents: [:])
        let saved = try database.write("has", ["n": 1], attachment: ("a", Data([1])))
        let has = "has \(saved.revisionID.description.prefix(3))"
        let couchDB: HTTPFields = ["User-Agent": "CouchDB-Replicator/3.5.0"]
        func changes(_ style: String, _ fields: HTTPFields) async throws -> [String] {
            let answer = try await server.call("GET", "/db/_changes?style=\(style)&limit=10", fields: fields)
            return (answer.json["results"]?.arrayValue ?? []).map { row in
                let revisions = (row["changes"]?.arrayValue ?? []).compactMap { $0["rev"]?.stringValue?.prefix(3) }
                return "\(row["id"]?.stringValue ?? "") \(revisions.joined(separator: " "))"
            }.sorted()
        }
        #expect(try await changes("all_docs", [:]) == ["both 1-b 1-a", "film 1-a", has])
        #expect(try await changes("all_docs", couchDB) == ["both 1-a", has])
        #expect(try await changes("main_only", couchDB) == [has])
    }
}
