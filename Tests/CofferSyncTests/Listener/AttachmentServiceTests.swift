import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

@Suite("Serving attachments") struct AttachmentServiceTests {
    let server = TestServer()

    /// What curl would send: a document and two contents, the second packed.
    private func related(_ document: String, _ contents: [(name: String?, fields: String, bytes: [UInt8])]) -> [UInt8] {
        var message = Array("--BND\r\nContent-Type: application/json\r\n\r\n\(document)".utf8)
        for (name, fields, bytes) in contents {
            let disposition = name.map { "Content-Disposition: attachment; filename=\"\($0)\"\r\n" } ?? ""
            message += Array("\r\n--BND\r\n\(disposition)\(fields)\r\n".utf8) + bytes
        }
        return message + Array("\r\n--BND--".utf8)
    }

    private func put(_ target: String, _ body: [UInt8]) async throws -> TestServer.Answer {
        try await server.call(
            HTTPRequest(
                "PUT", target, fields: ["Content-Type": "multipart/related; boundary=\"BND\""], body: .bytes(body)))
    }

    @Test("Attachments are put, got in part, named by their digests, and deleted over HTTP") func attachments()
        async throws
    {
        _ = try await server.call("PUT", "/db")
        let put = try await server.call(
            HTTPRequest(
                "PUT", "/db/doc/dir/a%20b.txt", fields: ["Content-Type": "text/plain"],
                body: .bytes(Array("0123456789".utf8))))
        #expect(put.status == 201)
        let rev = try #require(put.json["rev"]?.stringValue)
        let got = try await server.call("GET", "/db/doc/dir/a%20b.txt")
        #expect(got.text == "0123456789")
        #expect(got.fields["Content-Type"] == "text/plain" && got.fields["Content-Security-Policy"] == "sandbox")
        let tag = try #require(got.fields["ETag"])
        #expect(tag == "\"sha1-h6zsF82dzSCnFsws9nQXtxyKcBY=\"")
        #expect(try await server.call("GET", "/db/doc/dir%2Fa%20b.txt", fields: ["If-None-Match": tag]).status == 304)
        for (range, status, text) in [
            ("bytes=0-3", 206, "0123"), ("bytes=7-", 206, "789"), ("bytes=-2", 206, "89"), ("bytes=8-100", 206, "89"),
            ("bytes=10-", 416, ""), ("bytes=5-2", 200, "0123456789"), ("bytes=0-1,4-5", 200, "0123456789"),
            ("lines=1-2", 200, "0123456789"), ("bytes=-0", 416, ""), ("bytes=-", 200, "0123456789"),
        ] {
            let part = try await server.call("GET", "/db/doc/dir/a%20b.txt", fields: ["Range": range])
            #expect(part.status == status && part.text == text, "\(range)")
        }
        let other = try await server.call(
            "GET", "/db/doc/dir/a%20b.txt", fields: ["Range": "bytes=0-3", "If-Range": "\"other\""])
        #expect(other.status == 200)
        #expect(try await server.call("PUT", "/db/doc/dir/a%20b.txt", [:]).status == 409)
        #expect(try await server.call("GET", "/db/doc/none").status == 404)
        #expect(try await server.call("DELETE", "/db/doc/dir/a%20b.txt?rev=\(rev)").status == 200)
        #expect(try await server.call("GET", "/db/doc/dir/a%20b.txt").status == 404)
        #expect(try await server.call("GET", "/db/doc/dir/a%20b.txt?rev=\(rev)").text == "0123456789")
    }

    private static let packed = Data(base64Encoded: "H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==").map(Array.init) ?? []
    private static let document = #"""
        {"_id":"mp","_rev":"3-ccc","_revisions":{"start":3,"ids":["ccc","bbb","aaa"]},"_attachments":{
        "x.txt":{"content_type":"text/plain","revpos":1,"length":5,"follows":true,"encoding":"gzip","encoded_length":25},
        "../y":{"content_type":"a/b","revpos":3,"digest":"md5-Uonfc331cyb83SJZevsfrA==","length":3,"follows":true}}}
        """#
    private static let first = (
        name: String?.some("../y"), fields: "Content-Type: a/b\r\n", bytes: [1, 2, 3] as [UInt8]
    )
    private static let second = (name: String?.some("x.txt"), fields: "Content-Encoding: gzip\r\n", bytes: packed)

    /// They once became the content as they are.
    @Test("Contents that stand packed in the JSON are unpacked, in edits and in others' revisions") func packedInline()
        async throws
    {
        _ = try await server.call("PUT", "/db")
        let text = Data(Self.packed).base64EncodedString()
        let good: JSONValue = [
            "content_type": "a/b", "data": .string(text), "encoding": "gzip", "length": 5, "encoded_length": 25,
        ]
        let edit = try await server.call("PUT", "/db/edit", ["_attachments": ["a": good]])
        #expect(edit.status == 201, "\(edit.text)")
        for (id, digest) in [
            ("one", try md5(Data(Self.packed))), ("two", try md5(Data("hello".utf8))), ("three", nil),
        ] as [(String, String?)] {
            var entry = try #require(good.objectValue)
            entry["digest"] = digest.map { .string("md5-" + $0) }
            let put = try await server.call(
                "PUT", "/db/\(id)?new_edits=false", ["_rev": "1-a", "_attachments": ["a": .object(entry)]])
            #expect(put.status == 201, "\(put.text)")
            #expect(try await server.call("GET", "/db/\(id)/a").text == "hello")
        }
        #expect(try await server.call("GET", "/db/edit/a").text == "hello")
        let bad: [(String, JSONValue)] = [
            ("digest", .string("md5-" + (try md5(Data("other".utf8))))), ("length", 6), ("data", "AAAA"),
            ("data", .string(Data(Self.packed.dropLast()).base64EncodedString())), ("data", "%"),
            ("data", .string(Data(Self.packed + [0]).base64EncodedString())), ("encoding", "br"),
        ]
        for (key, value) in bad {
            var entry = try #require(good.objectValue)
            entry[key] = value
            let put = try await server.call(
                "PUT", "/db/bad?new_edits=false", ["_rev": "1-a", "_attachments": ["a": .object(entry)]])
            #expect(put.status == 400, "\(key): \(put.text)")
        }
        #expect(try await server.call("GET", "/db/bad").status == 404)
        // Beside the digest of a packed form that it isn't sent in, as CouchDB gives out texts.
        let plain: JSONValue = [
            "content_type": "text/plain", "data": "aGVsbG8=", "digest": .string("md5-" + (try md5(Data(Self.packed)))),
        ]
        for (id, type, status) in [("text", "text/plain", 201), ("image", "image/png", 400)] {
            var entry = try #require(plain.objectValue)
            entry["content_type"] = .string(type)
            let put = try await server.call(
                "PUT", "/db/\(id)?new_edits=false", ["_rev": "1-a", "_attachments": ["a": .object(entry)]])
            #expect(put.status == status, "\(put.text)")
        }
    }

    @Test("What unpacks to more than a revision's contents may have is refused before it is unpacked") func packedBomb()
    {
        let content = InlineContent(
            text: Data(Self.packed).base64EncodedString(), isPacked: true, digest: nil, length: nil,
            subject: "a content")
        #expect(throws: SyncError.self) { try content.data(upTo: 4) }
        #expect(throws: Never.self) { try content.data(upTo: 5) }
        let plain = InlineContent(text: "aGVsbG8=", isPacked: false, digest: nil, length: nil, subject: "a content")
        #expect(throws: SyncError.self) { try plain.data(upTo: 4) }
    }

    @Test("Contents that follow a document are stored, packed ones unpacked, each for its name") func multipart()
        async throws
    {
        _ = try await server.call("PUT", "/db")
        let answer = try await put("/db/mp?new_edits=false", related(Self.document, [Self.first, Self.second]))
        #expect(answer.status == 201, "\(answer.text)")
        #expect(try await server.call("GET", "/db/mp/x.txt").text == "hello")
        #expect(try await server.call("GET", "/db/mp/..%2Fy").body == [1, 2, 3])
        let revision = try #require(try server.database().document(withID: "mp").currentRevision)
        #expect(revision.revisionID.description == "3-ccc")
        #expect(try revision.attachment(named: "x.txt")?.changedInGeneration == 1)
        // Nothing was written outside the store, whatever the name.
        #expect(try FileManager.default.contentsOfDirectory(atPath: server.stores.directory.path) == ["db.coffer"])
    }

    @Test("Contents without names are taken in the order in which the document names them") func unnamed() async throws
    {
        _ = try await server.call("PUT", "/db")
        let body = related(Self.document, [(nil, Self.second.fields, Self.packed), (nil, "", [1, 2, 3])])
        #expect(try await put("/db/mp?new_edits=false", body).status == 201)
        #expect(try await server.call("GET", "/db/mp/x.txt").text == "hello")
    }

    @Test("Contents that are missing, changed, too many or too long are refused, and nothing stays") func lies()
        async throws
    {
        let server = TestServer { $0.attachmentByteLimit = 10 }
        _ = try await server.call("PUT", "/db")
        var changed = Self.first
        changed.bytes = [1, 2, 4]
        var longer = Self.first
        longer.bytes = [1, 2, 3, 4]
        var unpacked = Self.second
        unpacked.bytes = Array("hello".utf8)
        let large = Self.document.replacing("\"length\":5", with: "\"length\":11")
        for (document, contents, status) in [
            (Self.document, [Self.first], 400), (Self.document, [changed, Self.second], 400),
            (Self.document, [longer, Self.second], 400), (Self.document, [Self.first, unpacked], 400),
            (Self.document, [Self.first, Self.first, Self.second], 400), (Self.document, [], 400),
            (large, [Self.first, Self.second], 413),
        ] {
            let answer = try await server.call(
                HTTPRequest(
                    "PUT", "/db/mp?new_edits=false", fields: ["Content-Type": "multipart/related; boundary=BND"],
                    body: .bytes(related(document, contents))))
            #expect(answer.status == status, "\(answer.text)")
            let cut = related(document, contents).dropLast(8)
            let cutAnswer = try await server.call(
                HTTPRequest(
                    "PUT", "/db/mp?new_edits=false", fields: ["Content-Type": "multipart/related; boundary=BND"],
                    body: .bytes(Array(cut))))
            #expect(cutAnswer.status >= 400)
        }
        #expect(try await server.call("GET", "/db").json["doc_count"] == 0)
        let store = try FileManager.default.subpathsOfDirectory(
            atPath: server.stores.url(ofDatabaseNamed: "db").path)
        #expect(!store.contains { $0.contains("/incoming/") || $0.hasSuffix(".blob") })
    }

    @Test("A stub of a content that nobody has is a 412") func missingStub() async throws {
        _ = try await server.call("PUT", "/db")
        let document = try json(
            #"{"_id":"a","_rev":"1-a","_attachments":{"x":{"stub":true,"revpos":1,"length":3,"digest":"md5-x"}}}"#)
        let answer = try await server.call("PUT", "/db/a?new_edits=false", document)
        #expect(answer.status == 412)
    }

    @Test("A document that is given out in parts is taken back as it was, blobs as attachments") func related()
        async throws
    {
        let database = try server.database()
        let draft = database.document(withID: "d").createDraft()
        draft["title"] = "t"
        draft["picture"] = Blob(contentType: "image/png", data: Data([9, 8, 7]))
        draft.setAttachment(named: "\"q\"\r\n.txt", contentType: "text/plain", content: Data("content".utf8))
        let saved = try await draft.save()
        let second = try saved.createRevision()
        second["title"] = "u"
        let revision = try await second.save()

        let whole = try await server.call(
            "GET", "/db/d?attachments=true&revs=true", fields: ["Accept": "multipart/related"])
        let type = try #require(whole.fields["Content-Type"])
        #expect(whole.fields["Content-Length"] == nil && MediaType(type)?.boundary != nil)
        let other = TestServer()
        _ = try await other.call("PUT", "/db")
        let put = try await other.call(
            HTTPRequest("PUT", "/db/d?new_edits=false", fields: ["Content-Type": type], body: .bytes(whole.body)))
        #expect(put.status == 201, "\(put.text)")
        let copy = try #require(try other.database().document(withID: "d").currentRevision)
        #expect(copy.revisionID == revision.revisionID)
        #expect(try copy.json == revision.json)
        #expect(try copy.blob(forKey: "picture")?.content == Data([9, 8, 7]))
        #expect(try copy.attachments[0].content == Data("content".utf8))
        #expect(try copy.history.map(\.revisionID) == revision.history.map(\.revisionID))

        // Nothing has changed since the first revision.
        let since = try await server.call(
            "GET", "/db/d?attachments=true&atts_since=%5B%22\(saved.revisionID)%22%5D",
            fields: ["Accept": "multipart/related"])
        #expect(since.json["_attachments"]?["blob_1"]?["stub"] == true)
        #expect(try await server.call("GET", "/db/d/blob_1").body == [9, 8, 7])
        let inline = try await server.call("GET", "/db/d?attachments=true")
        #expect(inline.json["_attachments"]?["blob_1"]?["data"] == "CQgH")
        #expect(inline.json["_attachments"]?["blob_1"]?["revpos"] == 1)
    }
}

extension Document {
    fileprivate func createDraft() -> UnsavedRevision {
        do {
            return try newRevision()
        } catch {
            fatalError("a new document has a draft: \(error)")
        }
    }
}
