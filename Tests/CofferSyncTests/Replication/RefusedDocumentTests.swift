import Coffer
import CofferModel
import Foundation
import Testing

@testable import CofferSync

/// Documents that are refused for good are known to later runs, until they are settled.
@Suite("Documents that are refused") struct RefusedDocumentTests {
    private let peers: Peers
    private let database: Database

    init() throws {
        peers = try Peers()
        database = try peers.database()
    }

    /// A server that refuses a document for good, where `condition` holds.
    private func refusing(_ ids: Set<String>) -> InterceptingTransport {
        InterceptingTransport(peers.server) { request, _, inner in
            let response = try await inner.send(request)
            guard request.target.contains("_bulk_docs"), response.status == 201 else { return response }
            let rows = ids.sorted().map {
                JSONValue.object(["id": .string($0), "error": "forbidden", "reason": "no", "status": 403])
            }
            return HTTPResponse(201, body: .bytes(try JSONValue.array(rows).canonicalJSON()))
        }
    }

    @Test("A document that a server refuses is known to the next run, and settled by a revision that it takes")
    func pushed()
        async throws
    {
        for number in 0..<5 { try database.write("d\(number)", ["n": 1]) }
        let first = try peers.replication(.push, database, through: refusing(["d2"]))
        try await first.run()
        #expect(first.status.failedCount == 1)
        #expect(try first.refusedDocuments().map(\.documentID) == ["d2"])
        // Nothing is sent, and it is still known, by another replication of the same name too.
        peers.wire.reset()
        let second = try await peers.push(database)
        #expect(second.failures.isEmpty && peers.wire.count("_bulk_docs") == 0)
        let known = try #require(try second.refusedDocuments().first)
        #expect(known.documentID == "d2" && (known.error as? SyncError)?.status == 403 && !known.isTriedAgain)
        try database.write("d2", ["n": 2])
        try await peers.push(database)
        #expect(try second.refusedDocuments().isEmpty)
    }

    @Test("However many documents in a row are too large for a server, the others come across")
    func tooLargeInARow() async throws {
        let count = RefusalStreak.limit + 5
        let text = JSONValue.string(String(repeating: "x", count: RefusalStreak.largeByteCount))
        for number in 0..<count { try database.write("large-\(number)", ["text": text]) }
        try database.write("small", ["n": 1])
        let wall = InterceptingTransport(peers.server) { request, _, inner in
            guard request.target.contains("_bulk_docs") else { return try await inner.send(request) }
            var request = request
            let body = try await request.body.stream.collect(upTo: 1 << 24)
            request.body = .bytes(body)
            return body.count > RefusalStreak.largeByteCount ? HTTPResponse(413) : try await inner.send(request)
        }
        let push = try peers.replication(.push, database, through: wall)
        try await push.run()
        #expect(push.failures.count == count && push.failures.allSatisfy { !$0.isTriedAgain })
        #expect(try peers.remote.documentIDs() == ["small"])
        #expect(try push.refusedDocuments().count == count)
        // None is sent once more before it changes.
        try database.write("other", ["n": 1])
        try await peers.push(database)
        #expect(try peers.remote.documentIDs() == ["other", "small"])
    }

    @Test("A document that was refused is tried once more where that is asked for, and the counts stay counts")
    func retried()
        async throws
    {
        for number in 0..<3 { try database.write("d\(number)", ["n": 1]) }
        try await peers.replication(.push, database, through: refusing(["d0", "d1"])).run()
        try await peers.remote.document(withID: "d1").purge()
        let again = try peers.replication(.push, database, through: refusing(["d1"])) { $0.retriesRefused = true }
        try await again.run()
        #expect(again.failures.map(\.documentID) == ["d1"])
        #expect(again.status.completedCount >= again.status.failedCount)
        #expect(again.status.completedCount == again.status.totalCount && again.status.failedCount == 1)
        #expect(try again.refusedDocuments().map(\.documentID) == ["d1"])
        let last = try peers.replication(.push, database) { $0.retriesRefused = true }
        try await last.run()
        #expect(try last.refusedDocuments().isEmpty)
    }

    @Test("A document that can't be here is named by later runs, until the server has another revision") func pulled()
        async throws
    {
        try peers.remote.write("a", ["n": 1])
        try peers.remote.write("big", ["n": 1])
        let hostile = InterceptingTransport(peers.server) { request, _, inner in
            let response = try await inner.send(request)
            guard request.target.contains("_bulk_get") else { return response }
            let text = String(decoding: try await response.body.stream.collect(upTo: 1 << 20), as: UTF8.self)
            let parts = text.split(separator: #""_id":"big""#, maxSplits: 1).map(String.init)
            guard parts.count == 2 else {
                return HTTPResponse(200, fields: response.fields, body: .bytes(Array(text.utf8)))
            }
            let changed = parts[0] + #""_id":"big","x":123456789012345678901234567890"# + parts[1]
            return HTTPResponse(200, fields: response.fields, body: .bytes(Array(changed.utf8)))
        }
        let pull = try peers.replication(.pull, database, through: hostile)
        try await pull.run()
        #expect(pull.failures.map(\.documentID) == ["big"])
        let next = try await peers.pull(database)
        #expect(next.failures.isEmpty && next.status.failedCount == 0)
        #expect(try next.refusedDocuments().map(\.documentID) == ["big"])
        // A run that begins anew meets it anyway; one that goes on asks where it is told to.
        let retry = try await peers.pull(database) { $0.retriesRefused = true }
        #expect(try retry.refusedDocuments().isEmpty)
        #expect(try Contents(database) == Contents(peers.remote))
    }

    @Test("A document that is refused here is settled by the revision that replaces it, and counts once")
    func rejected()
        async throws
    {
        try await peers.remote.inTransaction {
            for number in 0..<3 { try peers.remote.write("d\(number)", ["n": .number(JSONNumber(Int64(number)))]) }
        }
        database.setValidation(named: "small") { revision in
            if try revision["n"] == 2 { throw SyncError(403, "too large") }
        }
        let pull = try await peers.pull(database)
        #expect(pull.failures.map(\.documentID) == ["d2"] && pull.status.failedCount == 1)
        #expect(try await peers.pull(database).refusedDocuments().map(\.documentID) == ["d2"])
        try peers.remote.write("d2", ["n": 1])
        #expect(try await peers.pull(database).refusedDocuments().isEmpty)
        #expect(try database.document(withID: "d2").currentRevision?["n"] == 1)
    }
}
