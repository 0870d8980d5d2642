import Coffer
import CofferModel
import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CofferSync

/// Requests that would have the listener hold or do far more than they cost to send.
@Suite("Requests that want too much") struct GreedyRequestTests {
    /// So many elements, in brackets.
    static func list(_ count: Int, of element: String = "0") -> String {
        "[" + String(repeating: element + ",", count: count - 1) + element + "]"
    }

    private func post(_ server: TestServer, _ target: String, _ text: String) async throws -> TestServer.Answer {
        try await server.call(HTTPRequest("POST", target, body: .bytes(Array(text.utf8))))
    }

    private static let tooMany = JSONLimits.valueCount

    @Test(
        "More values than a body may have are a 413 and no memory, wherever they come",
        arguments: [
            ("POST", "/db/_bulk_docs", #"{"docs":LIST}"#), ("POST", "/db/_all_docs", #"{"keys":LIST}"#),
            ("POST", "/db/_bulk_get", #"{"docs":LIST}"#), ("POST", "/db/_revs_diff", #"{"a":LIST}"#),
            ("POST", "/db/_purge", #"{"a":LIST}"#), ("POST", "/db/_changes?filter=_doc_ids", #"{"doc_ids":LIST}"#),
            ("POST", "/db", #"{"a":LIST}"#), ("PUT", "/db/x", #"{"a":LIST}"#), ("PUT", "/db/_local/x", #"{"a":LIST}"#),
        ])
    func values(method: String, target: String, body: String) async throws {
        let server = TestServer()
        _ = try server.database()
        for element in ["0", "[]"] {
            let text = body.replacing("LIST", with: Self.list(Self.tooMany, of: element))
            let answer = try await server.call(HTTPRequest(method, target, body: .bytes(Array(text.utf8))))
            #expect(answer.status == 413, "\(answer.text.prefix(200))")
        }
        // The bytes as they came, and nothing for values.
        #expect(server.service.memory.usage.greatest <= 2 * 4 * Self.tooMany)
        #expect(server.service.memory.usage.now == 0)
        #expect(try server.database().documentCount == 0)
    }

    @Test(
        "More documents, keys or revisions than one request may have are a 413",
        arguments: [
            ("/db/_bulk_docs", #"{"docs":LIST}"#, "{}"), ("/db/_all_docs", #"{"keys":LIST}"#, "\"a\""),
            ("/db/_bulk_get", #"{"docs":LIST}"#, #"{"id":"a"}"#), ("/db/_revs_diff", #"{"a":LIST}"#, "\"1-a\""),
            ("/db/_purge", #"{"a":LIST}"#, "\"1-a\""), ("/db/_changes?filter=_doc_ids", #"{"doc_ids":LIST}"#, "\"a\""),
        ])
    func items(target: String, body: String, element: String) async throws {
        let server = TestServer()
        _ = try server.database()
        let text = body.replacing("LIST", with: Self.list(RequestLimits.itemCount + 1, of: element))
        let answer = try await post(server, target, text)
        #expect(answer.status == 413, "\(answer.text.prefix(200))")
        #expect(try server.database().documentCount == 0)
    }

    @Test("A body that takes more memory than all requests have is a 413; a smaller one is taken")
    func neverFits() async throws {
        let server = TestServer { $0.memoryByteLimit = 100_000 }
        _ = try server.database()
        #expect(try await post(server, "/db", #"{"a":"\#(String(repeating: "x", count: 60_000))"}"#).status == 413)
        #expect(try await post(server, "/db", #"{"a":\#(Self.list(1_000))}"#).status == 413)
        #expect(try await post(server, "/db", #"{"a":\#(Self.list(100))}"#).status == 201)
        #expect(server.service.memory.usage.now == 0)
    }

    @Test("A request waits for the memory that another one holds, and reads nothing more of its body meanwhile")
    func backPressure() async throws {
        let server = TestServer { $0.memoryByteLimit = 1 << 20 }
        _ = try server.database()
        var holder: MemoryPart? = server.service.memory.part()
        let taken = Counter()
        try await holder?.grow(to: (1 << 20) - 10_000)
        let text = Array(#"{"a":"\#(String(repeating: "x", count: 20_000))"}"#.utf8)
        let places = stride(from: 0, to: text.count, by: 1_000)
        let pieces = stream(places.map { Array(text[$0..<min($0 + 1_000, text.count)]) })
        let counted = ByteStream {
            taken.add(1)
            return try await pieces.next()
        }
        let waiting = Task { try await server.call(HTTPRequest("POST", "/db", body: .stream(counted, length: nil))) }
        #expect(try await eventually { server.service.memory.waitingCount == 1 })
        #expect(taken.value <= 6)
        #expect(holder != nil)
        holder = nil
        #expect(try await waiting.value.status == 201)
    }

    @Test("Many large requests at once never hold more than the listener's memory, and those that wait are answered")
    func together() async throws {
        let server = TestServer { $0.memoryByteLimit = 4 << 20 }
        _ = try server.database()
        let text = #"{"a":"\#(String(repeating: "x", count: 1_000_000))"}"#
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask { try await post(server, "/db", text).status }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.allSatisfy { [201, 503].contains($0) } && statuses.contains(201))
        #expect(server.service.memory.usage.greatest <= 4 << 20)
        #expect(server.service.memory.usage.now == 0)
        #expect(try server.database().documentCount == statuses.count { $0 == 201 })
    }

    @Test("A feed keeps no more of its body's memory than its ids take, however long it goes on")
    func feed() async throws {
        let server = TestServer()
        _ = try server.database()
        let text = #"{"pad":\#(Self.list(10_000)),"doc_ids":["a"]}"#
        let response = await server.service.respond(
            to: HTTPRequest(
                "POST", "/db/_changes?feed=continuous&filter=_doc_ids&heartbeat=100", body: .bytes(Array(text.utf8))))
        #expect(response.status == 200)
        #expect(server.service.memory.usage.greatest > 1_000_000)
        #expect(server.service.memory.usage.now < 1_000)
        server.service.stop()
        while try await response.body.stream.next() != nil {}
    }

    @Test("Documents sent together whose client goes away are taken back, all of them")
    func cancelledDocuments() async throws {
        let server = TestServer()
        let database = try server.database()
        let saved = Counter()
        // Beside other work all could be saved before anybody looked: the tenth waits for the client to go away.
        let isGone = DispatchSemaphore(value: 0)
        database.setValidation(named: "counts") { _ in
            saved.add(1)
            if saved.value == 10 { isGone.wait() }
        }
        let body = Array("{\"docs\":\(Self.list(20_000, of: "{}"))}".utf8)
        let sending = Task { try await server.call(HTTPRequest("POST", "/db/_bulk_docs", body: .bytes(body))) }
        #expect(try await eventually { saved.value == 10 })
        sending.cancel()
        isGone.signal()
        #expect(try await sending.value.status == 503)
        #expect(saved.value < 20_000)
        #expect(try database.documentCount == 0)
    }

    @Test("What revisions differ in, and what is asked for in bulk, comes in pieces and reads as before")
    func streamed() async throws {
        let server = TestServer()
        let database = try server.database()
        for id in ["a", "b\"\n", "c"] { _ = try await database.document(withID: id).newRevision().save() }
        let asked: JSONValue = ["a": ["1-x"], "b\"\n": ["2-y", "1-z"], "new": ["1-a"], "known": []]
        let difference = try await server.call("POST", "/db/_revs_diff", asked).json
        #expect(difference.objectValue?.keys.sorted() == ["a", "b\"\n", "new"])
        #expect(difference["b\"\n"]?["missing"]?.arrayValue?.count == 2)
        #expect(difference["b\"\n"]?["possible_ancestors"]?.arrayValue?.count == 1)
        #expect(try await server.call("POST", "/db/_revs_diff", [:]).json == [:])
        let bulk = try await server.call(
            "POST", "/db/_bulk_get", ["docs": [["id": "a"], ["id": "nobody"], ["id": "c"]]])
        let results = try #require(bulk.json["results"]?.arrayValue)
        #expect(results.map { $0["id"]?.stringValue } == ["a", "nobody", "c"])
        #expect(results.map { $0["docs"]?.arrayValue?.count } == [1, 1, 1])
        #expect(try await server.call("POST", "/db/_bulk_get", ["docs": []]).json == ["results": []])
    }
}
