import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

@Suite("Purging contents that a server has", .serialized) struct ContentPurgeTests {
    private static let film = bytes(300_000)
    private static let canary = Data("canary-0b6de2f4c1 and more".utf8)

    /// A database with everything, contents included.
    private func peers() async throws -> DeferredPeers {
        let peers = try await DeferredPeers { remote in
            try remote.write("film", ["n": 1], attachment: ("a", Self.film))
            try remote.write("film", ["n": 2])
            try remote.write("text", [:], attachment: ("a", Self.canary))
            try remote.write("face", ["face": .blob(Blob(data: Data([1, 2, 3])))])
        }
        let pull = try peers.pull()
        for id in ["film", "text"] { try await pull.download(peers.attachment(id)).run() }
        try await pull.download(try face(peers)).run()
        peers.wire.reset()
        return peers
    }

    private func face(_ peers: DeferredPeers) throws -> Blob {
        try #require(try peers.database.document(withID: "face").currentRevision?.blob(forKey: "face"))
    }

    private func code(_ body: () async throws -> Void) async -> Int? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? SyncError)?.status ?? (error as? CofferError)?.status ?? -1
        }
    }

    @Test("A purged content that the server has goes from here, and comes again") func purges() async throws {
        let peers = try await peers()
        #expect(try peers.files("attachments").count == 3)
        let (film, pull) = (try peers.attachment("film"), try peers.pull())
        let sequence = try peers.database.lastSequenceNumber
        try await pull.purge(film)
        #expect(!film.contentAvailable)
        #expect(try film.content == nil && film.chunks == nil)
        #expect(try peers.files("attachments").count == 2)
        #expect(peers.wire.requests.map(\.method) == ["HEAD"])
        #expect(try peers.database.lastSequenceNumber == sequence)
        let blob = try face(peers)
        try await pull.purge(blob)
        #expect(try !blob.contentAvailable && blob.content == nil)
        // Once more, there is nothing to do.
        peers.wire.reset()
        try await pull.purge(film)
        #expect(peers.wire.requests.isEmpty)
        try await peers.expectSound()

        let backup = peers.peers.stores.directory.appending(path: "copy.coffer")
        try await peers.database.backup(to: backup, encryptionKey: TestServer.key)
        try await peers.database.changeEncryptionKey(to: TestServer.key)
        try await peers.database.compact()
        try await peers.expectSound()
        try expectNothingReadable(of: [String(decoding: Self.canary, as: UTF8.self)], in: peers.peers.stores.directory)
        try await pull.download(film).run()
        try await pull.download(blob).run()
        #expect(try film.content == Self.film)
        #expect(try blob.content == Data([1, 2, 3]))
        #expect(try Contents(peers.database) == Contents(peers.peers.remote))
        try await peers.expectSound()
    }

    @Test("A purged content that is being read stays readable to its end") func reader() async throws {
        let peers = try await peers()
        let film = try peers.attachment("film")
        let chunks = try #require(try film.chunks)
        try await peers.pull().purge(film)
        var read = Data()
        for try await chunk in chunks { read += chunk }
        #expect(read == Self.film)
    }

    @Test(
        "A content that the server doesn't have is not purged here",
        arguments: ["gone", "awaited", "other", "status500", "status403"])
    func kept(kind: String) async throws {
        let peers = try await peers()
        let film = try peers.attachment("film")
        switch kind {
        case "gone": try await peers.peers.remote.document(withID: "film").purge()
        case "awaited":
            peers.wire.answer { _, _, _ in HTTPResponse(404, body: .bytes(Array("{\"error\":\"not_found\"}".utf8))) }
        case "other":
            peers.wire.answer { request, response, _ in
                let other = bytes(300_000, seed: 9)
                return request.method == "HEAD"
                    ? response.with("ETag", "\"xyz\"") : response.with("ETag", "\"xyz\"").with(Array(other))
            }
        case "status403": peers.wire.answer { _, _, _ in HTTPResponse(403) }
        default: peers.wire.answer { _, _, _ in HTTPResponse(500) }
        }
        let expected = ["gone": 409, "awaited": 412, "other": 412, "status500": 500, "status403": 403]
        #expect(await code { try await peers.pull().purge(film) } == expected[kind])
        #expect(try film.contentAvailable && film.content == Self.film)
        try await peers.expectSound()
    }

    @Test("A content that another revision needs, which the server doesn't know, is not purged") func needed()
        async throws
    {
        let peers = try await peers()
        try peers.database.write("mine", [:], attachment: ("copy", Self.film))
        let film = try peers.attachment("film")
        #expect(await code { try await peers.pull().purge(film) } == 409)
        #expect(try film.content == Self.film)
        // Once it is there too, it goes.
        try await peers.peers.replication(.push, peers.database, through: peers.wire).run()
        try await peers.pull().purge(film)
        #expect(try !peers.attachment("mine", "copy").contentAvailable)
        try await peers.pull().download(peers.attachment("mine", "copy")).run()
        #expect(try film.content == Self.film)
    }

    @Test("A revision that is saved while the server is asked keeps the content from being purged") func meanwhile()
        async throws
    {
        let peers = try await peers()
        let (film, database) = (try peers.attachment("film"), peers.database)
        peers.wire.answer { _, response, _ in
            try database.write("mine", [:], attachment: ("copy", Self.film))
            return response
        }
        #expect(await code { try await peers.pull().purge(film) } == 409)
        #expect(try film.content == Self.film)
    }

    @Test(
        "Digests that can't be compared are not believed before a purge: the content is",
        arguments: ["md5", "packed", "none"])
    func digests(kind: String) async throws {
        let peers = try await peers()
        let film = try peers.attachment("film")
        peers.wire.answer { request, response, _ in
            switch kind {
            case "md5": response.with("ETag", "\"\(try md5(Self.film))\"")
            case "packed": response.with("ETag", "\"\(try md5(Self.canary))\"")
            default: response.with("ETag", nil)
            }
        }
        try await peers.pull().purge(film)
        #expect(!film.contentAvailable)
        #expect(peers.wire.requests.map(\.method) == (kind == "md5" ? ["HEAD"] : ["HEAD", "GET"]))
    }

    @Test("A file that a killed process left is no content, and goes with the next compaction") func leftover()
        async throws
    {
        let peers = try await peers()
        let film = try peers.attachment("film")
        let store = peers.peers.stores.url(ofDatabaseNamed: "local")
        let name = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: store.path).filter { $0.hasSuffix(".blob") }
                .max { try size($0, store) < size($1, store) })
        let file = store.appending(path: name)
        let bytes = try Data(contentsOf: file)
        try await peers.pull().purge(film)
        try bytes.write(to: file)
        #expect(try !film.contentAvailable && film.content == nil)
        try await peers.expectSound()
        try await peers.database.close()
        let database = try await peers.peers.stores.manager.database(named: "local", encryptionKey: TestServer.key)
        let again = try #require(try database.document(withID: "film").currentRevision?.attachment(named: "a"))
        #expect(!again.contentAvailable)
        try await database.compact()
        #expect(!FileManager.default.fileExists(atPath: file.path))
        let pull = try peers.peers.replication(.pull, database, through: peers.wire)
        try await pull.download(again).run()
        #expect(try again.content == Self.film)
    }

    private func size(_ name: String, _ store: URL) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: store.appending(path: name).path)
        return attributes[.size] as? Int ?? 0
    }

    @Test("A content that no pull can bring back is not purged") func refused() async throws {
        let peers = try await peers()
        let film = try peers.attachment("film")
        let push = try peers.peers.replication(.push, peers.database, through: peers.wire)
        #expect(await code { try await push.purge(film) } == 400)
        let other = try peers.peers.database("other")
        let pullOther = try peers.peers.replication(.pull, other, through: peers.wire)
        #expect(await code { try await pullOther.purge(film) } == 400)
        #expect(await code { try await peers.pull().purge(Blob(data: Data([1]))) } == 400)
        #expect(peers.wire.requests.isEmpty && film.contentAvailable)
    }
}
