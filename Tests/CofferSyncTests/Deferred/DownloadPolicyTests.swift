import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

@Suite("Which contents a pull brings") struct DownloadPolicyTests {
    private static let film = Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 13) })
    private static let note = Data("a short note".utf8)
    private static let face = Data([1, 2, 3, 4, 5, 6])

    /// A document with two attachments and a blob, and one with an attachment.
    private func fill(_ database: Database) throws {
        let draft = try database.document(withID: "both").newRevision()
        draft["title"] = "both"
        draft["face"] = Blob(contentType: "image/png", data: Self.face)
        draft.setAttachment(named: "film.mp4", contentType: "video/mp4", content: Self.film)
        draft.setAttachment(named: "note.txt", contentType: "text/plain", content: Self.note)
        try draft.save()
        try database.write("one", ["title": "one"], attachment: ("note.txt", Self.note))
        try database.write("none", ["title": "none"])
    }

    private func revision(_ id: String, _ database: Database) throws -> SavedRevision {
        try #require(try database.document(withID: id).currentRevision)
    }

    @Test("Without downloads no content travels, and what is said of it is there") func nothing() async throws {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        try fill(remote)
        let pull = try await peers.pull(database) { $0.downloadsAttachments = false }
        #expect(pull.status.failedCount == 0, "\(pull.failures)")
        #expect(peers.wire.count("attachments=true") == 0 && peers.wire.count("/both/") == 0, "\(peers.wire.all)")
        let here = try revision("both", database)
        #expect(try here.json == revision("both", remote).json)
        let film = try #require(try here.attachment(named: "film.mp4"))
        #expect(film.length == Self.film.count && film.contentType == "video/mp4")
        #expect(try film.digest == revision("both", remote).attachment(named: "film.mp4")?.digest)
        let face = try #require(try here.blob(forKey: "face"))
        #expect(face.length == Self.face.count && face.contentType == "image/png")
        #expect(!film.contentAvailable && !face.contentAvailable)
        #expect(try film.content == nil && film.content(in: 0..<10) == nil && film.contentURL == nil)
        #expect(try film.chunks == nil && film.openContentStream() == nil)
        #expect(try face.content == nil && face.chunks == nil && face.contentURL == nil)
        let files = try FileManager.default.subpathsOfDirectory(atPath: peers.stores.directory.path)
        #expect(!files.contains { $0.hasSuffix(".blob") || $0.contains("/incoming/") })
        #expect(try await database.verify(.everything).findings.isEmpty)

        // The next run goes on, whatever it wants, and brings what is new.
        peers.wire.reset()
        try await peers.pull(database)
        #expect(peers.wire.count("since=0") == 0 && peers.wire.count("_bulk_get") == 0, "\(peers.wire.all)")
        try remote.write("one", ["title": "changed"])
        try await peers.pull(database)
        #expect(try revision("one", database).attachment(named: "note.txt")?.content == Self.note)
        // The same content, in a revision that came before it.
        #expect(try revision("both", database).attachment(named: "note.txt")?.content == Self.note)
        #expect(try revision("both", database).attachment(named: "film.mp4")?.contentAvailable == false)
    }

    @Test("A download policy decides for each content by what is said of it") func policy() async throws {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        try fill(remote)
        let asked = Lock<[AttachmentInfo]>([])
        try await peers.pull(database) { options in
            options.shouldDownloadAttachment = { info in
                asked.withLock { $0.append(info) }
                return (info.length ?? .max) < 10_000 && !info.isBlob
            }
        }
        let infos = Dictionary(grouping: asked.withLock { $0 }) { "\($0.documentID)/\($0.name)" }
        #expect(infos.keys.sorted() == ["both/blob_1", "both/film.mp4", "both/note.txt", "one/note.txt"])
        let film = try #require(infos["both/film.mp4"]?.first)
        let there = try #require(try revision("both", remote).attachment(named: "film.mp4"))
        #expect(film.length == Self.film.count && film.contentType == "video/mp4" && film.digest == there.digest)
        #expect(!film.isBlob && infos["both/blob_1"]?.first?.isBlob == true)
        let here = try revision("both", database)
        #expect(try here.attachment(named: "note.txt")?.content == Self.note)
        #expect(try revision("one", database).attachment(named: "note.txt")?.content == Self.note)
        #expect(try here.attachment(named: "film.mp4")?.contentAvailable == false)
        #expect(try here.blob(forKey: "face")?.contentAvailable == false)
        // Not even in a message with what is wanted.
        #expect(peers.wire.count("attachments=true") == 0 && peers.wire.count("film.mp4") == 0, "\(peers.wire.all)")
        #expect(peers.wire.count("blob_1") == 0)
    }

    @Test("All contents of a revision can be had together") func all() async throws {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        try fill(remote)
        try await peers.pull(database) { $0.shouldDownloadAttachment = { _ in true } }
        #expect(peers.wire.count("attachments=true") == 1)
        #expect(try Contents(database) == Contents(remote))
    }

    @Test("The policy of downloads has no part in the identity of a replication") func checkpoint() async throws {
        let peers = try Peers()
        let database = try peers.database()
        try fill(peers.remote)
        try await peers.pull(database) { $0.downloadsAttachments = false }
        try await peers.pull(database) { $0.shouldDownloadAttachment = { _ in false } }
        try await peers.pull(database)
        let checkpoints = Set(peers.wire.all.filter { $0.contains("/_local/") }.map { $0.split(separator: "/").last })
        #expect(checkpoints.count == 1, "\(checkpoints)")
    }
}
