import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// What clients ask a server for beside replication, where no recorded answer says it.
@Suite("Calls of CouchDB's clients") struct ClientCallTests {
    private let server = TestServer()

    @Test("A session begins by the word name, by username, and not by two that differ") func sessions() async throws {
        let server = TestServer { $0.access = .passwords(["robin": "s3cret"]) }
        for body: JSONValue in [
            ["name": "robin", "password": "s3cret"], ["username": "robin", "password": "s3cret"],
            ["name": "robin", "username": "robin", "password": "s3cret"],
        ] {
            let answer = try await server.call("POST", "/_session", body, fields: ["Content-Type": "application/json"])
            #expect(answer.status == 200 && answer.json["name"] == "robin", "\(body): \(answer.text)")
        }
        let form = HTTPRequest("POST", "/_session", body: .bytes(Array("username=robin&password=s3cret".utf8)))
        #expect(try await server.call(form).status == 200)
        for body: JSONValue in [
            ["password": "s3cret"], ["name": "robin", "username": "other", "password": "s3cret"],
        ] {
            let answer = try await server.call("POST", "/_session", body, fields: ["Content-Type": "application/json"])
            #expect(answer.status == 400, "\(body): \(answer.text)")
        }
    }

    @Test("A copy has the attachments of its source, and replaces only the revision that it names") func copies()
        async throws
    {
        let database = try server.database()
        let source = try database.write("a", ["n": 1], attachment: ("x", Data("hello".utf8)))
        try database.write("a", ["n": 2], attachment: ("x", Data("later".utf8)))
        let old = try await server.call(
            "COPY", "/db/a?rev=\(source.revisionID)", fields: ["Destination": "old%2Fcopy"])
        #expect(old.status == 201 && old.json["id"] == "old/copy", "\(old.text)")
        let copy = try #require(try database.document(withID: "old/copy").currentRevision)
        #expect(try copy["n"] == 1)
        #expect(try copy.attachment(named: "x")?.content == Data("hello".utf8))
        #expect(try await server.call("COPY", "/db/a", fields: ["Destination": "old/copy"]).status == 409)
        let over = try await server.call(
            "COPY", "/db/a", fields: ["Destination": "old/copy?rev=\(copy.revisionID)"])
        #expect(over.status == 201, "\(over.text)")
        #expect(
            try database.document(withID: "old/copy").currentRevision?.attachment(named: "x")?.content
                == Data("later".utf8))
    }

    @Test("Events have what a feed has, and go on from the last one that a client has") func events() async throws {
        let database = try server.database()
        for id in ["a", "b", "c"] { try await database.save(json: Data("{}".utf8), withID: id) }
        let answer = try await server.call("GET", "/db/_changes?feed=eventsource&timeout=50")
        #expect(answer.fields["Content-Type"] == "text/event-stream")
        let events = answer.text.split(separator: "\n\n").filter { $0.contains("data: {") }
        #expect(events.count == 3)
        #expect(events[0].hasPrefix("data: {") && events[0].contains(#""id":"a""#) && events[0].hasSuffix("\nid: 1"))
        let rest = try await server.call(
            "GET", "/db/_changes?feed=eventsource&timeout=50", fields: ["Last-Event-ID": "2"])
        #expect(rest.text.split(separator: "\n\n").count { $0.contains("data: {") } == 1)
        #expect(rest.text.contains(#""id":"c""#))
        let beats = try await server.call("GET", "/db/_changes?feed=eventsource&since=2&limit=1&heartbeat=100")
        #expect(beats.text.contains(#""id":"c""#))
    }

    @Test("A feed backwards has every change once, across the stretches that it is read in") func backwards()
        async throws
    {
        let database = try server.database()
        try await database.inTransaction {
            for number in 0..<2_600 { try database.save(json: Data("{}".utf8), withID: "d\(number)") }
            for number in 0..<100 { try database.document(withID: "d\(number)").delete() }
        }
        let all = try await server.call("GET", "/db/_changes?descending=true").json
        let ids = (all["results"]?.arrayValue ?? []).compactMap { $0["id"]?.stringValue }
        #expect(ids.count == 2_600 && Set(ids).count == 2_600)
        #expect(ids.first == "d99" && ids.last == "d100")
        let some = try await server.call("GET", "/db/_changes?descending=true&limit=2").json
        #expect(some["results"]?.arrayValue?.count == 2 && some["last_seq"] == 2_699)
        #expect(try await server.call("GET", "/db/_changes?descending=true&feed=longpoll").status == 400)
    }

    @Test("The description of a database has its sizes and deleted documents, and follows its changes")
    func information()
        async throws
    {
        let database = try server.database()
        try database.write("a", ["n": 1], attachment: ("x", Data(repeating: 1, count: 100_000)))
        try database.write("b", ["n": 1])
        let before = try await server.call("GET", "/db").json
        #expect(before["doc_count"] == 2 && before["doc_del_count"] == 0)
        let byteCount: Int = try #require(before["sizes"]?["file"])
        #expect(byteCount > 100_000)
        try await database.document(withID: "b").delete()
        let after = try await server.call("GET", "/db").json
        #expect(after["doc_count"] == 1 && after["doc_del_count"] == 1)
        let several = try await server.call("POST", "/_dbs_info", ["keys": ["db", "none", 1]]).json
        #expect(several[0]?["info"]?["doc_count"] == 1 && several[1]?["error"] == "not_found")
        #expect(several[2]?["error"] == "not_found")
        #expect(try await server.call("GET", "/_all_dbs?limit=0").json == [])
        #expect(try await server.call("GET", "/_all_dbs?limit=x").status == 400)
    }

    @Test("The permissions of a database can be read, and are not changed by a request") func security() async throws {
        _ = try server.database()
        let ours = try await server.call("GET", "/db/_security")
        #expect(ours.json["admins"]?["roles"] == ["_admin"])
        #expect(try await server.call("PUT", "/db/_security", ours.json).status == 200)
        let other: JSONValue = ["admins": ["names": ["robin"], "roles": []], "members": ["names": [], "roles": []]]
        #expect(try await server.call("PUT", "/db/_security", other).status == 501)
    }

    @Test("A server that is read-only answers questions, also those that are asked with a body") func readOnly()
        async throws
    {
        let server = TestServer { $0.isReadOnly = true }
        try server.database().write("a", ["n": 1])
        for (target, body) in [
            ("_find", ["selector": [:]]), ("_explain", ["selector": [:]]), ("_all_docs", [:]), ("_local_docs", [:]),
            ("_design_docs", [:]), ("_missing_revs", ["a": ["1-00"]]),
        ] as [(String, JSONValue)] {
            let answer = try await server.call("POST", "/db/\(target)", body)
            #expect(answer.status == 200, "\(target): \(answer.text)")
        }
        #expect(try await server.call("POST", "/_dbs_info", ["keys": ["db"]]).status == 200)
        #expect(try await server.call("POST", "/db/_index", ["index": ["fields": ["n"]]]).status == 403)
        #expect(try await server.call("COPY", "/db/a", fields: ["Destination": "b"]).status == 403)
        #expect(try await server.call("PUT", "/db/_revs_limit", 5).status == 403)
    }

    @Test("Pages of what is found follow one another, and have every document once") func pages() async throws {
        let database = try server.database()
        for number in 0..<25 { try database.write("d\(number)", ["n": .number(JSONNumber(Int64(number)))]) }
        var ids: [String] = []
        var bookmark = "nil"
        for _ in 0..<10 {
            let page = try await server.call(
                "POST", "/db/_find", ["selector": ["n": ["$gte": 5]], "limit": 6, "bookmark": .string(bookmark)])
            let found = (page.json["docs"]?.arrayValue ?? []).compactMap { $0["_id"]?.stringValue }
            ids += found
            bookmark = page.json["bookmark"]?.stringValue ?? "nil"
            if found.count < 6 { break }
        }
        #expect(ids.count == 20 && Set(ids).count == 20)
    }

    @Test("An id of thousands of bytes is cut where a message says it") func longIDs() async throws {
        _ = try server.database()
        let id = String(repeating: "ä", count: 1_500)
        let answer = try await server.call(
            "POST", "/db/_bulk_docs", ["docs": [["_id": .string(id), "_rev": 1]]])
        #expect(answer.json[0]?["id"] == .string(id))
        let error = SyncError(400, of: "document \(id)", "refused")
        #expect(error.description.utf8.count < 500 && error.description.hasSuffix("ä: refused (400)"))
        #expect("short".shortened(to: 10) == "short")
        #expect(String(repeating: "x", count: 20).shortened(to: 10).utf8.count <= 13)
    }
}
