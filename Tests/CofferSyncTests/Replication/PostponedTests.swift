import Coffer
import CofferModel
import Foundation
import TestSupport
import Testing

@testable import CofferSync

/// One document, or one batch, that does not come across: the others do, and it comes once it can.
@Suite("Documents that are postponed", .serialized) struct PostponedTests {
    private let peers: Peers
    private let database: Database

    init() throws {
        peers = try Peers()
        database = try peers.database()
    }

    private func fill(_ database: Database, count: Int = 60, byteCount: Int = 2000) throws {
        for number in 0..<count {
            try database.write("doc-\(number)", ["text": .string(String(repeating: "x", count: byteCount))])
        }
    }

    private func body(_ request: inout HTTPRequest) async throws -> String {
        let bytes = try await request.body.stream.collect(upTo: 1 << 24)
        request.body = .bytes(bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test(
        "A server that refuses batches with something in them gets the rest, and that too once it may",
        arguments: [403, 404, 411, 500])
    func refusedBatch(status: Int) async throws {
        try fill(database)
        let wall = InterceptingTransport(peers.server) { [self] request, _, inner in
            var request = request
            guard request.target.contains("_bulk_docs") else { return try await inner.send(request) }
            let isRefused = try await body(&request).contains("\"doc-13\"")
            return isRefused ? HTTPResponse(status) : try await inner.send(request)
        }
        // Batches end in the middle of a page of changes.
        let push = try peers.replication(.push, database, through: wall) { $0.batchByteCount = 20_000 }
        try await push.run()
        #expect(push.failures.map(\.documentID) == ["doc-13"])
        #expect(push.failures.first?.isTriedAgain == true)
        #expect(try push.pendingDocumentIDs() == ["doc-13"])
        #expect(try peers.remote.documentCount == 59)
        peers.wire.reset()
        try await peers.push(database)
        #expect(try Contents(peers.remote) == Contents(database))
        #expect(peers.wire.count("_bulk_docs") == 1, "\(peers.wire.all)")
        #expect(try push.pendingDocumentIDs() == [])
    }

    @Test("Where a server refuses everything, nothing is taken for exchanged", arguments: [403, 413, 500])
    func refusedAll(status: Int) async throws {
        try fill(database)
        let wall = InterceptingTransport(peers.server) { request, _, inner in
            request.target.contains("_bulk_docs") ? HTTPResponse(status) : try await inner.send(request)
        }
        let push = try peers.replication(.push, database, through: wall)
        let error = await #expect(throws: SyncError.self) { try await push.run() }
        #expect(error?.status == status)
        try await peers.push(database)
        #expect(try Contents(peers.remote) == Contents(database))
    }

    @Test("Documents that were sent count, though nobody can be asked about what comes behind them")
    func refusedBehind()
        async throws
    {
        try fill(database)
        let wall = InterceptingTransport(peers.server) { [self] request, _, inner in
            var request = request
            guard request.target.contains("_revs_diff") else { return try await inner.send(request) }
            let isRefused = try await body(&request).contains("\"doc-33\"")
            return isRefused ? HTTPResponse(400) : try await inner.send(request)
        }
        let push = try peers.replication(.push, database, through: wall) { $0.batchDocumentCount = 30 }
        let error = await #expect(throws: SyncError.self) { try await push.run() }
        #expect(error?.status == 400)
        #expect(try peers.remote.documentCount == 30)
        #expect(try push.pendingDocumentIDs().count == 30)
        #expect(push.status.completedCount == 30)
    }

    @Test("Revisions with many bytes of contents are saved a few at a time") func manyBytes() async throws {
        for number in 0..<5 {
            let draft = try peers.remote.document(withID: "doc-\(number)").newRevision()
            draft.setAttachment(
                named: "a", contentType: "image/png", content: Data(repeating: UInt8(number), count: 6 << 20))
            try await draft.save()
        }
        let (database, seen) = (database, Counter())
        let watching = InterceptingTransport(peers.server) { request, _, inner in
            // By the time the fourth is asked for the first ones are saved, or about to be.
            if request.target.contains("/doc-4/a") { seen.add(try database.documentCount) }
            return try await inner.send(request)
        }
        let pull = try peers.replication(.pull, database, through: watching)
        try await pull.run()
        #expect(pull.failures.isEmpty)
        #expect(try Contents(database) == Contents(peers.remote))
        #expect(seen.value >= 2)
    }

    @Test("Revisions that a server leaves out of its answer are asked for again") func unanswered() async throws {
        try fill(peers.remote, count: 5)
        let forgetful = InterceptingTransport(peers.server) { request, _, inner in
            guard request.target.contains("_bulk_get") else { return try await inner.send(request) }
            return HTTPResponse(200, body: .bytes(Array(#"{"results":[{"id":"doc-1","docs":[]}]}"#.utf8)))
        }
        let pull = try peers.replication(.pull, database, through: forgetful)
        try await pull.run()
        #expect(pull.failures.count == 5 && pull.failures.allSatisfy(\.isTriedAgain))
        #expect(try database.documentCount == 0)
        try await peers.pull(database)
        #expect(try Contents(database) == Contents(peers.remote))
    }

    @Test("A branch that a server leaves out is asked for again, though the other has come") func unansweredBranch()
        async throws
    {
        let root = try peers.remote.write("forked", ["n": 1])
        for number in [2, 3] {
            let draft = try root.createRevision()
            draft.properties = ["n": .number(.init(Int64(number)))]
            try await draft.saveAllowingConflict()
        }
        let forgetful = InterceptingTransport(peers.server) { request, _, inner in
            let answer = try await inner.send(request)
            guard request.target.contains("_bulk_get") else { return answer }
            let json = try JSONValue(json: try await answer.body.stream.collect(upTo: 1 << 20))
            let results = json["results"]?.arrayValue ?? []
            #expect(results.count == 2)
            let rest = JSONValue.object(["results": .array(Array(results.prefix(1)))])
            return HTTPResponse(200, body: .bytes(try rest.canonicalJSON()))
        }
        let pull = try peers.replication(.pull, database, through: forgetful)
        try await pull.run()
        #expect(pull.failures.map(\.documentID) == ["forked"] && pull.failures.allSatisfy(\.isTriedAgain))
        #expect(try database["forked"]?.leafRevisions.count == 1)
        try await peers.pull(database)
        #expect(try Contents(database) == Contents(peers.remote))
    }

    @Test("A run ends where more documents fail than can be kept for later, and a later one gets them all")
    func tooMany()
        async throws
    {
        let count = PostponedRevisions.limit + 100
        let remote = try peers.remote
        try await remote.inTransaction {
            for number in 0..<count { try remote.write("doc-\(number)", [:]) }
        }
        let forgetful = InterceptingTransport(peers.server) { request, _, inner in
            guard request.target.contains("_bulk_get") else { return try await inner.send(request) }
            return HTTPResponse(200, body: .bytes(Array(#"{"results":[]}"#.utf8)))
        }
        let pull = try peers.replication(.pull, database, through: forgetful)
        let error = await #expect(throws: SyncError.self) { try await pull.run() }
        #expect(error?.status == 502)
        try await peers.pull(database)
        #expect(try database.documentCount == count)
    }

    /// It was called no JSON, asked for in halves with pauses between, and asked for again in every run: minutes for one.
    @Test(
        "A document that can't be held is refused once, for good, and keeps no other from coming",
        arguments: [false, true])
    func unholdable(inParts: Bool) async throws {
        try fill(peers.remote, count: 30, byteCount: 10)
        let askedCount = Counter()
        let strange = InterceptingTransport(peers.server) { [self] request, _, inner in
            var request = request
            guard request.target.contains("_bulk_get") else { return try await inner.send(request) }
            askedCount.add(1)
            let isAsked = try await body(&request).contains("\"doc-7\"")
            if inParts { request.fields["Accept"] = "multipart/mixed" }
            let response = try await inner.send(request)
            guard isAsked else { return response }
            let bytes = try await response.body.stream.collect(upTo: 1 << 24)
            // A number that nobody can keep, and still whole parts.
            let text = String(decoding: bytes, as: UTF8.self)
                .replacing(/"_id":"doc-7"/, with: "\"_id\":\"doc-7\",\"n\":\(String(repeating: "9", count: 400))")
            return HTTPResponse(response.status, fields: response.fields, body: .bytes(Array(text.utf8)))
        }
        let pull = try peers.replication(.pull, database, through: strange)
        try await pull.run()
        let failure = try #require(pull.failures.first)
        #expect(pull.failures.map(\.documentID) == ["doc-7"] && !failure.isTriedAgain)
        #expect(failure.revisionID == (try peers.remote["doc-7"]?.currentRevisionID))
        let error = try #require(failure.error as? SyncError)
        #expect(error.status == 400 && error.detail.contains("out of range"), "\(error)")
        #expect(try database.documentCount == 29)
        #expect(askedCount.value == 1)
        try await peers.replication(.pull, database, through: strange).run()
        #expect(askedCount.value == 1)
        // Once it is another one it comes.
        try peers.remote.write("doc-7", ["n": 7])
        try await peers.pull(database)
        #expect(try Contents(database) == Contents(peers.remote))
    }

    @Test("A document that is too large for the server to say is reported, and the rest comes") func tooLarge()
        async throws
    {
        try fill(peers.remote, count: 10)
        let small = InterceptingTransport(peers.server) { [self] request, _, inner in
            var request = request
            guard request.target.contains("_bulk_get") else { return try await inner.send(request) }
            return try await body(&request).contains("\"doc-3\"") ? HTTPResponse(413) : try await inner.send(request)
        }
        let pull = try peers.replication(.pull, database, through: small)
        try await pull.run()
        #expect(pull.failures.map(\.documentID) == ["doc-3"])
        #expect(try database.documentCount == 9)
    }

    @Test("A revision id that none can have here is reported, and the rest of the page comes") func longRevision()
        async throws
    {
        try fill(peers.remote, count: 3)
        let rev = "1-" + String(repeating: "a", count: 300)
        let foreign = InterceptingTransport(peers.server) { request, _, inner in
            guard request.target.contains("_changes") else { return try await inner.send(request) }
            let response = try await inner.send(request)
            let text = String(decoding: try await response.body.stream.collect(upTo: 1 << 20), as: UTF8.self)
            let row = #"{"seq":0,"id":"strange","changes":[{"rev":"\#(rev)"}]},{"seq":0,"id":"_user/x","changes":[]},"#
            return HTTPResponse(
                200, body: .bytes(Array(text.replacing("\"results\":[", with: "\"results\":[\(row)").utf8)))
        }
        let pull = try peers.replication(.pull, database, through: foreign)
        try await pull.run()
        #expect(pull.failures.map(\.documentID) == ["strange"])
        #expect(try Contents(database) == Contents(peers.remote))
    }

    @Test(
        "A continuous replication tries a document again after a pause, so many times, and goes on meanwhile",
        arguments: [3, 100])
    func continuous(failingCount: Int) async throws {
        try peers.remote.write("bad", [:], attachment: ("a", Data([1])))
        let attempts = Counter()
        let failing = InterceptingTransport(peers.server) { request, _, inner in
            guard request.target.contains("/bad/a") else { return try await inner.send(request) }
            attempts.add(1)
            return attempts.value <= failingCount ? HTTPResponse(500) : try await inner.send(request)
        }
        let pull = try peers.replication(.pull, database, through: failing) {
            $0.isContinuous = true
            $0.retry.attemptCount = 1
        }
        pull.start()
        let limit = min(failingCount + 1, PostponedRevisions.attemptLimit)
        #expect(try await eventually { attempts.value >= limit })
        try peers.remote.write("later", [:])
        #expect(try await eventually { try database["later"] != nil })
        await pull.stop()
        #expect(try (database["bad"] == nil) == (failingCount == 100))
        #expect(attempts.value == min(failingCount + 1, PostponedRevisions.attemptLimit))
        try await peers.pull(database)
        #expect(try Contents(database) == Contents(peers.remote))
    }

    @Test("A database that was put back to an earlier state gets what it lost, whatever positions look like")
    func putBack() async throws {
        let opaque = InterceptingTransport(peers.wire) { request, _, inner in
            var request = request
            request.target = request.target.replacing("-opaque", with: "")
            let response = try await inner.send(request)
            guard request.target.contains("_changes") else { return response }
            let text = String(decoding: try await response.body.stream.collect(upTo: 1 << 20), as: UTF8.self)
                .replacing(/"(seq|last_seq)":([0-9]+)/) { "\"\($0.1)\":\"\($0.2)-opaque\"" }
            return HTTPResponse(200, body: .bytes(Array(text.utf8)))
        }
        let pull = try peers.replication(.pull, database, through: opaque) { $0.isContinuous = true }
        pull.start()
        try peers.remote.write("one", [:])
        #expect(try await eventually { try database["one"] != nil })
        let id = try #require(await peers.checkpointID())
        #expect(try await eventually { try database.localDocument(withID: id) != nil })
        let old = try database.localDocument(withID: id)
        // The same run goes on.
        try peers.remote.write("two", [:])
        #expect(try await eventually { try database["two"] != nil && database.localDocument(withID: id) != old })
        await pull.stop()
        // As a backup of the device would put it back.
        try await database.document(withID: "two").purge()
        try await database.saveLocalDocument(try #require(old), withID: id)
        try await peers.replication(.pull, database, through: opaque).run()
        #expect(try Contents(database) == Contents(peers.remote))
    }

    @Test("A filter that fails keeps its document out and no other, and says so") func failingFilter() async throws {
        try fill(database, count: 5)
        struct Broken: Error {}
        database.setFilter(named: "f") { revision, _ in
            if revision.document.documentID == "doc-2" { throw Broken() }
            return true
        }
        let push = try await peers.push(database) { $0.filter = "f" }
        #expect(push.failures.map(\.documentID) == ["doc-2"])
        #expect(try peers.remote.documentCount == 4)
        let remote = try peers.remote
        remote.setFilter(named: "f/f") { revision, _ in
            if revision.document.documentID == "doc-1" { throw Broken() }
            return true
        }
        let other = try peers.database("other")
        try await peers.pull(other) { $0.filter = "f/f" }
        #expect(try other.documentIDs() == ["doc-0", "doc-3", "doc-4"])
    }

    @Test("A document that a validation function lets nobody write is refused, and the push goes on")
    func unauthorizedDocument() async throws {
        try fill(database, count: 5)
        let validating = InterceptingTransport(peers.server) { request, _, inner in
            let response = try await inner.send(request)
            guard request.target.contains("_bulk_docs") else { return response }
            return HTTPResponse(
                201, body: .bytes(Array(#"[{"id":"doc-2","error":"unauthorized","reason":"no"}]"#.utf8)))
        }
        let push = try peers.replication(.push, database, through: validating)
        try await push.run()
        #expect(push.failures.map(\.documentID) == ["doc-2"])
        #expect((push.failures.first?.error as? SyncError)?.status == 403)
    }
}

extension Peers {
    /// The id of the checkpoints of the only replication there was.
    func checkpointID() async -> String? {
        var id: String?
        _ = try? await eventually {
            id = wire.all.first { $0.contains("_local/") }?.split(separator: "/").last.map(String.init)
            return id != nil
        }
        return id
    }
}
