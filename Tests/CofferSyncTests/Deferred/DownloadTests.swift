import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import TestSupport
import Testing

@testable import CofferSync

@Suite("Downloads of contents", .serialized) struct DownloadTests {
    private static let film = bytes(300_000)

    private func peers() async throws -> DeferredPeers {
        try await DeferredPeers { remote in
            try remote.write("film", ["n": 1], attachment: ("a", Self.film))
            try remote.write("face", ["face": .blob(Blob(contentType: "image/png", data: Data([1, 2, 3])))])
        }
    }

    @Test("A content that was left out comes when it is asked for") func comes() async throws {
        let peers = try await peers()
        let (before, sequence) = (try peers.attachment("film"), try peers.database.lastSequenceNumber)
        let pull = try peers.pull()
        peers.wire.answer { _, response, _ in response.broken(after: 1 << 30) }
        let download = try pull.download(before)
        var seen: [DownloadStatus] = []
        for await status in download.statuses { seen.append(status) }
        try await download.run()
        #expect(download.status.activity == .finished && download.status.error == nil)
        #expect(download.status.completedByteCount == Self.film.count)
        for status in seen where status.activity != .finished {
            #expect(status.completedByteCount < status.totalByteCount && status.totalByteCount == Self.film.count)
        }
        #expect(seen.last?.activity == .finished)
        // What was got before is available too.
        #expect(before.contentAvailable)
        #expect(try before.content == Self.film)
        let blob = try #require(try peers.database.document(withID: "face").currentRevision?.blob(forKey: "face"))
        try await pull.download(blob).run()
        #expect(try blob.content == Data([1, 2, 3]))
        #expect(peers.wire.requests.count == 2)
        #expect(try peers.database.lastSequenceNumber == sequence)
        #expect(try Contents(peers.database) == Contents(peers.peers.remote))
        try peers.expectNothingIncoming()
        try await peers.expectSound()

        // What is here is not asked for again.
        let again = try pull.download(before)
        #expect(again.status.activity == .finished && again.status.completedByteCount == Self.film.count)
        try await again.run()
        for await status in again.statuses { #expect(status.activity == .finished) }
        again.pause()
        again.resume()
        again.cancel()
        #expect(again.status.activity == .finished)
        #expect(peers.wire.requests.count == 2)
    }

    @Test("A content without bytes is downloaded too") func empty() async throws {
        let peers = try await DeferredPeers { try $0.write("d", [:], attachment: ("a", Data())) }
        let attachment = try peers.attachment("d")
        #expect(!attachment.contentAvailable)
        try await peers.pull().download(attachment).run()
        #expect(try attachment.content == Data())
    }

    @Test("One content of several documents is downloaded once, for all of them") func several() async throws {
        let peers = try await DeferredPeers { remote in
            for number in 0..<5 { try remote.write("d\(number)", [:], attachment: ("a", Self.film)) }
        }
        try await peers.pull().download(peers.attachment("d1")).run()
        for number in 0..<5 { #expect(try peers.attachment("d\(number)").content == Self.film) }
        #expect(peers.wire.requests.count == 1)
    }

    @Test("A download that can't succeed is refused at once") func refused() async throws {
        let peers = try await peers()
        let attachment = try peers.attachment("film")
        func status(_ body: () throws -> Void) -> Int? {
            do {
                try body()
                return nil
            } catch {
                return (error as? SyncError)?.status ?? (error as? CofferError)?.status
            }
        }
        let push = try peers.peers.replication(.push, peers.database, through: peers.wire)
        #expect(status { try push.download(attachment) } == 400)
        let other = try peers.peers.database("other")
        let pullOther = try peers.peers.replication(.pull, other, through: peers.wire)
        #expect(status { try pullOther.download(attachment) } == 400)
        let pull = try peers.pull()
        let draft = try peers.database.document(withID: "film").newRevision()
        draft.setAttachment(named: "new", contentType: nil, content: Data([1]))
        let new = try #require(draft.attachment(named: "new"))
        #expect(status { try pull.download(new) } == 400)
        #expect(status { try pull.download(Blob(data: Data([1]))) } == 400)
        // A digest that nobody can check.
        try await peers.database.putExistingRevision(
            json: Data(
                #"{"_id":"odd","_rev":"1-a","_attachments":{"a":{"stub":true,"digest":"crc-1","length":3,"revpos":1}}}"#
                    .utf8))
        let odd = try peers.attachment("odd")
        #expect(status { try pull.download(odd) } == 502)
        #expect(peers.wire.requests.isEmpty)
        try await peers.database.close()
        #expect(status { try pull.download(attachment) } == 500)
        var options = DatabaseOptions()
        options.readOnly = true
        options.encryptionKey = TestServer.key
        let readOnly = try await peers.peers.stores.manager.openDatabase(named: "local", options: options)
        let pullThere = try peers.peers.replication(.pull, readOnly, through: peers.wire)
        let there = try #require(try readOnly.document(withID: "film").currentRevision?.attachment(named: "a"))
        #expect(status { try pullThere.download(there) } == 403)
    }

    @Test("A server that refuses a download is believed, and nothing stays", arguments: [401, 403, 404, 410, 400, 501])
    func refusals(code: Int) async throws {
        let peers = try await peers()
        peers.wire.answer { _, _, _ in HTTPResponse(code, body: .bytes(Array("{\"error\":\"no\"}".utf8))) }
        let download = try peers.pull { $0.retry.attemptCount = 2 }.download(peers.attachment("film"))
        #expect(await status(of: download) == code)
        #expect(download.status.activity == .failed && download.status.completedByteCount == 0)
        #expect(peers.wire.requests.count == (code == 501 ? 2 : 1))
        try peers.expectNothingIncoming()
        peers.wire.answer(nil)
        try await peers.pull().download(peers.attachment("film")).run()
        #expect(try peers.attachment("film").content == Self.film)
    }

    @Test("A download waits for a server that is not there, for as long as it takes", arguments: [0, 429, 502, 503])
    func offline(code: Int) async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, number in
            if number > 30 { return response }
            if number == 20 { try await gate.wait() }
            guard code > 0 else { throw SyncError(503, "the server can't be reached") }
            return HTTPResponse(code)
        }
        let download = try peers.pull { $0.retry.attemptCount = 2 }.download(peers.attachment("film"))
        try await gate.isReached()
        let status = download.status
        #expect(status.activity == .active && status.completedByteCount == 0)
        gate.open()
        try await download.run()
        #expect(peers.wire.requests.count == 31)
        #expect(try peers.attachment("film").content == Self.film)
    }

    @Test("A download whose digest is wrong is not installed", arguments: ["changed", "shorter", "longer"])
    func lies(kind: String) async throws {
        let peers = try await peers()
        peers.wire.answer { _, response, _ in
            var bytes = try await response.body.stream.collect(upTo: 1 << 20)
            switch kind {
            case "changed": bytes[1000] ^= 1
            case "shorter": bytes.removeLast()
            default: bytes.append(0)
            }
            return response.with(bytes)
        }
        let download = try peers.pull().download(peers.attachment("film"))
        #expect(await status(of: download) == 502)
        #expect(peers.wire.requests.count == 1)
        #expect(try !peers.attachment("film").contentAvailable && peers.attachment("film").content == nil)
        try peers.expectNothingIncoming()
        #expect(try peers.files("attachments").isEmpty)
        try await peers.expectSound()
    }

    @Test(
        "A content that was purged or compacted away during its download is a 404, and leaves nothing",
        arguments: [true, false])
    func gone(isCompacted: Bool) async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, _ in response.held(after: 100_000, gate) }
        let download = try peers.pull().download(peers.attachment("film"))
        try await gate.isReached()
        try await peers.database.document(withID: "film").purge()
        if isCompacted { try await peers.database.compact() }
        gate.open()
        #expect(await status(of: download) == 404)
        try await peers.expectNothingIncomingSoon()
        try await peers.database.compact()
        #expect(try peers.files("attachments").isEmpty)
        try await peers.expectSound()
    }

    @Test(
        "A content of a document that was edited here, and compacted, is still found where the server has it",
        arguments: [true, false])
    func edited(isBlob: Bool) async throws {
        let peers = try await peers()
        let id = isBlob ? "face" : "film"
        try peers.database.write(id, ["n": 2])
        try peers.database.write(id, ["n": 3])
        try await peers.database.compact()
        let revision = try #require(try peers.database.document(withID: id).currentRevision)
        let pull = try peers.pull()
        let download =
            isBlob
            ? try pull.download(try #require(try revision.blob(forKey: "face")))
            : try pull.download(try peers.attachment("film"))
        try await download.run()
        #expect(peers.wire.requests.count == 3, "\(peers.wire.requests.map(\.target))")
        if isBlob {
            #expect(try revision.blob(forKey: "face")?.content == Data([1, 2, 3]))
        } else {
            #expect(try peers.attachment("film").content == Self.film)
        }
    }

    @Test("Only so many contents are fetched at the same time") func parallel() async throws {
        let peers = try await DeferredPeers { remote in
            for number in 0..<12 {
                try remote.write("d\(number)", [:], attachment: ("a", bytes(1000, seed: UInt64(number))))
            }
        }
        let running = Counter()
        let most = Lock(0)
        peers.wire.answer { _, response, _ in
            running.add(1)
            most.withLock { $0 = max($0, running.value) }
            // The first wait for each other; then there is time for one too many.
            #expect(try await eventually { most.withLock { $0 } >= 3 })
            try await Task.sleep(for: .milliseconds(5))
            running.add(-1)
            return response
        }
        let pull = try peers.pull { $0.parallelDownloadCount = 3 }
        let downloads = try (0..<12).map { try pull.download(try peers.attachment("d\($0)")) }
        downloads[11].cancel()
        for download in downloads.prefix(11) { try await download.run() }
        #expect(most.withLock { $0 } == 3)
        #expect(try (0..<11).allSatisfy { try peers.attachment("d\($0)").contentAvailable })
        #expect(try !peers.attachment("d11").contentAvailable)
        try peers.expectNothingIncoming()
    }
}
