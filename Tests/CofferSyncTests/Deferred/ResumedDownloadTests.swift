import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

@Suite("Downloads that are resumed", .serialized) struct ResumedDownloadTests {
    private static let film = bytes(400_000)
    private static let canary = "canary-51d0c2e7aa"

    private func peers(_ content: Data = Self.film) async throws -> DeferredPeers {
        try await DeferredPeers { try $0.write("film", [:], attachment: ("a", content)) }
    }

    @Test("20 MB come whole over a line that breaks at random places, and each byte about once") func drops()
        async throws
    {
        let content = bytes(20 << 20)
        let peers = try await peers(content)
        let breaks = 12
        peers.wire.answer { _, response, number in
            number <= breaks ? response.broken(after: .random(in: 1..<1_700_000)) : response
        }
        let attachment = try peers.attachment("film")
        try await peers.pull().download(attachment).run()
        #expect(try attachment.content == content)
        #expect(peers.wire.requests.count == breaks + 1)
        #expect(peers.wire.byteCount == content.count, "\(peers.wire.byteCount)")
        #expect(peers.wire.requests[0].fields["Range"] == nil)
        for request in peers.wire.requests.dropFirst() {
            #expect(request.fields["Range"]?.hasPrefix("bytes=") == true)
            #expect(request.fields["If-Range"] == "\"\(attachment.digest)\"")
        }
        try peers.expectNothingIncoming()
        try await peers.expectSound()
    }

    @Test("A line that breaks behind the last byte costs no request") func lastByte() async throws {
        let peers = try await peers()
        peers.wire.answer { _, response, _ in response.broken(after: Self.film.count) }
        try await peers.pull().download(peers.attachment("film")).run()
        #expect(peers.wire.requests.count == 1 && peers.wire.byteCount == Self.film.count)
        #expect(try peers.attachment("film").content == Self.film)
    }

    enum Restart: String, CaseIterable {
        case whole, otherTag, noTag, wrongStart, wrongTotal, noContentRange, packed, status416, status412
    }

    @Test(
        "A server that ignores the range of a resumed download is asked for all of it again",
        arguments: Restart.allCases)
    func restarts(kind: Restart) async throws {
        let peers = try await peers()
        let server = peers.peers.server
        peers.wire.answer { request, response, number in
            if number == 1 { return response.broken(after: 100_000) }
            guard request.fields["Range"] != nil else { return response }
            switch kind {
            case .whole:
                var whole = request
                whole.fields["Range"] = nil
                return try await server.send(whole)
            case .otherTag: return response.with("ETag", "\"another\"")
            case .noTag: return response.with("ETag", nil)
            case .wrongStart: return response.with("Content-Range", "bytes 99999-399999/400000")
            case .wrongTotal: return response.with("Content-Range", "bytes 100000-399999/400001")
            case .noContentRange: return response.with("Content-Range", nil)
            case .packed: return response.with("Content-Encoding", "gzip")
            case .status416: return HTTPResponse(416)
            case .status412: return HTTPResponse(412)
            }
        }
        try await peers.pull().download(peers.attachment("film")).run()
        #expect(try peers.attachment("film").content == Self.film)
        // Nothing was taken of what doesn't fit.
        #expect(peers.wire.byteCount == 100_000 + Self.film.count, "\(peers.wire.byteCount)")
        #expect(peers.wire.requests.count == (kind == .whole ? 2 : 3))
        #expect(peers.wire.requests.last?.fields["Range"] == (kind == .whole ? "bytes=100000-" : nil))
        try peers.expectNothingIncoming()
    }

    @Test("Without a strong ETag or ranges a download begins anew", arguments: ["weak", "none", "noRanges"])
    func notResumable(kind: String) async throws {
        let peers = try await peers()
        peers.wire.answer { _, response, number in
            var response = response
            switch kind {
            case "weak": response = response.with("ETag", "W/\"x\"")
            case "none": response = response.with("ETag", nil)
            default: response = response.with("Accept-Ranges", "none")
            }
            return number < 4 ? response.broken(after: 100_000) : response
        }
        let download = try peers.pull().download(peers.attachment("film"))
        try await download.run()
        #expect(try peers.attachment("film").content == Self.film)
        #expect(peers.wire.requests.count == 4 && peers.wire.requests.allSatisfy { $0.fields["Range"] == nil })
        #expect(peers.wire.byteCount == 300_000 + Self.film.count)
    }

    @Test("A rest that is another content's is found out, and all of it is fetched again") func otherRest() async throws
    {
        let peers = try await peers()
        let lies = Lock(1)
        peers.wire.answer { request, response, number in
            if number == 1 { return response.broken(after: 100_000) }
            guard request.fields["Range"] != nil, lies.withLock({ $0 }) > 0 else { return response }
            lies.withLock { $0 -= 1 }
            return response.with([UInt8](repeating: 7, count: 300_000))
        }
        try await peers.pull().download(peers.attachment("film")).run()
        #expect(try peers.attachment("film").content == Self.film)
        #expect(peers.wire.requests.count == 3)
    }

    @Test("A paused download brings no bytes, and none can be read on the disk; resumed, it goes on") func pause()
        async throws
    {
        let text = Data(String(repeating: "\(Self.canary) ", count: 60_000).utf8)
        let peers = try await peers(text)
        let gate = Gate()
        peers.wire.answer { _, response, number in number == 1 ? response.held(after: 800_000, gate) : response }
        let download = try peers.pull().download(peers.attachment("film"))
        try await gate.isReached()
        download.pause()
        #expect(download.status.activity == .paused && download.status.completedByteCount == 800_000)
        try await Task.sleep(for: .milliseconds(50))
        #expect(download.status.completedByteCount == 800_000 && peers.wire.byteCount == 800_000)
        let incoming = try peers.files("incoming")
        #expect(incoming.count == 1)
        try expectNothingReadable(of: [Self.canary], in: peers.peers.stores.directory)
        // The same in a store that is not encrypted is found.
        let plain = try await peers.peers.stores.manager.database(named: "plain")
        let pullPlain = try peers.peers.replication(.pull, plain, through: peers.wire) {
            $0.downloadsAttachments = false
        }
        try await pullPlain.run()
        let plainGate = Gate()
        peers.wire.answer { _, response, number in number == 2 ? response.held(after: 800_000, plainGate) : response }
        let plainAttachment = try #require(try plain.document(withID: "film").currentRevision?.attachment(named: "a"))
        let second = try pullPlain.download(plainAttachment)
        try await plainGate.isReached()
        try expectReadable([Self.canary], in: peers.peers.stores.directory)
        second.cancel()

        peers.wire.answer(nil)
        download.resume()
        try await download.run()
        #expect(peers.wire.requests.last?.fields["Range"] == "bytes=800000-")
        #expect(try peers.attachment("film").content == text)
        try peers.expectNothingIncoming()
        try expectNothingReadable(of: [Self.canary], in: peers.peers.stores.url(ofDatabaseNamed: "local"))
    }

    @Test("A cancelled download leaves nothing", arguments: [true, false]) func cancel(isPaused: Bool) async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, _ in response.held(after: 100_000, gate) }
        let download = try peers.pull().download(peers.attachment("film"))
        try await gate.isReached()
        if isPaused { download.pause() }
        #expect(try peers.files("incoming").count == 1)
        download.cancel()
        try peers.expectNothingIncoming()
        #expect(download.status.activity == .failed && download.status.error is CancellationError)
        await #expect(throws: CancellationError.self) { try await download.run() }
        gate.open()
        download.resume()
        try await Task.sleep(for: .milliseconds(30))
        try peers.expectNothingIncoming()
        #expect(try !peers.attachment("film").contentAvailable)
        peers.wire.answer(nil)
        try await peers.pull().download(peers.attachment("film")).run()
        #expect(try peers.attachment("film").content == Self.film)
    }

    @Test("A task that waits for a download and is cancelled has cancelled it") func cancelledTask() async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, _ in response.held(after: 100_000, gate) }
        let download = try peers.pull().download(peers.attachment("film"))
        let task = Task { try await download.run() }
        try await gate.isReached()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try peers.expectNothingIncoming()
    }

    @Test("A paused download that is let go is over, and holds nothing") func letGo() async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, _ in response.held(after: 100_000, gate) }
        var download: AttachmentDownload? = try peers.pull().download(peers.attachment("film"))
        try await gate.isReached()
        download?.pause()
        #expect(try peers.files("incoming").count == 1)
        download = nil
        try peers.expectNothingIncoming()
    }

    @Test("A closed database ends its downloads", arguments: [true, false]) func closed(isPaused: Bool) async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, _ in response.held(after: 100_000, gate) }
        let download = try peers.pull().download(peers.attachment("film"))
        try await gate.isReached()
        if isPaused { download.pause() }
        try await peers.database.close()
        try peers.expectNothingIncoming()
        gate.open()
        download.resume()
        #expect(await status(of: download) == 500)
        let again = try await peers.peers.stores.manager.database(named: "local", encryptionKey: TestServer.key)
        #expect(try await again.verify(.everything).findings.isEmpty)
    }
}
