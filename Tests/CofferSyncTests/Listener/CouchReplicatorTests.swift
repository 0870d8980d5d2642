import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// What the replicator of CouchDB 3.5 asks a server was recorded; the same is asked here.
@Suite("Requests of CouchDB's replicator") struct CouchReplicatorTests {
    private let server = TestServer()

    /// The parts of a message, those of parts that are messages themselves as lists.
    private func parts(of answer: TestServer.Answer) async throws -> [[(fields: HTTPFields, body: [UInt8])]] {
        let reader = try MultipartReader(ByteStream(answer.body), fields: answer.fields)
        var parts: [[(fields: HTTPFields, body: [UInt8])]] = []
        while let part = try await reader.nextPart() {
            guard part.fields["Content-Type"]?.hasPrefix("multipart/related") == true else {
                parts.append([(part.fields, try await part.body.collect(upTo: 1 << 20))])
                continue
            }
            var inner: [(fields: HTTPFields, body: [UInt8])] = []
            let innerReader = try MultipartReader(part.body, fields: part.fields)
            while let part = try await innerReader.nextPart() {
                inner.append((part.fields, try await part.body.collect(upTo: 1 << 20)))
            }
            parts.append(inner)
        }
        return parts
    }

    private func bulk(_ documents: String) async throws -> TestServer.Answer {
        let body = #"{"new_edits":false,"docs":[\#(documents)]}"#
        return try await server.call(HTTPRequest("POST", "/db/_bulk_docs", body: .bytes(Array(body.utf8))))
    }

    /// CouchDB ended its pull where a stub came: its own database has no such content.
    @Test("Contents follow a revision that is asked for in parts, though nothing asks for them") func contentsFollow()
        async throws
    {
        let revision = try server.database().write("d", ["n": 1], attachment: ("a.txt", Data("hello".utf8)))
        try server.database().write("plain", ["n": 1])
        let id = revision.revisionID
        let open = try await server.call(
            "GET", "/db/d?revs=true&open_revs=%5B%22\(id)%22%5D&latest=true", fields: ["Accept": "multipart/mixed"])
        let bulk = try await server.call(
            "POST", "/db/_bulk_get?latest=true&revs=true&attachments=false",
            ["docs": [["id": "d", "rev": .string(id.description), "atts_since": []]]],
            fields: ["Accept": "multipart/mixed"])
        for answer in [open, bulk] {
            let message = try #require(try await parts(of: answer).first)
            #expect(message.count == 2)
            let json = try JSONValue(json: try #require(message.first).body)
            #expect(json["_attachments"]?["a.txt"]?["follows"] == true, "\(json)")
            #expect(json["_revisions"]?["start"] == 1)
            #expect(message.last?.body == Array("hello".utf8))
        }
        let plain = try await server.call(
            "GET", "/db/plain?open_revs=all", fields: ["Accept": "multipart/mixed"])
        #expect(try await parts(of: plain).first?.first?.fields["Content-Type"] == "application/json")
        // In JSON they come where they are asked for.
        let target = "/db/_bulk_get?latest=true&revs=true&attachments=false"
        let json = try await server.call(
            "POST", target, ["docs": [["id": "d"]]], fields: ["Accept": "application/json"])
        #expect(json.json["results"]?[0]?["docs"]?[0]?["ok"]?["_attachments"]?["a.txt"]?["stub"] == true)
    }

    /// CouchDB's replicator waited five minutes for each such part.
    @Test("A content without bytes stands in the JSON of a revision that comes in parts, and is no part")
    func emptyContents() async throws {
        let database = try server.database()
        try database.write("empty", [:], attachment: ("none.txt", Data()))
        try database.write("both", [:], attachment: ("some.txt", Data("some".utf8)))
        let draft = try database.document(withID: "both").newRevision()
        draft.setAttachment(named: "none.txt", contentType: "text/plain", content: Data())
        try await draft.save()
        for (id, partCount) in [("empty", 1), ("both", 2)] {
            let answer = try await server.call(
                "GET", "/db/\(id)?open_revs=all&revs=true", fields: ["Accept": "multipart/mixed"])
            let parts = try #require(try await parts(of: answer).first)
            #expect(parts.count == partCount)
            let document = try JSONValue(json: parts[0].body)
            #expect(document["_attachments"]?["none.txt"]?["data"] == "")
            #expect(document["_attachments"]?["none.txt"]?["follows"] == nil)
        }
    }

    /// A continuous feed names a document once for each of its changes, and so does the question about them.
    @Test(
        "Revisions of a document that is named twice are asked for together",
        arguments: ["_revs_diff", "_missing_revs"])
    func namedTwice(_ call: String) async throws {
        try server.database().write("a", [:])
        let answer = try await server.call(
            HTTPRequest(
                "POST", "/db/\(call)",
                body: .bytes(Array(#"{"a":["1-x","2-y"],"b":["1-z"],"a":["2-y","3-u"]}"#.utf8))))
        #expect(answer.status == 200, "\(answer.text)")
        let missing = call == "_revs_diff" ? answer.json["a"]?["missing"] : answer.json["missing_revs"]?["a"]
        #expect(missing?.arrayValue?.compactMap(\.stringValue).sorted() == ["1-x", "2-y", "3-u"])
        #expect(answer.text.components(separatedBy: #""a""#).count == 2, "It is answered once: \(answer.text)")
        for text in [#"{"a":["1-x"],"a":5}"#, #"{"a":["x"],"a":["1-x"]}"#] {
            let refused = try await server.call(HTTPRequest("POST", "/db/\(call)", body: .bytes(Array(text.utf8))))
            #expect(refused.status == 400)
        }
    }

    @Test("A client that has a revision in parts that it did not ask for in parts reads it all the same")
    func unaskedParts() async throws {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        try remote.write("a", ["n": 1], attachment: ("x", Data([1, 2, 3])))
        try remote.write("b", ["n": 1])
        let gateway = InterceptingTransport(peers.server) { request, _, inner in
            var request = request
            if request.target.contains("_bulk_get") { request.fields["Accept"] = "multipart/mixed" }
            return try await inner.send(request)
        }
        let pull = try peers.replication(.pull, database, through: gateway)
        try await pull.run()
        #expect(pull.failures.isEmpty)
        #expect(try Contents(database) == Contents(remote))
    }

    /// CouchDB sends a revision once more, with its contents, for `missing_stub` alone; what was called `file_exists` ended it.
    @Test("A stub whose content isn't here is a missing_stub, and a database that is there a file_exists")
    func preconditions() async throws {
        #expect(try await server.call("PUT", "/db").status == 201)
        let again = try await server.call("PUT", "/db")
        #expect(again.status == 412 && again.json["error"] == "file_exists")
        let stub =
            #"{"_id":"a","_rev":"1-a","_attachments":{"x":{"stub":true,"revpos":1,"length":3,"digest":"md5-x"}}}"#
        for target in ["/db/a?new_edits=false", "/db/a"] {
            let document = target == "/db/a" ? try json(stub.replacing(#""_rev":"1-a","#, with: "")) : try json(stub)
            let answer = try await server.call("PUT", target, document)
            #expect(answer.status == 412 && answer.json["error"] == "missing_stub", "\(target): \(answer.text)")
        }
        let row = try await bulk(stub).json[0]
        #expect(row?["error"] == "missing_stub" && row?["status"] == 412)
        // Somebody else has the database open.
        let other = try server.stores.manager.patientDatabase(named: "db")
        let deleted = try await server.call("DELETE", "/db")
        #expect(deleted.status != 412 || deleted.json["error"] == "database_open", "\(deleted.text)")
        withExtendedLifetime(other) {}
    }

    private static let long = "1-" + String(repeating: "a", count: 250)
    private static let longID = String(repeating: "i", count: 950)
    private static let deep = String(repeating: "[", count: 600) + String(repeating: "]", count: 600)

    /// One of them stopped CouchDB's push for ever.
    @Test("Documents that can't be held are refused one by one, and those beside them are saved") func oneByOne()
        async throws
    {
        _ = try await server.call("PUT", "/db")
        let asked = try await server.call(
            "POST", "/db/_revs_diff",
            [
                Self.longID: ["1-a"], "lr": [.string(Self.long), "1-b"], "late": ["99999999999999999999-a"],
                "ok": ["1-a"],
            ])
        #expect(asked.status == 200, "\(asked.text)")
        #expect(asked.json[Self.longID]?["missing"] == ["1-a"])
        #expect(Set(asked.json["lr"]?["missing"]?.arrayValue ?? []) == ["1-b", .string(Self.long)])
        #expect(asked.json["late"]?["missing"] == ["99999999999999999999-a"])
        #expect(try await server.call("POST", "/db/_revs_diff", ["a": ["x"]]).status == 400)

        let answer = try await bulk(
            #"""
            {"_id":"ok1","_rev":"1-a","n":1},{"_id":"big","_rev":"1-b","n":123456789012345678901234567890},
            {"_id":"deep","_rev":"1-c","n":\#(Self.deep)},{"_id":"\#(Self.longID)","_rev":"1-d"},
            {"_id":"lr","_rev":"\#(Self.long)"},{"\u005fid":"surrogate","_rev":"1-e","s":"\ud800"},
            {"_id":"twice","_rev":"1-f","k":{"a":1,"a":2}},{"_id":"ok2","_rev":"1-a","e":1e3, "s" : "\"\\\u00e9" }
            """#)
        #expect(answer.status == 201, "\(answer.text)")
        let rows = answer.json.arrayValue ?? []
        #expect(
            rows.map { $0["id"]?.stringValue }
                == ["big", "deep", Self.longID, "lr", "surrogate", "twice"])
        #expect(
            rows.compactMap { $0["rev"]?.stringValue } == ["1-b", "1-c", "1-d", Self.long, "1-e", "1-f"])
        #expect(rows.allSatisfy { $0["error"]?.stringValue != nil && $0["reason"]?.stringValue != nil })
        #expect(try server.database().documentIDs() == ["ok1", "ok2"])
        #expect(try await server.call("GET", "/db/ok2").json["s"] == "\"\\é")

        // An edit of many is no other.
        let edits = #"{"docs":[{"_id":"big","n":1e400},{"_id":"ok3"}]}"#
        let edited = try await server.call(HTTPRequest("POST", "/db/_bulk_docs", body: .bytes(Array(edits.utf8))))
        #expect(edited.status == 201 && edited.json[0]?["error"] == "bad_request" && edited.json[1]?["ok"] == true)
    }

    @Test(
        "A batch that is no JSON is a 400 as a whole, and nothing of it is saved",
        arguments: [
            #"{"_id":"a","_rev":"1-a","n":01234567890123456789012345}"#, #"{"_id":"a","_rev":"1-a","n":1e}"#,
            #"{"_id":"a","_rev":"1-a","n":tru}"#, #"{"_id":"a","_rev":"1-a","n":"\x"}"#, #"{"_id":"a","_rev":"1-a",}"#,
            #"{"_id":"a","_rev":"1-a"]"#, #"{"_id":"a" "_rev":"1-a"}"#, #"{"_id":"a","_rev":"1-a","n":"\u12"}"#,
            "{\"_id\":\"a\",\"_rev\":\"1-a\",\"n\":\"\u{1}\"}", "{a:1}", "[1,]", "-", "1.", "\"",
        ])
    func noJSON(document: String) async throws {
        _ = try await server.call("PUT", "/db")
        for text in ["\(document),{\"_id\":\"b\",\"_rev\":\"1-b\"}", "{\"n\":1e999},\(document)"] {
            let answer = try await bulk(text)
            #expect(answer.status == 400, "\(answer.text)")
        }
        #expect(try server.database().documentCount == 0)
    }

    /// CouchDB's replicator skips what is forbidden. Any other refusal of a revision with attachments ends its push.
    @Test("A revision with attachments that can't be held is forbidden") func forbidden() async throws {
        _ = try await server.call("PUT", "/db")
        func put(_ id: String, _ document: String) async throws -> TestServer.Answer {
            let message = """
                --BND\r\nContent-Type: application/json\r\n\r\n\(document)\r\n--BND\r
                Content-Disposition: attachment; filename="y"\r\nContent-Type: a/b\r\nContent-Length: 3\r\n\r
                abc\r\n--BND--
                """
            return try await server.call(
                HTTPRequest(
                    "PUT", "/db/\(id)?new_edits=false", fields: ["Content-Type": "multipart/related; boundary=\"BND\""],
                    body: .bytes(Array(message.utf8))))
        }
        let attachments = #""_attachments":{"y":{"content_type":"a/b","revpos":1,"length":3,"follows":true}}"#
        for (id, json) in [
            ("big", #"{"_id":"big","_rev":"1-a","n":123456789012345678901234567890,\#(attachments)}"#),
            ("deep", #"{"_id":"deep","_rev":"1-a","n":\#(Self.deep),\#(attachments)}"#),
            (Self.longID, #"{"_id":"\#(Self.longID)","_rev":"1-a",\#(attachments)}"#),
            ("lr", #"{"_id":"lr","_rev":"\#(Self.long)",\#(attachments)}"#),
            (
                "old",
                #"{"_id":"old","_rev":"2-b","_revisions":{"start":2,"ids":["b","\#(Self.long)"]},\#(attachments)}"#
            ),
        ] {
            let answer = try await put(id, json)
            #expect(answer.status == 403 && answer.json["error"] == "forbidden", "\(id.prefix(9)): \(answer.text)")
        }
        #expect(try await put("a", #"{"_id":"a","_rev":"1-a",\#(attachments)"#).status == 400)
        #expect(try await put("a", #"{"_id":"a","_rev":"1-a",\#(attachments)}"#).status == 201)
        #expect(try server.database().documentIDs() == ["a"])
    }

    /// `packed by the client`, as a client of CouchDB's packs it (Content-Encoding).
    private static let packed =
        Data(base64Encoded: "H4sIAAAAAAAC/ytITM5OTVFIqlQoyUhVSM7JTM0rAQBy65yZFAAAAA==").map(Array.init) ?? []

    /// CouchDB says the packed length then, and the packed bytes' digest.
    @Test("An attachment that a client of CouchDB's packed comes across, by push and by pull") func packedByClient()
        async throws
    {
        _ = try await server.call("PUT", "/db")
        func put(_ id: String, length: Int) async throws -> TestServer.Answer {
            let head = """
                --BND\r\nContent-Type: application/json\r\n\r
                {"_id":"\(id)","_rev":"1-a","_attachments":{"z.bin":{"content_type":"a/b","revpos":1,\
                "digest":"\(try md5())","length":\(length),"follows":true,"encoding":"gzip","encoded_length":40}}}\r
                --BND\r\nContent-Disposition: attachment; filename="z.bin"\r\nContent-Type: a/b\r
                Content-Length: 40\r\nContent-Encoding: gzip\r\n\r\n
                """
            return try await server.call(
                HTTPRequest(
                    "PUT", "/db/\(id)?new_edits=false", fields: ["Content-Type": "multipart/related; boundary=\"BND\""],
                    body: .bytes(Array(head.utf8) + Self.packed + Array("\r\n--BND--".utf8))))
        }
        for (id, length) in [("packed", 40), ("unpacked", 20)] {
            let answer = try await put(id, length: length)
            #expect(answer.status == 201, "\(answer.text)")
            #expect(try await server.call("GET", "/db/\(id)/z.bin").text == "packed by the client")
            #expect(try server.database()[id]?.currentRevision?.attachment(named: "z.bin")?.length == 20)
        }
        for length in [39, 41, 19, 21, 0] { #expect(try await put("bad", length: length).status == 400) }

        let peers = try Peers()
        let database = try peers.database()
        let content = Data("packed by the client".utf8)
        try peers.remote.write("z", ["n": 1], attachment: ("z.bin", content))
        let ours = try #require(try peers.remote["z"]?.currentRevision?.attachment(named: "z.bin")).digest
        let digest = try md5()
        let couch = InterceptingTransport(peers.server) { request, _, inner in
            let response = try await inner.send(request)
            if request.target.contains("z.bin") {
                return HTTPResponse(200, fields: ["Content-Encoding": "gzip"], body: .bytes(Self.packed))
            }
            guard request.target.contains("_bulk_get") else { return response }
            let text = String(decoding: try await response.body.stream.collect(upTo: 1 << 20), as: UTF8.self)
                .replacing(ours, with: digest).replacing("\"length\":20", with: "\"length\":40")
            return HTTPResponse(200, fields: response.fields, body: .bytes(Array(text.utf8)))
        }
        let pull = try peers.replication(.pull, database, through: couch)
        try await pull.run()
        #expect(pull.failures.isEmpty, "\(pull.failures)")
        #expect(try Contents(database) == Contents(peers.remote))
    }

    private func md5() throws -> String {
        var digest = try StreamingDigest(.md5)
        digest.update(Self.packed)
        return "md5-" + Data(digest.finalize()).base64EncodedString()
    }

    /// The second replication of the same databases failed: its checkpoint then has a history.
    @Test("CouchDB's checkpoint is saved again and again, with the history that it says") func checkpoint() async throws
    {
        _ = try await server.call("PUT", "/db")
        let first = try await server.call(
            "PUT", "/db/_local/c?new_edits=true", ["_id": "_local/c", "source_last_seq": 1])
        #expect(first.json["rev"] == "0-1")
        let second = try await server.call(
            "PUT", "/db/_local/c",
            [
                "_id": "_local/c", "_rev": "0-1", "_revisions": ["start": 0, "ids": ["1"]], "source_last_seq": 2,
            ])
        #expect(second.status == 201 && second.json["rev"] == "0-2", "\(second.text)")
        #expect(try await server.call("GET", "/db/_local/c").json["source_last_seq"] == 2)
    }
}
