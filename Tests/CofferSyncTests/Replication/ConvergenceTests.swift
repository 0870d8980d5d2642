import Coffer
import CofferModel
import Foundation
import TestSupport
import Testing

@testable import CofferSync

@Suite("Three stores that end equal", .serialized) struct ConvergenceTests {
    /// Random numbers that come again with the same seed.
    private struct Random: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 29)
        }
    }

    @Test("Random edits on three stores, and replications in any order, end with the same everywhere", arguments: 1...6)
    func threeStores(seed: UInt64) async throws {
        var random = Random(state: seed)
        let peers = try Peers()
        let stores = try ["one", "two", "three"].map { try peers.database($0) }
        for _ in 0..<60 {
            let store = stores[Int.random(in: 0..<3, using: &random)]
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<6: try edit(store, &random)
            case 6..<8: try await peers.push(store)
            default: try await peers.pull(store)
            }
        }
        // Everybody's to the server, and from there to everybody.
        for store in stores { try await peers.push(store) }
        for store in stores { try await peers.pull(store) }
        let expected = try Contents(try peers.remote)
        #expect(expected.documents.count > 3)
        for store in stores { #expect(try Contents(store) == expected, "seed \(seed)") }
        // And there it stays.
        for store in stores {
            #expect(try await peers.pull(store).status.totalCount == 0)
        }
    }

    private func edit(_ store: Database, _ random: inout Random) throws {
        let document = store.document(withID: "doc-\(Int.random(in: 0..<6, using: &random))")
        let leaves = try document.leafRevisions
        let content = Data("content \(Int.random(in: 0..<4, using: &random))".utf8)
        switch Int.random(in: 0..<8, using: &random) {
        case 0 where try document.currentRevision != nil:
            try document.delete()
        case 1 where leaves.count > 1:
            try document.resolveConflicts { draft, _ in draft["merged"] = true }
        case 2:
            let draft = try document.newRevision()
            draft["n"] = .number(.init(Int64.random(in: 0..<1000, using: &random)))
            draft.setAttachment(named: "a.txt", contentType: "text/plain", content: content)
            try draft.save()
        case 3:
            let draft = try document.newRevision()
            draft["blob"] = .blob(Blob(data: content))
            try draft.save()
        case 4 where !leaves.isEmpty:
            // A branch, as who works on an older state makes it.
            let draft = try leaves[Int.random(in: 0..<leaves.count, using: &random)].createRevision()
            draft["branch"] = .number(.init(Int64.random(in: 0..<1000, using: &random)))
            try draft.saveAllowingConflict()
        default:
            let draft = try document.newRevision()
            draft["n"] = .number(.init(Int64.random(in: 0..<1000, using: &random)))
            try draft.save()
        }
    }

    @Test("A replication that is stopped anywhere and begun again leaves both sides equal") func interrupted()
        async throws
    {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        for number in 0..<1200 { try remote.write("doc-\(number)", ["n": .number(.init(Int64(number)))]) }
        var last = 0
        // Cancelled at later and later requests, until it comes to its end.
        for stop in 4...40 {
            let holder = Holder()
            let transport = InterceptingTransport(peers.server) { request, number, inner in
                if number == stop { holder.replication?.stop() }
                return try await inner.send(request)
            }
            let pull = try peers.replication(.pull, database, through: transport)
            holder.replication = Canceller(pull)
            let isOver = (try? await pull.run()) != nil && transport.count < stop
            #expect(try database.documentCount >= last)
            last = try database.documentCount
            if isOver { break }
        }
        #expect(try Contents(database) == Contents(remote))
    }

    /// Lets the transport stop the replication that uses it.
    private final class Holder: @unchecked Sendable {
        // Set once before the replication starts, and read by its task only.
        var replication: Canceller?
    }

    private struct Canceller: Sendable {
        let replication: Replication
        init(_ replication: Replication) { self.replication = replication }
        func stop() { Task { await replication.stop() } }
    }
}

@Suite("Continuous replications") struct ContinuousTests {
    @Test("A continuous replication carries changes both ways as they are made, until it is stopped") func bothWays()
        async throws
    {
        let peers = try Peers()
        let (one, two) = (try peers.database("one"), try peers.database("two"))
        let push = try peers.replication(.push, one) { $0.isContinuous = true }
        let pull = try peers.replication(.pull, two) { $0.isContinuous = true }
        push.start()
        pull.start()
        #expect(try await eventually { push.status.activity == .idle && pull.status.activity == .idle })
        try one.write("a", ["n": 1])
        #expect(try await eventually { try two["a"] != nil })
        #expect(try await eventually { push.status.activity == .idle })
        try one.write("b", ["n": 1], attachment: ("x", Data([1])))
        #expect(try await eventually { try two["b"]?.currentRevision?.attachment(named: "x")?.content == Data([1]) })
        await push.stop()
        await pull.stop()
        #expect(push.status.activity == .stopped && pull.status.activity == .stopped)
        #expect(push.status.error == nil && pull.status.error == nil)
        #expect(push.status.completedCount == 2)
    }

    @Test("A continuous replication waits while the server is away, and goes on when it is back") func offline()
        async throws
    {
        let peers = try Peers()
        let database = try peers.database()
        let isAway = Counter()
        isAway.add(1)
        let transport = InterceptingTransport(peers.server) { request, _, inner in
            if isAway.value > 0 { throw SyncError(503, "the server can't be reached") }
            return try await inner.send(request)
        }
        var options = ReplicationOptions()
        options.isContinuous = true
        options.retry.attemptCount = 1
        let push = try Replication(
            .push, database, try RemoteURL(try #require(URL(string: "http://server/db"))), options,
            sleep: { _ in try await Task.sleep(for: .milliseconds(20)) }, transport: { transport })
        let statuses = push.statuses
        try database.write("a", [:])
        push.start()
        for await status in statuses where status.activity == .offline {
            #expect((status.error as? SyncError)?.status == 503)
            break
        }
        isAway.add(-1)
        #expect(try await eventually { try peers.remote.documentCount == 1 })
        #expect(try await eventually { push.status.activity == .idle && push.status.error == nil })
        await push.stop()
    }

    @Test("A continuous replication that is not allowed in does not try for ever") func unauthorized() async throws {
        let server = TestServer { $0.access = .passwords(["a": "b"]) }
        let peers = try Peers()
        let pull = try peers.replication(.pull, try peers.database(), through: server) { $0.isContinuous = true }
        pull.start()
        #expect(try await eventually { pull.status.activity == .stopped })
        #expect((pull.status.error as? SyncError)?.status == 401)
    }
}
