import Coffer
import CofferModel
import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferSync

/// Makes a server speak as CouchDB 3.5 was recorded: digests are MD5, of the packed bytes where the content is text, and
/// those contents come packed where that is taken; positions are opaque.
final class CouchDialect: HTTPTransport {
    private let inner: any HTTPTransport
    /// From our digests to CouchDB's.
    private let digests = Lock<[String: String]>([:])
    private let packed = Lock<[String: [UInt8]]>([:])

    init(_ inner: any HTTPTransport) { self.inner = inner }

    func add(_ content: Data, isText: Bool) throws {
        let ours = "sha1-" + Data(try Digest.sha1(of: Array(content))).base64EncodedString()
        let bytes = isText ? Self.stored(Array(content)) : Array(content)
        var digest = try StreamingDigest(.md5)
        digest.update(bytes)
        let theirs = "md5-" + Data(digest.finalize()).base64EncodedString()
        digests.withLock { $0[ours] = theirs }
        if isText { packed.withLock { $0[ours] = bytes } }
    }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        var request = request
        request.target = request.target.replacing("-g1AAAA", with: "")
        let response = try await inner.send(request)
        if let tag = response.fields["ETag"]?.filter({ $0 != "\"" }), tag.hasPrefix("sha1-") {
            guard request.fields["Accept-Encoding"] == "gzip", let bytes = packed.withLock({ $0[tag] }) else {
                return response
            }
            return HTTPResponse(200, fields: ["Content-Encoding": "gzip"], body: .bytes(bytes))
        }
        guard response.fields["Content-Type"] == "application/json" else { return response }
        var text = String(decoding: try await response.body.stream.collect(upTo: 1 << 24), as: UTF8.self)
        for (ours, theirs) in digests.withLock({ $0 }) { text = text.replacing(ours, with: theirs) }
        // A part of a blob's reference is the document's own, which CouchDB leaves alone.
        if request.target.contains("_changes") {
            text = text.replacing(/"(seq|last_seq)":([0-9]+)/) { "\"\($0.1)\":\"\($0.2)-g1AAAA\"" }
        }
        return HTTPResponse(
            response.status, fields: ["Content-Type": "application/json"], body: .bytes(Array(text.utf8)))
    }

    func close() async {}

    /// gzip with one block that is not compressed, as RFC 1951 section 3.2.4 has it.
    private static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
        }
        func little(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
        let count = UInt16(bytes.count)
        let head: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1] + little(UInt32(count) | UInt32(~count) << 16)
        return head + bytes + little(~crc) + little(UInt32(bytes.count))
    }
}

@Suite("What CouchDB says differently") struct CouchDialectTests {
    @Test("MD5 digests, packed contents and opaque positions are CouchDB's own affair") func dialect() async throws {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        let (text, image) = (Data("hello inline attachment".utf8), Data([1, 2, 3, 4, 5]))
        try remote.write("doc", ["n": 1], attachment: ("a.txt", text))
        try remote.write("image", ["n": 1], attachment: ("b.jpg", image))
        let couch = CouchDialect(peers.wire)
        try couch.add(text, isText: true)
        try couch.add(image, isText: false)
        try await peers.replication(.pull, database, through: couch).run()
        #expect(try Contents(database) == Contents(remote))
        #expect(try database["doc"]?.currentRevision?.attachment(named: "a.txt")?.content == text)

        // The next revision has the same attachment, by another digest than the one that is here: it is known by its revpos.
        try remote.write("doc", ["n": 2])
        peers.wire.reset()
        try await peers.replication(.pull, database, through: couch).run()
        #expect(peers.wire.count("a.txt") == 0, "\(peers.wire.all)")
        #expect(peers.wire.count("since=2-g1AAAA") == 0 && peers.wire.count("since=2") == 1)
        #expect(try Contents(database) == Contents(remote))

        // A name that had another content before.
        let other = Data("something else".utf8)
        try couch.add(other, isText: true)
        try remote.write("doc", ["n": 3], attachment: ("a.txt", other))
        try await peers.replication(.pull, database, through: couch).run()
        #expect(try database["doc"]?.currentRevision?.attachment(named: "a.txt")?.content == other)
        #expect(try Contents(database) == Contents(remote))
    }

    @Test("An answer in parts is understood where JSON was asked for, as Sync Gateway has it") func parts() async throws
    {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        for number in 0..<20 { try remote.write("doc-\(number)", ["n": .number(.init(Int64(number)))]) }
        try remote.write("att", [:], attachment: ("a", Data([1, 2])))
        let answers = Counter()
        let gateway = InterceptingTransport(peers.server) { request, _, inner in
            var request = request
            guard request.target.contains("_bulk_get") else { return try await inner.send(request) }
            // One of them was removed just then.
            if answers.value == 0 { try await remote.document(withID: "doc-3").purge() }
            request.fields["Accept"] = "multipart/mixed"
            let response = try await inner.send(request)
            if response.fields["Content-Type"]?.hasPrefix("multipart/mixed") == true { answers.add(1) }
            return response
        }
        let pull = try peers.replication(.pull, database, through: gateway)
        try await pull.run()
        #expect(answers.value == 1)
        #expect(try Contents(database) == Contents(remote))
        #expect(try database.documentCount == 20)
        #expect(pull.failures.map(\.documentID) == ["doc-3"])
        #expect((pull.failures.first?.error as? SyncError)?.status == 404)
    }

    @Test("Requests of a replication are what CouchDB understands") func questions() async throws {
        let peers = try Peers()
        let database = try peers.database()
        try peers.remote.write("a", [:], attachment: ("x", Data([1])))
        let pull = try peers.replication(.pull, database) { $0.isContinuous = true }
        pull.start()
        for await status in pull.statuses where status.activity == .idle { break }
        #expect(try await eventually { peers.wire.count("longpoll") > 0 })
        await pull.stop()
        let id = try #require(peers.wire.all.first { $0.contains("_local") }?.split(separator: "/").last)
        #expect(
            peers.wire.all == [
                "GET /db", "GET /db/_local/\(id)", "GET /db/_changes?style=all_docs&limit=1000&since=0",
                "POST /db/_bulk_get?revs=true&latest=true",
                "GET /db/a/x?rev=\(try #require(try database["a"]?.currentRevisionID))",
                "PUT /db/_local/\(id)",
                "GET /db/_changes?style=all_docs&limit=1000&since=1&feed=longpoll&heartbeat=30000",
            ])
    }

    @Test("A packed content that was changed on the way is not taken") func changed() async throws {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        let text = Data("hello inline attachment".utf8)
        try remote.write("doc", ["n": 1], attachment: ("a.txt", text))
        let couch = CouchDialect(peers.wire)
        try couch.add(text, isText: true)
        let changing = InterceptingTransport(couch) { request, _, inner in
            let response = try await inner.send(request)
            guard request.target.contains("a.txt") else { return response }
            var bytes = try await response.body.stream.collect(upTo: 1 << 20)
            // The name in the header's operating system: gzip itself doesn't notice.
            bytes[9] = 7
            return HTTPResponse(200, fields: response.fields, body: .bytes(bytes))
        }
        let pull = try peers.replication(.pull, database, through: changing)
        try await pull.run()
        #expect((pull.failures.first?.error as? SyncError)?.status == 502)
        #expect(pull.failures.first?.isTriedAgain == true)
        #expect(try database["doc"] == nil)
    }

    @Test("Blobs are known again among attachments, whatever digest the server gives them") func blobs() async throws {
        let body: JSONObject = [
            "_id": "d", "_rev": "2-b", "z": ["@type": "blob", "digest": "sha1-zzz", "length": 3],
            "a": [
                ["@type": "blob", "digest": "sha1-aaa", "length": 5],
                ["@type": "blob", "digest": "sha1-zzz", "length": 3],
            ],
            "_attachments": [
                "blob_1": ["digest": "md5-1", "length": 5, "stub": true, "revpos": 2],
                "blob_2": ["digest": "md5-2", "length": 4, "stub": true, "revpos": 2],
                "blob_/z": ["digest": "sha1-zzz", "length": 3, "stub": true, "revpos": 2],
                "other": ["digest": "md5-3", "length": 5, "stub": true, "revpos": 2],
            ],
        ]
        let incoming = try IncomingRevision(body)
        // In canonical order "a" comes before "z". blob_2 has another length than the second blob: it is somebody's own.
        #expect(incoming.contents.map { $0.blob?.digest } == ["sha1-aaa", nil, "sha1-zzz", nil])
        let peers = try Peers()
        let database = try peers.database()
        let result = try incoming.save(in: database, contents: [:])
        #expect(try Set(result.revision.attachmentNames) == ["blob_2", "other"])
        #expect(try result.revision.attachments.allSatisfy { !$0.contentAvailable })
        // A content that is another one than the blob's, which has its name and length: somebody's own, after all.
        let wrong = try database.beginContent()
        try wrong.write([1, 2, 3, 4, 5])
        let blob = try wrong.finish()
        let other = try peers.database("other")
        let copy = try other.beginContent()
        try copy.write([1, 2, 3, 4, 5])
        let taken = try incoming.save(in: other, contents: [ByteKey("blob_1"): try copy.finish()])
        #expect(try taken.revision.attachment(named: "blob_1")?.content == Data([1, 2, 3, 4, 5]))
        // Where the digest says that it is the blob, it has to be.
        let last = ByteKey("blob_/z")
        #expect(throws: SyncError.self) { try incoming.save(in: database, contents: [last: blob]) }
    }
}
