import Coffer
import CofferModel
import CofferSealing
import Foundation
import Testing

@testable import CofferSync

/// Numbers that no server counts to: what they are about doesn't come, or comes without them, and the process goes on.
@Suite("Numbers of hostile servers") struct HostileServerTests {
    private let peers: Peers

    init() throws { peers = try Peers() }

    /// Pulls three documents from a server whose answers are changed.
    private func pull(
        replacing text: String, with other: String, _ change: (inout ReplicationOptions) -> Void = { _ in }
    ) async throws -> Database {
        let (database, remote) = (try peers.database(), try peers.remote)
        for id in ["a", "b"] {
            let draft = try remote.document(withID: id).newRevision()
            draft.setAttachment(named: "x", contentType: nil, content: Data("a content".utf8))
            draft.setAttachment(named: "y", contentType: nil, content: Data("another 9".utf8))
            try await draft.save()
        }
        try remote.write("c", [:])
        let changed = Changed()
        let transport = InterceptingTransport(peers.server) { request, _, inner in
            let response = try await inner.send(request)
            guard request.target.contains("_bulk_get"), !request.target.contains("attachments=") else {
                return response
            }
            let answer = String(decoding: try await response.body.stream.collect(upTo: 1 << 24), as: UTF8.self)
            if answer.contains(text) { changed.count.withLock { $0 += 1 } }
            var fields = response.fields
            fields["Content-Length"] = nil
            return HTTPResponse(200, fields: fields, body: .bytes(Array(answer.replacing(text, with: other).utf8)))
        }
        _ = try? await peers.replication(.pull, database, through: transport, change).run()
        #expect(changed.count.withLock { $0 } > 0)
        return database
    }

    private final class Changed: Sendable { let count = Lock(0) }

    @Test(
        "A pull survives attachments of lengths that come to more than an integer holds",
        arguments: [Int.max, 1 << 52, -1, .min])
    func lengths(length: Int) async throws {
        let database = try await pull(replacing: #""length":9"#, with: #""length":\#(length)"#)
        // The contents themselves tell how long they are, unless the revision says otherwise.
        #expect(try database["c"] != nil)
        for id in ["a", "b"] {
            let revision = try database.document(withID: id).currentRevision
            #expect(try revision?.attachment(named: "x")?.content == Data("a content".utf8))
        }
    }

    @Test("A history that starts before all generations is refused") func start() async throws {
        let database = try await pull(replacing: #""start":1"#, with: #""start":-9223372036854775808"#)
        #expect(try database.documentCount == 0)
    }

    @Test("Another revision than was asked for, whose history starts before all generations, is no answer to it")
    func otherRevision() {
        let request = RevisionRequest(id: "a", revision: RevisionID("2-x"))
        for start in [Int64.min, -1, .max] {
            let answer = RevisionAnswer.revision([
                "_id": "a", "_rev": "3-y",
                "_revisions": ["start": .number(JSONNumber(start)), "ids": ["y", "z"]],
            ])
            #expect(!answer.settles(request))
        }
    }

    @Test("A blob that is longer than any can be is an object like others, here and for those who read it")
    func blob() throws {
        let database = try peers.database()
        let history = [try #require(RevisionID("1-a"))]
        for length in [1 << 52, Int.max] {
            let reference: JSONValue = [
                "@type": "blob", "digest": "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
                "length": .number(JSONNumber(Int64(length))),
            ]
            let id = "d-\(length)"
            try database.putExistingRevision(["x": reference], withID: id, history: history)
            // Its row would be taken for damage by what comes next.
            try database.document(withID: id).newRevision().save()
            #expect(try database[id]?.currentRevision?.properties["x"]?.blobValue == nil)
            #expect(throws: DecodingError.self) {
                try database.document(withID: id).currentRevision?.decode([String: Blob].self)
            }
        }
    }

    @Test("A number of failed attempts that one more would overflow is survived") func failures() throws {
        let json: JSONValue = [["id": "a", "revs": ["1-x"], "failures": .number(JSONNumber(Int64.max))]]
        var postponed = PostponedRevisions(json)
        _ = postponed.take(all: true)
        #expect(postponed.add("a", try #require(RevisionID("1-x"))))
        #expect(postponed.take(all: true).count == 1)
    }
}
