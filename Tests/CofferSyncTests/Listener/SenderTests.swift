import Coffer
import CofferModel
import Foundation
import Testing

@testable import CofferSync

/// Who is answered, and what an answer may cost.
@Suite("Senders of requests, and what an answer costs") struct SenderTests {
    let server = TestServer()

    @Test(
        "Pages of the web are not served, by whatever name they come here",
        arguments: [
            (["Host": "127.0.0.1:5984"], 200), (["Host": "localhost"], 200), (["Host": "[::1]:5984"], 200),
            (["Host": "evil.example:5984"], 403), (["Host": "127.0.0.1.evil.example"], 403),
            (["Host": "localhost:1", "Origin": "http://localhost:1"], 200),
            (["Host": "localhost:1", "Origin": "http://localhost:2"], 403),
            (["Host": "localhost", "Origin": "https://evil.example"], 403),
            (["Host": "localhost", "Origin": "null"], 403), (["Origin": "https://evil.example"], 403),
        ] as [([String: String], Int)])
    func origins(fields: [String: String], status: Int) async throws {
        _ = try server.database()
        var sent = HTTPFields()
        for (name, value) in fields { sent[name] = value }
        #expect(try await server.call("GET", "/db", fields: sent).status == status)
        #expect(try await server.call("PUT", "/db/a", [:], fields: sent).status == (status == 200 ? 201 : 403))
    }

    @Test("A request that names two hosts is refused, whichever they are") func twoHosts() async throws {
        _ = try server.database()
        let fields: HTTPFields = ["Host": "localhost", "host": "localhost"]
        #expect(try await server.call("GET", "/db", fields: fields).status == 400)
    }

    @Test("Where passwords are asked for, every host name leads to the server, and no page of another origin does")
    func namedServer()
        async throws
    {
        let server = TestServer { $0.access = .passwords(["robin": "secret"]) }
        _ = try server.database()
        let robin = "Basic " + Data("robin:secret".utf8).base64EncodedString()
        for (fields, status) in [
            (["Host": "notes.example", "Authorization": robin], 200),
            (["Host": "notes.example", "Authorization": robin, "Origin": "https://notes.example"], 200),
            (["Host": "notes.example", "Authorization": robin, "Origin": "https://evil.example"], 403),
        ] as [(HTTPFields, Int)] {
            #expect(try await server.call("GET", "/db", fields: fields).status == status)
        }
    }

    @Test("Contents that are too large for JSON are had in parts alone") func inlineLimit() async throws {
        let server = TestServer { $0.documentByteLimit = 100_000 }
        let database = try server.database()
        let revision = try database.write("big", [:], attachment: ("a", Data(repeating: 1, count: 200_000)))
        try database.write("small", [:], attachment: ("a", Data(repeating: 1, count: 200)))
        #expect(try await server.call("GET", "/db/big?attachments=true").status == 413)
        #expect(try await server.call("GET", "/db/big").status == 200)
        let parts = try await server.call("GET", "/db/big?attachments=true", fields: ["Accept": "multipart/related"])
        #expect(parts.status == 200 && parts.body.count > 200_000)
        let bulk = try await server.call(
            "POST", "/db/_bulk_get?attachments=true", ["docs": [["id": "big"], ["id": "small"]]])
        let results = try #require(bulk.json["results"]?.arrayValue)
        #expect(results[0]["docs"]?.arrayValue?.first?["error"]?["rev"]?.stringValue == revision.revisionID.description)
        #expect(results[1]["docs"]?.arrayValue?.first?["ok"]?["_attachments"]?["a"]?["data"] != nil)
    }

    @Test("Parts of a message are made as their turn comes, however many are asked for") func lazyParts() async throws {
        let database = try server.database()
        try database.write("big", ["text": .string(String(repeating: "x", count: 100_000))])
        let docs = [JSONValue](repeating: ["id": "big"], count: 20_000)
        let body = try JSONValue.object(["docs": .array(docs)]).canonicalJSON()
        let response = await server.service.respond(
            to: HTTPRequest(
                "POST", "/db/_bulk_get", fields: ["Accept": "multipart/mixed"], body: .bytes(body)))
        // 2 GB, if all were made at once.
        let reader = try MultipartReader(response.body.stream, fields: response.fields)
        for _ in 0..<3 {
            let part = try #require(try await reader.nextPart())
            #expect(try await part.body.collect(upTo: 1 << 20).count > 100_000)
        }
    }

    @Test("A leaf that doesn't win gets attachments over HTTP, too") func losingLeaf() async throws {
        let database = try server.database()
        for ids in [["2-b", "1-a"], ["2-c", "1-a"]] {
            try await database.putExistingRevision(
                ["w": 1], withID: "d", history: ids.compactMap { RevisionID($0) })
        }
        let put = try await server.call(
            HTTPRequest("PUT", "/db/d/a?rev=2-b", fields: ["Content-Type": "a/b"], body: .bytes([1, 2])))
        #expect(put.status == 201)
        let rev = try #require(put.json["rev"]?.stringValue)
        #expect(try await server.call("DELETE", "/db/d/a?rev=\(rev)").status == 200)
        #expect(
            try await server.call(HTTPRequest("PUT", "/db/d/a?rev=1-a", body: .bytes([1]))).status == 409)
    }

    @Test("A stub for which nothing follows is refused, whatever it says") func strayFollows() async throws {
        _ = try server.database()
        let answer = try await server.call(
            "PUT", "/db/d?new_edits=false",
            [
                "_rev": "1-a",
                "_attachments": ["a": ["follows": true, "digest": "sha1-aaa", "length": 3, "content_type": "a/b"]],
            ])
        #expect(answer.status == 412)
    }

    @Test("A revision id may hold anything but a header's end") func strangeRevision() async throws {
        let database = try server.database()
        let id = try #require(RevisionID("1-a\r\nX-Evil: y"))
        try await database.putExistingRevision([:], withID: "d", history: [id])
        let answer = try await server.call("GET", "/db/d")
        #expect(answer.status == 200)
        #expect(answer.fields["ETag"]?.contains("\r") == false && answer.fields["X-Evil"] == nil)
    }

    @Test(
        "Content that a client has is not sent again, however it says so",
        arguments: ["TAG", "W/TAG", "\"x\", TAG", "*"])
    func known(form: String) async throws {
        let database = try server.database()
        try database.write("d", [:], attachment: ("a", Data([1])))
        for target in ["/db/d", "/db/d/a"] {
            let tag = try #require(try await server.call("GET", target).fields["ETag"])
            let fields: HTTPFields = ["If-None-Match": form.replacing("TAG", with: tag)]
            #expect(try await server.call("GET", target, fields: fields).status == 304)
        }
        #expect(try await server.call("GET", "/db/d", fields: ["If-None-Match": "\"x\""]).status == 200)
    }
}
