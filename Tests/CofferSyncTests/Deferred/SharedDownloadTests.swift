import Coffer
import CofferModel
import CofferTesting
import Foundation
import TestSupport
import Testing

@testable import CofferSync

@Suite("Downloads that several share", .serialized) struct SharedDownloadTests {
    private static let film = bytes(300_000)

    private func peers() async throws -> DeferredPeers {
        try await DeferredPeers { try $0.write("film", [:], attachment: ("a", Self.film)) }
    }

    @Test("Calls for the same content at the same time share a download") func shared() async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, _ in response.held(after: 100_000, gate) }
        // Of two replications, and of two attachments that are the same.
        let first = try peers.pull().download(peers.attachment("film"))
        try await gate.isReached()
        let second = try peers.pull().download(peers.attachment("film"))
        #expect(second.status.activity == .active && second.status.completedByteCount == 100_000)
        gate.open()
        try await first.run()
        try await second.run()
        #expect(peers.wire.requests.count == 1)
        #expect(second.status.activity == .finished && second.status.completedByteCount == Self.film.count)
        #expect(try peers.attachment("film").content == Self.film)
    }

    @Test("Each who shares a download may cancel and pause it alone") func apart() async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, _ in response.held(after: 100_000, gate) }
        let pull = try peers.pull()
        let downloads = try (0..<3).map { _ in try pull.download(try peers.attachment("film")) }
        try await gate.isReached()
        downloads[0].cancel()
        downloads[1].pause()
        #expect(downloads[0].status.activity == .failed && downloads[1].status.activity == .paused)
        #expect(downloads[2].status.activity == .active)
        downloads[1].resume()
        #expect(downloads[1].status.activity == .active)
        downloads[1].pause()
        gate.open()
        try await downloads[2].run()
        // It is here, for who paused, too.
        try await downloads[1].run()
        #expect(downloads[0].status.activity == .failed)
        #expect(peers.wire.requests.count == 1)
    }

    @Test("A shared download stops when the last one pauses it, and is over when the last one cancels it") func last()
        async throws
    {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, number in number < 3 ? response.held(after: 100_000, gate) : response }
        let pull = try peers.pull()
        let (first, second) = (
            try pull.download(peers.attachment("film")), try pull.download(peers.attachment("film"))
        )
        try await gate.isReached()
        first.pause()
        second.cancel()
        #expect(try peers.files("incoming").count == 1)
        try await Task.sleep(for: .milliseconds(20))
        #expect(first.status.activity == .paused && peers.wire.requests.count == 1)
        first.resume()
        #expect(try await eventually { peers.wire.requests.count >= 2 })
        first.cancel()
        try peers.expectNothingIncoming()
        let third = try pull.download(peers.attachment("film"))
        try await third.run()
        #expect(try peers.attachment("film").content == Self.film)
        try peers.expectNothingIncoming()
    }

    @Test("A download asks the next server that was named where one doesn't have the content") func servers()
        async throws
    {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, _, _ in
            try await gate.wait()
            return HTTPResponse(404)
        }
        let first = try peers.pull().download(peers.attachment("film"))
        try await gate.isReached()
        let other = try peers.peers.replication(.pull, peers.database)
        let second = try other.download(peers.attachment("film"))
        gate.open()
        try await first.run()
        try await second.run()
        #expect(try peers.attachment("film").content == Self.film)
        #expect(peers.wire.requests.count == 1)
    }

    @Test("A download that many ask for, pause, resume and cancel at once ends whole or not at all") func storm()
        async throws
    {
        let peers = try await peers()
        peers.wire.answer { _, response, number in
            number.isMultiple(of: 3) ? response.broken(after: 120_000) : response.broken(after: 400_000)
        }
        let pull = try peers.pull()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<24 {
                group.addTask {
                    guard let download = try? pull.download(try peers.attachment("film")) else { return }
                    for _ in 0..<5 {
                        if Bool.random() { download.pause() }
                        await Task.yield()
                        download.resume()
                    }
                    if number.isMultiple(of: 2) { download.cancel() } else { try? await download.run() }
                }
            }
        }
        #expect(try peers.attachment("film").content == Self.film)
        try peers.expectNothingIncoming()
        try await peers.expectSound()
    }
}
