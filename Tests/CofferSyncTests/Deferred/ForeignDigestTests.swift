import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// CouchDB calls contents by MD5s, some of them of a packed form. Here they have one name.
@Suite("Contents that CouchDB names by MD5", .serialized) struct ForeignDigestTests {
    private static let text = Data("hello inline attachment".utf8)
    private static let image = bytes(5000)

    private func fill(_ remote: Database) throws {
        let draft = try remote.document(withID: "doc").newRevision()
        draft["n"] = 1
        draft["face"] = Blob(data: Data([1, 2, 3]))
        draft.setAttachment(named: "a", contentType: "text/plain", content: Self.text)
        draft.setAttachment(named: "b", contentType: "image/jpeg", content: Self.image)
        try draft.save()
        try remote.write("other", ["n": 1], attachment: ("a", Self.text))
    }

    private func peers() async throws -> DeferredPeers {
        var failure: (any Error)?
        let peers = try await DeferredPeers(
            through: { server in
                let couch = CouchDialect(server)
                do {
                    try couch.add(Self.text, isText: true)
                    try couch.add(Self.image, isText: false)
                } catch { failure = error }
                return couch
            }, fill)
        if let failure { throw failure }
        return peers
    }

    @Test("A content that came later leaves the state in which one that came with its document does")
    func sameState() async throws {
        let peers = try await peers()
        let held = try peers.attachment("doc")
        #expect(held.digest.hasPrefix("md5-") && !held.contentAvailable)
        let pull = try peers.pull()
        let sequence = try peers.database.lastSequenceNumber
        try await pull.download(held).run()
        try await pull.download(peers.attachment("doc", "b")).run()
        let blob = try #require(try peers.database.document(withID: "doc").currentRevision?.blob(forKey: "face"))
        try await pull.download(blob).run()
        #expect(try peers.database.lastSequenceNumber == sequence)
        #expect(peers.wire.requests.filter { $0.target.contains("/a?") }.count == 1)
        let whole = try peers.peers.database("whole")
        try await peers.peers.replication(.pull, whole, through: peers.wire).run()
        #expect(try Contents(peers.database) == Contents(whole))
        #expect(try Contents(peers.database) == Contents(peers.peers.remote))
        #expect(try peers.attachment("doc").digest.hasPrefix("sha1-"))
        // What was got before is available, by whatever digest.
        #expect(held.contentAvailable)
        #expect(try held.content == Self.text)
        // So is the same content of another document.
        #expect(try peers.attachment("other").content == Self.text)
        try await peers.expectSound()
    }

    @Test("A content that is renamed survives compaction, salvage, a key change and a push") func lasts() async throws {
        let peers = try await peers()
        // Made here, with an id that says the other digest.
        try peers.database.write("doc", ["mine": 1])
        let edited = try #require(try peers.database.document(withID: "doc").currentRevision)
        let pull = try peers.pull()
        try await pull.download(peers.attachment("doc")).run()
        try await pull.download(peers.attachment("doc", "b")).run()
        let revision = try #require(try peers.database.document(withID: "doc").currentRevision)
        #expect(revision.revisionID == edited.revisionID)
        #expect(try revision.attachments.allSatisfy { $0.digest.hasPrefix("sha1-") })
        try await peers.database.compact()
        try await peers.database.changeEncryptionKey(to: TestServer.key)
        #expect(try peers.attachment("doc").content == Self.text && peers.attachment("doc", "b").content == Self.image)
        try await peers.expectSound()
        try await peers.peers.replication(.push, peers.database, through: peers.wire).run()
        let there = try #require(try peers.peers.remote.document(withID: "doc").currentRevision)
        #expect(there.revisionID == edited.revisionID)
        #expect(try there.attachment(named: "b")?.content == Self.image)
        try await peers.database.close()
        let manager = peers.peers.stores.manager
        let out = peers.peers.stores.directory.appending(path: "saved.coffer")
        let salvage = try await manager.salvageDatabase(
            named: "local", encryptionKey: TestServer.key, to: out, newKey: TestServer.key)
        #expect(salvage.isComplete, "\(salvage)")
        let saved = try await manager.database(named: "saved", encryptionKey: TestServer.key)
        let rescued = try #require(try saved.document(withID: "doc").currentRevision)
        #expect(rescued.revisionID == edited.revisionID)
        #expect(try rescued.attachment(named: "a")?.content == Self.text)
        #expect(try rescued.attachment(named: "b")?.content == Self.image)
    }

    @Test("Drafts and revisions from before the content came are saved with its name of today") func drafts()
        async throws
    {
        let peers = try await peers()
        let before = try #require(try peers.database.document(withID: "doc").currentRevision)
        let draft = try before.createRevision()
        draft["n"] = 2
        let json = try before.json
        try await peers.pull().download(peers.attachment("doc")).run()
        let saved = try await draft.save()
        #expect(try saved.attachment(named: "a")?.content == Self.text)
        #expect(try peers.attachment("doc").digest.hasPrefix("sha1-"))
        let again = try before.attachment(named: "a")
        #expect(again?.contentAvailable == true)
        #expect(try again?.content == Self.text)
        // JSON that somebody has kept.
        let kept = try await peers.database.save(json: json, withID: "kept")
        #expect(try kept.attachment(named: "a")?.content == Self.text)
        // And a revision of the server's that says it.
        let theirs = try await peers.database.putExistingRevision(
            json: Data(json), withID: "third", history: [try #require(RevisionID("1-abc"))])
        #expect(try theirs.revision.attachment(named: "a")?.content == Self.text)
        try await peers.expectSound()
        try await peers.database.close()
        let reopened = try await peers.peers.stores.manager.database(named: "local", encryptionKey: TestServer.key)
        for id in ["doc", "kept", "third", "other"] {
            #expect(try reopened.document(withID: id).currentRevision?.attachment(named: "a")?.content == Self.text)
        }
    }

    @Test("The same content that came under two names is one") func merged() async throws {
        let peers = try await peers()
        // It is here by its SHA-1 already.
        try peers.database.write("mine", [:], attachment: ("a", Self.text))
        #expect(try !peers.attachment("doc").contentAvailable)
        try await peers.pull().download(peers.attachment("doc")).run()
        #expect(try peers.attachment("doc").content == Self.text && peers.attachment("other").content == Self.text)
        #expect(try peers.files("attachments").count == 1)
        try await peers.database.document(withID: "mine").purge()
        try await peers.database.compact()
        #expect(try peers.attachment("doc").content == Self.text)
        try await peers.expectSound()
    }

    @Test("A packed content that breaks begins anew, and one that lies is not taken") func packed() async throws {
        let peers = try await peers()
        peers.wire.answer { _, response, number in number == 1 ? response.broken(after: 10) : response }
        try await peers.pull().download(peers.attachment("doc")).run()
        #expect(peers.wire.requests.count == 2 && peers.wire.requests.allSatisfy { $0.fields["Range"] == nil })
        #expect(peers.wire.requests[0].fields["Accept-Encoding"] == "gzip")
        peers.wire.answer { _, response, _ in
            var bytes = try await response.body.stream.collect(upTo: 1 << 20)
            bytes[100] ^= 1
            return response.with(bytes)
        }
        #expect(await status(of: try peers.pull().download(peers.attachment("doc", "b"))) == 502)
        #expect(try !peers.attachment("doc", "b").contentAvailable)
        try peers.expectNothingIncoming()
    }

    @Test("A content that was purged, pulled again and asked for again comes again") func again() async throws {
        let peers = try await peers()
        let pull = try peers.pull()
        try await pull.download(peers.attachment("doc")).run()
        for id in ["doc", "other"] { try await peers.database.document(withID: id).purge() }
        try await peers.database.compact()
        let couch = peers.wire
        try await peers.peers.replication(.pull, peers.database, through: couch) { options in
            options.downloadsAttachments = false
            options.documentIDs = ["doc"]
        }.run()
        let attachment = try peers.attachment("doc")
        #expect(try !attachment.contentAvailable && attachment.content == nil)
        try await pull.download(attachment).run()
        #expect(try attachment.content == Self.text)
    }
}
