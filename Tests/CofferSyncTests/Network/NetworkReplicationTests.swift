#if Sync
import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// Replications over sockets, as an app runs them.
@Suite("Replicating over sockets") struct NetworkReplicationTests {
    @Test("Two stores exchange everything through a listener, large contents too") func everything() async throws {
        let (home, served) = (TemporaryStores(), TemporaryStores())
        var options = ListenerOptions(access: .passwords(["robin": "s3cret"]))
        options.encryptionKey = { _ in TestServer.key }
        let listener = try await Listener(served.manager, options: options)
        let url = try #require(URL(string: listener.url.replacing("://", with: "://robin:s3cret@") + "/people"))

        let one = try await home.manager.database(named: "one", encryptionKey: TestServer.key)
        let two = try await home.manager.database(named: "two", encryptionKey: SymmetricKey())
        let large = Data((0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        try one.write("large", ["a": 1], attachment: ("film.mp4", large))
        try one.write("blob", ["b": .blob(Blob(data: Data(large.prefix(700_000))))])
        for number in 0..<300 { try one.write("doc-\(number)", ["n": .number(.init(Int64(number)))]) }

        var create = ReplicationOptions()
        create.createsTarget = true
        let push = try Replication(push: one, to: url, options: create)
        let status = try await push.run()
        #expect(status.failedCount == 0 && status.completedCount == 302, "\(push.failures)")
        let pull = try Replication(pull: url, into: two)
        try await pull.run()
        #expect(try Contents(two) == Contents(one))

        // And back, with a conflict on the way.
        try two.write("doc-1", ["n": 100])
        try one.write("doc-1", ["n": 200])
        try await Replication(push: two, to: url).run()
        try await Replication(pull: url, into: one).run()
        try await Replication(push: one, to: url).run()
        try await Replication(pull: url, into: two).run()
        #expect(try one.document(withID: "doc-1").conflictingRevisions.count == 2)
        #expect(try Contents(two) == Contents(one))
        await listener.stop()
    }

    @Test("An address where nobody listens is a 503, and a continuous replication waits") func nobody() async throws {
        let stores = TemporaryStores()
        let database = try await stores.manager.database(named: "db")
        let listener = try await Listener(stores.manager, options: ListenerOptions(access: .unauthenticatedLoopback))
        let url = try #require(URL(string: listener.url + "/none"))
        await listener.stop()
        var options = ReplicationOptions()
        options.retry.firstPause = .milliseconds(1)
        options.retry.attemptCount = 2
        let pull = try Replication(pull: url, into: database, options: options)
        let error = await #expect(throws: SyncError.self) { try await pull.run() }
        #expect(error?.status == 503)
        options.isContinuous = true
        options.retry.attemptCount = 1
        options.retry.firstPause = .seconds(30)
        let waiting = try Replication(pull: url, into: database, options: options)
        waiting.start()
        for await status in waiting.statuses where status.activity == .offline { break }
        await waiting.stop()
        #expect(waiting.status.activity == .stopped)
    }

    @Test("A continuous pull over a socket sees what is saved on the other side, and a stop of that side")
    func continuous() async throws {
        let (home, served) = (TemporaryStores(), TemporaryStores())
        let remote = try await served.manager.database(named: "db")
        let listener = try await Listener(served.manager, options: ListenerOptions(access: .unauthenticatedLoopback))
        let database = try await home.manager.database(named: "db")
        var options = ReplicationOptions()
        options.isContinuous = true
        options.retry.attemptCount = 1
        options.retry.firstPause = .seconds(20)
        let pull = try Replication(
            pull: try #require(URL(string: listener.url + "/db")), into: database, options: options)
        pull.start()
        for await status in pull.statuses where status.activity == .idle { break }
        try remote.write("a", [:])
        for await commit in database.changes { if case .committed = commit { break } }
        #expect(try database["a"] != nil)
        await listener.stop()
        for await status in pull.statuses where status.activity == .offline { break }
        await pull.stop()
    }
}
#endif
