import Coffer
import CofferModel
import Foundation
import Testing

@testable import CofferSync

@Suite("Serving the feed of changes") struct ChangesFeedTests {
    let server = TestServer()

    private func save(_ ids: String...) async throws {
        let database = try server.database()
        for id in ids { try await database.save(json: Data("{}".utf8), withID: id) }
    }

    private func page(_ query: String) async throws -> ChangesPage {
        try ChangesPage(try await server.call("GET", "/db/_changes?\(query)").json)
    }

    @Test("The feed of changes lists from where the client is, as many as it takes") func normal() async throws {
        try await save("a", "b", "c")
        let all = try await page("")
        #expect(all.rows.map(\.id) == ["a", "b", "c"] && all.last == FeedPosition(3) && all.pendingCount == 0)
        let two = try await page("since=1&limit=1")
        #expect(two.rows.map(\.id) == ["b"] && two.last == FeedPosition(2) && two.pendingCount == 1)
        #expect(try await page("since=now").rows.isEmpty)
        let documents = try await server.call("GET", "/db/_changes?include_docs=true&limit=1").json
        #expect(documents["results"]?[0]?["doc"]?["_id"] == "a")
        for query in ["since=x", "since=-1", "feed=x", "style=x", "timeout=x", "heartbeat=x", "heartbeat=0", "limit=x"]
        {
            #expect(try await server.call("GET", "/db/_changes?\(query)").status == 400)
        }
    }

    @Test("Filters and lists of ids leave out changes, and the position goes on") func filters() async throws {
        try await save("a", "b", "c")
        let database = try server.database()
        database.setFilter(named: "some") { revision, parameters in
            revision.document.documentID == parameters["id"]?.stringValue
        }
        let filtered = try await page("filter=some&id=b")
        #expect(filtered.rows.map(\.id) == ["b"] && filtered.last == FeedPosition(3))
        #expect(try await page("filter=some&id=none").last == FeedPosition(3))
        #expect(try await server.call("GET", "/db/_changes?filter=none").status == 404)
        let ids = try ChangesPage(
            try await server.call("POST", "/db/_changes?filter=_doc_ids", ["doc_ids": ["c", "x"]]).json)
        #expect(ids.rows.map(\.id) == ["c"])
    }

    @Test("A long poll answers at once where there is something, and else when it comes") func longPoll() async throws {
        try await save("a")
        #expect(try await page("feed=longpoll").rows.map(\.id) == ["a"])
        async let waiting = page("feed=longpoll&since=1")
        try await Task.sleep(for: .milliseconds(200))
        try await save("b")
        #expect(try await waiting.rows.map(\.id) == ["b"])
        #expect(try await page("feed=longpoll&since=2&timeout=50").rows.isEmpty)
    }

    @Test("A continuous feed goes on until nothing comes, and beats meanwhile") func continuous() async throws {
        try await save("a")
        let response = await server.service.respond(
            to: HTTPRequest("GET", "/db/_changes?feed=continuous&heartbeat=100"))
        var splitter = LineSplitter()
        var lines: [[UInt8]] = []
        var hasSaved = false
        while lines.filter({ !$0.isEmpty }).count < 2 {
            let piece = try #require(try await response.body.stream.next())
            lines += try splitter.lines(piece)
            if !hasSaved, lines.contains([]) {
                hasSaved = true
                try await save("b")
            }
        }
        let rows = try lines.filter { !$0.isEmpty }.map { try ChangedRow(JSONValue(json: $0)) }
        #expect(rows.map(\.id) == ["a", "b"])
        // A server that stops ends its feeds.
        server.service.stop()
        var rest: [UInt8] = []
        while let piece = try await response.body.stream.next() { rest += piece }
        #expect(String(decoding: rest, as: UTF8.self).contains("\"last_seq\":2"))
    }

    @Test("A feed without a heartbeat ends when its time is over") func timeout() async throws {
        try await save("a")
        let answer = try await server.call("GET", "/db/_changes?feed=continuous&timeout=100")
        #expect(answer.text.split(separator: "\n").count == 2)
        #expect(answer.text.hasSuffix("{\"last_seq\":1,\"pending\":0}\n"))
    }
}
