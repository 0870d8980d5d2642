import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

@Suite("Pushing documents whose contents are away", .serialized) struct DeferredPushTests {
    private static let film = bytes(60_000)

    private func peers() async throws -> DeferredPeers {
        try await DeferredPeers { remote in
            try remote.write("film", ["n": 1], attachment: ("a", Self.film))
            try remote.write("small", ["n": 1], attachment: ("a", Data([1, 2, 3])))
            try remote.write("face", ["face": .blob(Blob(data: Data([4, 5, 6])))])
            try remote.write("plain", ["n": 1])
        }
    }

    @Test("A document that is edited here without its content keeps it on the server that has it") func sameServer()
        async throws
    {
        let peers = try await peers()
        for id in ["film", "small", "face", "plain"] { try peers.database.write(id, ["n": 2]) }
        let push = try peers.peers.replication(.push, peers.database, through: peers.wire)
        try await push.run()
        #expect(push.status.failedCount == 0, "\(push.failures)")
        let remote = try peers.peers.remote
        for (id, content) in [("film", Self.film), ("small", Data([1, 2, 3]))] {
            let revision = try #require(try remote.document(withID: id).currentRevision)
            #expect(try revision["n"] == 2 && revision.attachment(named: "a")?.content == content)
        }
        let face = try #require(try remote.document(withID: "face").currentRevision)
        #expect(try face["n"] == 2 && face.blob(forKey: "face")?.content == Data([4, 5, 6]))
        #expect(peers.wire.requests.isEmpty)
        #expect(try !peers.attachment("film").contentAvailable)
    }

    @Test("A server that doesn't have the content gets the document once it is here") func otherServer() async throws {
        let peers = try await peers()
        let other = TestServer()
        let target = try other.database()
        let follows = Counter()
        let watched = InterceptingTransport(other) { request, _, inner in
            // Nothing is announced that doesn't come.
            if case .bytes(let bytes) = request.body, String(decoding: bytes, as: UTF8.self).contains("follows") {
                follows.add(1)
            }
            return try await inner.send(request)
        }
        func push() async throws -> Replication {
            let push = try peers.peers.replication(.push, peers.database, through: watched)
            try await push.run()
            return push
        }
        let first = try await push()
        #expect(Set(first.failures.map(\.documentID)) == ["film", "small", "face"])
        for failure in first.failures {
            #expect((failure.error as? SyncError)?.status == 412 && failure.isTriedAgain, "\(failure)")
        }
        // Others come, and nothing is half there.
        #expect(try target.documentIDs() == ["plain"])
        #expect(try peers.attachment("film").length == Self.film.count)
        #expect(try await push().failures.count == 3)
        #expect(follows.value == 0)

        let pull = try peers.pull()
        try await pull.download(peers.attachment("film")).run()
        try await pull.download(peers.attachment("small")).run()
        let face = try #require(try peers.database.document(withID: "face").currentRevision?.blob(forKey: "face"))
        try await pull.download(face).run()
        #expect(try await push().failures.isEmpty)
        #expect(try Contents(target) == Contents(peers.peers.remote))
        // From here on it goes on where it was.
        let wire = RecordingTransport(other)
        try await peers.peers.replication(.push, peers.database, through: wire).run()
        #expect(wire.count("_revs_diff") == 0, "\(wire.all)")
    }
}
