import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// Contents that a pull left out, and that are fetched later.
@Suite("Contents that a pull left out") struct MissingContentTests {
    private func peers() async throws -> DeferredPeers {
        try await DeferredPeers { remote in
            for number in 0..<12 {
                try remote.write(
                    "d\(number)", ["n": 1], attachment: ("a", bytes(2_000 + number, seed: UInt64(number + 1))))
            }
            try remote.write("same", ["n": 1], attachment: ("other", bytes(2_000, seed: 1)))
        }
    }

    @Test("Contents that are not here are counted, by a verification and a backup too, until they have come")
    func counted()
        async throws
    {
        let deferred = try await peers()
        let database = deferred.database
        // Two documents have the same.
        #expect(try database.missingContentCount == 12)
        #expect(try await database.verify(.attachments).missingContentCount == 12)
        let copy = deferred.peers.stores.directory.appending(path: "copy.coffer")
        #expect(try await database.backup(to: copy, encryptionKey: TestServer.key).missingContentCount == 12)
        let result = try await deferred.pull().downloadMissingContents()
        #expect(result.downloadedCount == 12 && result.failedCount == 0)
        #expect(result.downloadedByteCount == (0..<12).reduce(0) { $0 + 2_000 + $1 })
        #expect(try database.missingContentCount == 0)
        #expect(try await database.verify(.everything).missingContentCount == 0)
        #expect(try Contents(database) == Contents(deferred.peers.remote))
        try await deferred.expectSound()
        // Nothing is asked for again.
        let none = try await deferred.pull().downloadMissingContents()
        #expect(none.downloadedCount == 0)
    }

    @Test("Only contents that are asked for come: of a document, by their name, and up to a size") func some()
        async throws
    {
        let deferred = try await peers()
        let pull = try deferred.pull()
        let one = try pull.missingContents(ofDocumentWithID: "d3", named: "a")
        #expect(one.map(\.byteCount) == [2_003])
        #expect(try await pull.download(one).downloadedCount == 1)
        #expect(try pull.missingContents(ofDocumentWithID: "d3").isEmpty)
        #expect(throws: CofferError.self) { try pull.missingContents(ofDocumentWithID: "d3", named: "none") }
        #expect(throws: CofferError.self) { try pull.missingContents(ofDocumentWithID: "none") }
        let two = try await pull.downloadMissingContents(ofDocumentsWithIDs: ["d4", "same", "none"])
        #expect(two.downloadedCount == 2)
        let limited = try deferred.pull { $0.attachmentByteLimit = 2_005 }
        #expect(try await limited.downloadMissingContents().downloadedCount == 3)
        #expect(try deferred.database.missingContentCount == 6)
    }

    @Test("A content that the server doesn't have is told of, and the others come") func gone() async throws {
        let deferred = try await peers()
        deferred.wire.answer { request, response, _ in
            request.target.hasPrefix("/db/d5/") ? HTTPResponse(404) : response
        }
        let result = try await deferred.pull().downloadMissingContents()
        #expect(result.downloadedCount == 11 && result.failedCount == 1)
        #expect(result.failures.map(\.content.documentID) == ["d5"])
        #expect((result.failures.first?.error as? SyncError)?.status == 404)
        #expect(try deferred.database.missingContentCount == 1)
    }

    @Test("A pull leaves contents that are too large, and one with a greater limit fetches them") func limited()
        async throws
    {
        let peers = try Peers()
        let database = try peers.database()
        try peers.remote.write("small", ["n": 1], attachment: ("a", bytes(500)))
        try peers.remote.write("large", ["n": 1], attachment: ("a", bytes(50_000, seed: 2)))
        let pull = try await peers.pull(database) { $0.attachmentByteLimit = 1_000 }
        #expect(pull.failures.isEmpty)
        #expect(try database.documentCount == 2)
        #expect(try database.missingContentCount == 1)
        #expect(try await peers.pull(database).downloadMissingContents().downloadedCount == 1)
        #expect(try Contents(database) == Contents(peers.remote))
        // One that turns out to be longer than it was said to be is refused.
        try peers.remote.write("liar", ["n": 1], attachment: ("a", bytes(50_000, seed: 3)))
        let liar = InterceptingTransport(peers.server) { request, _, inner in
            let response = try await inner.send(request)
            guard request.target.contains("_bulk_get") else { return response }
            let text = String(decoding: try await response.body.stream.collect(upTo: 1 << 20), as: UTF8.self)
            return HTTPResponse(
                200, fields: response.fields, body: .bytes(Array(text.replacing(#""length":50000,"#, with: "").utf8)))
        }
        let refused = try peers.replication(.pull, database, through: liar) { $0.attachmentByteLimit = 1_000 }
        try await refused.run()
        #expect(refused.failures.map(\.documentID) == ["liar"])
        #expect((refused.failures.first?.error as? SyncError)?.status == 413)
    }
}
