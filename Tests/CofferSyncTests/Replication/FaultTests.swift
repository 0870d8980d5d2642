import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// A server, or the way there, that fails at each request in turn, in each of these ways.
enum NetworkFault: String, CaseIterable {
    case unreachable, silent, lostAnswer, cutBody, garbage, html, emptyObject, deepJSON, hugeHeader
    case status401, status403, status404, status409, status412, status413, status429, status500, status503

    private var status: Int? { rawValue.hasPrefix("status") ? Int(rawValue.dropFirst(6)) : nil }

    func answer(_ request: HTTPRequest, _ inner: any HTTPTransport) async throws -> HTTPResponse {
        let json: HTTPFields = ["Content-Type": "application/json"]
        func body(_ text: String) -> HTTPBody { .bytes(Array(text.utf8)) }
        switch self {
        case .unreachable: throw SyncError(503, "the server can't be reached")
        case .silent: throw SyncError(504, "the server does not answer")
        case .lostAnswer:
            // It was done, and nobody heard of it.
            let response = try await inner.send(request)
            _ = try await response.body.stream.collect(upTo: 1 << 26)
            throw SyncError(503, "the connection broke")
        case .cutBody:
            let response = try await inner.send(request)
            let bytes = try await response.body.stream.collect(upTo: 1 << 26)
            let half = stream([Array(bytes.prefix(bytes.count / 2))])
            let cut = ByteStream {
                if let piece = try await half.next() { return piece }
                throw SyncError(503, "the connection broke")
            }
            return HTTPResponse(response.status, fields: response.fields, body: .stream(cut, length: bytes.count))
        case .garbage: return HTTPResponse(200, fields: json, body: .bytes((0..<200).map { _ in .random(in: 0...255) }))
        case .html: return HTTPResponse(200, fields: ["Content-Type": "text/html"], body: body("<html>a hotel</html>"))
        case .emptyObject: return HTTPResponse(200, fields: json, body: body("{}"))
        case .deepJSON: return HTTPResponse(200, fields: json, body: body(String(repeating: "[", count: 100_000)))
        case .hugeHeader:
            return HTTPResponse(
                200, fields: ["Content-Type": "multipart/related; boundary=x"],
                body: body("--x\r\nA: " + String(repeating: "x", count: 100_000)))
        default:
            var fields = json
            fields["Retry-After"] = "1"
            return HTTPResponse(status ?? 500, fields: fields, body: body("{\"error\":\"some\",\"reason\":\"thing\"}"))
        }
    }
}

/// One after another: each case has stores of its own, and together they would have more files open than many systems allow.
@Suite("Requests of a replication that fail", .serialized) struct FaultTests {
    private static let canary = "canary-7f3a9c1e5b"

    private func fill(_ database: Database) throws {
        for number in 0..<5 {
            try database.write("doc-\(number)", ["n": .number(.init(Int64(number))), "c": .string(Self.canary)])
        }
        try database.write("gone", [:])
        try database.document(withID: "gone").delete()
        for ids in [["2-b", "1-a"], ["2-c", "1-a"]] {
            try database.putExistingRevision(
                ["w": .string(ids[0])], withID: "conflict", history: ids.compactMap { RevisionID($0) })
        }
        try database.write("att", ["t": 1], attachment: ("a.txt", Data(Self.canary.utf8)))
        let draft = try database.document(withID: "two").newRevision()
        draft["b"] = Blob(contentType: "a/b", data: Data("\(Self.canary) blob".utf8))
        draft.setAttachment(named: "x", contentType: "a/b", content: Data(repeating: 1, count: 3000))
        try draft.save()
    }

    @Test(
        "A replication that fails at any request in any way loses nothing, and has all once nothing fails",
        arguments: NetworkFault.allCases, [Replication.Direction.pull, .push])
    func sweep(fault: NetworkFault, direction: Replication.Direction) async throws {
        // How many requests there are when all goes well.
        var number = 1
        while true {
            let peers = try Peers()
            let database = try peers.database()
            let (source, target) = direction == .pull ? (try peers.remote, database) : (database, try peers.remote)
            try fill(source)
            let expected = try Contents(source)
            let (failing, fails) = (number, Counter())
            let transport = InterceptingTransport(peers.server) { request, number, inner in
                // Again and again, so that trying again is of no help.
                guard number >= failing, number < failing + 6 else { return try await inner.send(request) }
                fails.add(1)
                return try await fault.answer(request, inner)
            }
            let replication = try peers.replication(direction, database, through: transport)
            _ = try? await replication.run()
            #expect(replication.status.activity == .stopped)
            for (id, leaves) in try Contents(target).documents {
                // Half a revision would have lost an attachment.
                for leaf in leaves {
                    #expect(expected.documents[id]?.contains(leaf) == true, "\(fault) at \(failing): \(id)")
                }
            }
            // Some answers are lies that can't be seen through: a server that refuses each document for good is believed.
            let isBelieved = replication.failures.contains { !$0.isTriedAgain }
            let again = try peers.replication(direction, database)
            try await again.run()
            if !isBelieved, !Self.isLie(fault) { #expect(try Contents(target) == expected, "\(fault) at \(failing)") }
            let incoming = try FileManager.default.subpathsOfDirectory(atPath: peers.stores.directory.path)
                .filter { $0.contains("/incoming/") }
            #expect(incoming.isEmpty)
            if fails.value == 0 { break }
            number += 1
        }
        #expect(number > 4)
    }

    /// Answers that are well-formed and say something else than the truth: that nothing is missing.
    private static func isLie(_ fault: NetworkFault) -> Bool { fault == .emptyObject }

    @Test(
        "A failure of a request that passes is tried again, and nobody notices",
        arguments: [Replication.Direction.pull, .push])
    func retries(direction: Replication.Direction) async throws {
        let peers = try Peers()
        let database = try peers.database()
        let (source, target) = direction == .pull ? (try peers.remote, database) : (database, try peers.remote)
        try fill(source)
        let faults: [NetworkFault] = [.unreachable, .lostAnswer, .status503, .cutBody, .garbage]
        let transport = InterceptingTransport(peers.server) { request, number, inner in
            // Every other request fails.
            if number.isMultiple(of: 2) { return try await inner.send(request) }
            return try await faults[number / 2 % faults.count].answer(request, inner)
        }
        let replication = try peers.replication(direction, database, through: transport)
        try await replication.run()
        #expect(replication.status.failedCount == 0, "\(replication.failures)")
        #expect(try Contents(target) == Contents(source))
    }

    @Test("A pull takes no contents that are not what their digests say") func lyingContents() async throws {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        try fill(remote)
        let lies = InterceptingTransport(peers.server) { request, _, inner in
            // One by one.
            if request.target.contains("_bulk_get?attachments") { return HTTPResponse(400) }
            let response = try await inner.send(request)
            guard request.target.contains("a.txt") || request.target.contains("attachments=true") else {
                return response
            }
            let bytes = try await response.body.stream.collect(upTo: 1 << 20)
            let text = String(decoding: bytes, as: UTF8.self).replacing(Self.canary, with: "canary-7f3a9c1e5c")
            return HTTPResponse(response.status, fields: response.fields, body: .bytes(Array(text.utf8)))
        }
        let pull = try peers.replication(.pull, database, through: lies)
        try await pull.run()
        #expect(pull.failures.allSatisfy { ($0.error as? SyncError)?.status == 502 })
        #expect(Set(pull.failures.map(\.documentID)) == ["att", "two"])
        #expect(pull.failures.allSatisfy { $0.isTriedAgain })
        #expect(try database["att"] == nil && database["doc-1"] != nil)
        // They are asked for again, and nothing else is.
        peers.wire.reset()
        try await peers.pull(database)
        #expect(peers.wire.count("since=0") == 0, "\(peers.wire.all)")
        #expect(try Contents(database) == Contents(remote))
    }

    @Test("A pull leaves no plaintext on the disk, neither of what came nor of what failed") func canary() async throws
    {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        try fill(database)
        try await peers.push(database)
        let other = try peers.database("other")
        let cut = InterceptingTransport(peers.server) { request, number, inner in
            number == 9 ? try await NetworkFault.cutBody.answer(request, inner) : try await inner.send(request)
        }
        _ = try? await peers.replication(.pull, other, through: cut) { $0.retry.attemptCount = 1 }.run()
        try expectNothingReadable(of: [Self.canary], in: peers.stores.directory)
        try await peers.pull(other)
        #expect(try Contents(other) == Contents(remote))
        try expectNothingReadable(of: [Self.canary], in: peers.stores.directory)
        try expectNothingReadable(of: [Self.canary], in: peers.server.stores.directory)
        // What an unencrypted store holds is found, so that the search is known to find something.
        let plain = try await peers.stores.manager.database(named: "plain")
        try await peers.replication(.pull, plain).run()
        try expectReadable([Self.canary], in: peers.stores.directory)
    }

    @Test("A blob that is too large for the server stays away, and its document comes") func largeBlob() async throws {
        let server = TestServer { $0.attachmentByteLimit = 10_000 }
        let remote = try server.database()
        let peers = try Peers()
        let database = try peers.database()
        try database.write(
            "d", ["large": .blob(Blob(data: Data(repeating: 1, count: 20_000))), "small": .blob(Blob(data: Data([1])))])
        let push = try peers.replication(.push, database, through: server)
        try await push.run()
        #expect(push.status.failedCount == 0, "\(push.failures)")
        let copy = try #require(try remote.document(withID: "d").currentRevision)
        #expect(try copy.blob(forKey: "small")?.content == Data([1]))
        #expect(try copy.blob(forKey: "large")?.contentAvailable == false)
        #expect(try copy.blob(forKey: "large")?.length == 20_000)
        // An attachment is the document's own: without it, it is not sent.
        try database.write("e", [:], attachment: ("a", Data(repeating: 2, count: 20_000)))
        let second = try peers.replication(.push, database, through: server)
        try await second.run()
        #expect(second.failures.map(\.documentID) == ["e"])
        #expect((second.failures.first?.error as? SyncError)?.status == 413)
    }

    @Test("A document that no store can hold is reported, and the rest of the pull comes") func hostileRevisions()
        async throws
    {
        let peers = try Peers()
        let database = try peers.database()
        let long = String(repeating: "x", count: 2000)
        let revisions: [(id: String, json: String)] = [
            ("good", #"{"_id":"good","_rev":"1-a","x":1}"#),
            ("reserved", #"{"_id":"reserved","_rev":"1-a","_secret":1}"#),
            ("cyclic", #"{"_id":"cyclic","_rev":"3-a","_revisions":{"start":3,"ids":["a","b","a","b"]}}"#),
            ("other", #"{"_id":"other","_rev":"2-a","_revisions":{"start":2,"ids":["z","y"]}}"#),
            ("norev", #"{"_id":"norev"}"#), ("attachments", #"{"_id":"attachments","_rev":"1-a","_attachments":[]}"#),
            ("revpos", #"{"_id":"revpos","_rev":"1-a","_attachments":{"a":{"data":"AA==","revpos":9}}}"#),
            ("base64", #"{"_id":"base64","_rev":"1-a","_attachments":{"a":{"data":"%%%"}}}"#),
            (long, "{\"_id\":\"\(long)\",\"_rev\":\"1-a\"}"), ("_hidden", #"{"_id":"_hidden","_rev":"1-a"}"#),
            ("last", #"{"_id":"last","_rev":"1-a","x":2}"#),
            ("removed", #"{"_id":"removed","_rev":"1-a","_removed":true}"#),
        ]
        let hostile = InterceptingTransport(peers.server) { request, _, inner in
            if request.target.contains("_changes") {
                let rows = revisions.enumerated().map { number, revision in
                    "{\"seq\":\(number + 1),\"id\":\"\(revision.id)\",\"changes\":[{\"rev\":\"1-a\"}]}"
                }
                let isFirst = request.target.contains("since=0")
                return HTTPResponse(
                    200,
                    body: .bytes(
                        Array("{\"results\":[\(isFirst ? rows.joined(separator: ",") : "")],\"last_seq\":99}".utf8)))
            }
            if request.target.contains("_bulk_get") {
                let results = revisions.map { "{\"id\":\"\($0.id)\",\"docs\":[{\"ok\":\($0.json)}]}" }
                return HTTPResponse(200, body: .bytes(Array("{\"results\":[\(results.joined(separator: ","))]}".utf8)))
            }
            return try await inner.send(request)
        }
        let pull = try peers.replication(.pull, database, through: hostile)
        _ = try? await pull.run()
        #expect(try database.documentIDs() == ["good", "last"])
        let failed = Set(pull.failures.map(\.documentID))
        #expect(
            failed.isSuperset(of: [
                "reserved", "cyclic", "other", "norev", "attachments", "revpos", "base64", long, "_hidden",
            ]))
        #expect(!failed.contains("good") && !failed.contains("removed"))
    }
}
