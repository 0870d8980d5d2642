import Coffer
import CofferModel
import Foundation
import TestSupport
import Testing

@testable import CofferSync

/// Replications that are started, stopped and waited for in each other's way.
@Suite("Starting, stopping and waiting for replications", .serialized) struct LifecycleTests {
    private let peers: Peers
    private let database: Database

    init() throws {
        peers = try Peers()
        database = try peers.database()
        for number in 0..<5 { try peers.remote.write("doc-\(number)", [:]) }
    }

    /// Holds every request for documents until it is let go.
    private func gate(_ isOpen: Counter, _ waiting: Counter) -> InterceptingTransport {
        InterceptingTransport(peers.server) { request, _, inner in
            if request.target.contains("_bulk_get") {
                waiting.add(1)
                #expect(try await eventually { isOpen.value != 0 })
            }
            return try await inner.send(request)
        }
    }

    private func wait(for condition: @Sendable () throws -> Bool) async throws {
        #expect(try await eventually(condition), "it took too long")
    }

    @Test("Whoever waits for a replication that somebody else stops hears that it was stopped") func stoppedByAnother()
        async throws
    {
        let (isOpen, waiting) = (Counter(), Counter())
        let pull = try peers.replication(.pull, database, through: gate(isOpen, waiting))
        let running = Task { try await pull.run() }
        try await wait { waiting.value > 0 }
        await pull.stop()
        await #expect(throws: CancellationError.self) { try await running.value }
        #expect(pull.status.activity == .stopped && pull.status.error == nil)
        isOpen.add(1)
        try await pull.run()
        #expect(try database.documentCount == 5)
    }

    @Test("A replication that is started while it is being stopped runs again") func startedWhileStopping() async throws
    {
        let (isOpen, waiting) = (Counter(), Counter())
        let pull = try peers.replication(.pull, database, through: gate(isOpen, waiting))
        pull.start()
        try await wait { waiting.value > 0 }
        async let stopped: Void = pull.stop()
        // Whichever comes first: once the stop is through, what was started after it goes on.
        try await Task.sleep(for: .milliseconds(5))
        pull.start()
        isOpen.add(1)
        await stopped
        try await pull.run()
        #expect(try database.documentCount == 5)
    }

    @Test("Of many calls that start, stop and wait for a replication none hangs, and the last state is that of the end")
    func crowd() async throws {
        let pull = try peers.replication(.pull, database)
        for _ in 0..<30 {
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<6 {
                    group.addTask {
                        switch number % 3 {
                        case 0: pull.start()
                        case 1: await pull.stop()
                        default: _ = try? await pull.run()
                        }
                    }
                }
            }
        }
        try await pull.run()
        #expect(pull.status.activity == .stopped)
        // The latest status is the one that somebody hears who is slow.
        for await status in pull.statuses {
            #expect(status.activity == .stopped)
            break
        }
        #expect(try database.documentCount == 5)
    }

    @Test("A replication with batches of nothing is refused", arguments: [0, -1]) func noBatches(count: Int) throws {
        for change in [
            { $0.batchDocumentCount = count }, { $0.batchByteCount = count }, { $0.parallelDownloadCount = count },
            { $0.retry.attemptCount = count },
        ] as [(inout ReplicationOptions) -> Void] {
            let error = #expect(throws: SyncError.self) { try peers.replication(.pull, database, change) }
            #expect(error?.status == 400)
        }
    }

    @Test("A replication that is printed or dumped shows no password") func redaction() throws {
        let secret = "s3cret-4711"
        var options = ReplicationOptions()
        options.credentials = .basic(name: "robin", password: secret)
        options.headers = ["Authorization": "Bearer \(secret)"]
        let listening = ListenerOptions(access: .passwords(["robin": secret]))
        let url = try RemoteURL(try #require(URL(string: "http://robin:\(secret)@server/db")))
        let pull = try peers.replication(.pull, database, url: "http://robin:\(secret)@server/db") { $0 = options }
        for value in [options, options.credentials as Any, listening, listening.access, url, pull, [options]] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] { #expect(!text.contains(secret), "\(text)") }
        }
        #expect("\(Optional(secret) as Any)".contains(secret))
    }

    @Test("A session is begun anew before it ends, and takes all the cookies there are") func sessions() async throws {
        let logins = Counter()
        let server = InterceptingTransport(peers.server) { request, _, inner in
            if request.target == "/_session" {
                logins.add(1)
                var fields: HTTPFields = ["Set-Cookie": "Balance=node1; Path=/; Max-Age=0"]
                // The first one ends in a moment: one that is over is nobody's, without a word.
                fields.add("Set-Cookie", "AuthSession=token\(logins.value); Max-Age=\(logins.value == 1 ? 1 : 600)")
                return HTTPResponse(200, fields: fields, body: .bytes(Array("{\"ok\":true}".utf8)))
            }
            #expect(request.fields["Cookie"] == "Balance=node1; AuthSession=token\(logins.value)")
            if logins.value == 1, request.target.contains("_changes") { try await Task.sleep(for: .milliseconds(850)) }
            return try await inner.send(request)
        }
        let pull = try peers.replication(.pull, database, through: server) {
            $0.credentials = .session(name: "robin", password: "secret")
        }
        try await pull.run()
        #expect(logins.value == 2)
        #expect(try database.documentCount == 5)
    }
}

/// Names and contents that meet in one document.
@Suite("Names that meet in one document") struct NameTests {
    @Test("Blobs that are too large stay away one after another, and their document comes") func largeBlobs()
        async throws
    {
        let server = TestServer { $0.attachmentByteLimit = 10_000 }
        let peers = try Peers()
        let database = try peers.database()
        try database.write(
            "d",
            [
                "a": .blob(Blob(data: Data(repeating: 1, count: 30_000))),
                "b": .blob(Blob(data: Data(repeating: 2, count: 20_000))), "c": .blob(Blob(data: Data([1]))),
            ])
        _ = try server.database()
        let push = try peers.replication(.push, database, through: server)
        try await push.run()
        #expect(push.failures.isEmpty, "\(push.failures)")
        let copy = try #require(try server.database().document(withID: "d").currentRevision)
        #expect(try ["a", "b", "c"].map { try copy.blob(forKey: $0)?.contentAvailable } == [false, false, true])
    }

    @Test("A blob whose name an attachment has goes under another, and comes back as the blob") func takenName()
        async throws
    {
        let peers = try Peers()
        let (database, other) = (try peers.database(), try peers.database("other"))
        let draft = try database.document(withID: "d").newRevision()
        draft.setAttachment(named: "blob_1", contentType: "a/b", content: Data("an attachment".utf8))
        draft["x"] = Blob(contentType: "a/b", data: Data("a blob".utf8))
        draft["y"] = Blob(contentType: "a/b", data: Data("another one".utf8))
        try await draft.save()
        try await peers.push(database)
        try await peers.pull(other)
        #expect(try Contents(peers.remote) == Contents(database))
        #expect(try Contents(other) == Contents(database))
        // CouchDB has digests of its own: there the lengths tell.
        let reference: JSONValue = ["@type": "blob", "digest": "sha1-aaa", "length": 6]
        let incoming = try IncomingRevision([
            "_id": "d", "_rev": "1-a", "x": reference,
            "_attachments": [
                "blob_1": ["digest": "md5-1", "length": 13, "stub": true],
                "blob_2": ["digest": "md5-2", "length": 6, "stub": true],
            ],
        ])
        #expect(incoming.contents.map { $0.blob?.digest } == [nil, "sha1-aaa"])
    }

    @Test("Attachments whose names differ by nothing but Unicode's normalization are two") func normalization()
        async throws
    {
        let peers = try Peers()
        let (database, other) = (try peers.database(), try peers.database("other"))
        let draft = try database.document(withID: "d").newRevision()
        let names = ["caf\u{E9}", "cafe\u{301}"]
        for (name, byte) in zip(names, [UInt8(1), 2]) {
            draft.setAttachment(named: name, contentType: nil, content: Data(repeating: byte, count: 20_000))
        }
        try await draft.save()
        try await peers.push(database)
        try await peers.pull(other)
        for copy in [try peers.remote, other] {
            let revision = try #require(try copy.document(withID: "d").currentRevision)
            for (name, byte) in zip(names, [UInt8(1), 2]) {
                #expect(try revision.attachment(named: name)?.content == Data(repeating: byte, count: 20_000))
            }
        }
    }

    @Test("A document of very many blobs is no work for hours", .timeLimit(.minutes(30))) func manyBlobs() throws {
        var list: [JSONValue] = []
        for number in 0..<100_000 { list.append(["@type": "blob", "digest": "sha1-\(number)", "length": 1]) }
        let names = BlobNames(["list": .array(list)])
        #expect(names.all.count == 100_000)
        #expect(names.all.last?.name == "blob_100000")
    }
}
