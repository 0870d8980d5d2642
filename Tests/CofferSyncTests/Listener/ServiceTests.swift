import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// What CouchDB 3.5 answers was recorded; the same questions are asked here.
@Suite("Serving databases and documents") struct ServiceTests {
    let server = TestServer()

    @Test("Databases are made, listed, described and deleted over HTTP") func databases() async throws {
        #expect(try await server.call("GET", "/").json["couchdb"] == "Welcome")
        #expect(try await server.call("PUT", "/db").status == 201)
        let again = try await server.call("PUT", "/db")
        #expect(again.status == 412 && again.json["error"] == "file_exists")
        #expect(try await server.call("PUT", "/Bad").status == 400)
        #expect(try await server.call("GET", "/_all_dbs").json == ["db"])
        let info = try await server.call("GET", "/db").json
        #expect(info["db_name"] == "db" && info["doc_count"] == 0 && info["update_seq"] == 0)
        #expect(try server.database().isEncrypted)
        #expect(try await server.call("DELETE", "/db").json == ["ok": true])
        for target in ["/db", "/db/doc", "/../db", "/_nothing"] {
            #expect(try await server.call("GET", target).status == 404)
        }
        #expect(try await server.call("PATCH", "/db").status == 404)
    }

    @Test("A request that says something of its document is honoured or a 400") func reservedNames() async throws {
        _ = try await server.call("PUT", "/db")
        let rev = try #require(try await server.call("PUT", "/db/a", ["n": 1]).json["rev"])
        let bad: [JSONObject] = [
            ["_rev": 1], ["_rev": "x"], ["_id": "b", "_rev": rev], ["_rev": rev, "_deleted": "yes"],
            ["_rev": rev, "_deleted": nil],
        ]
        for document in bad {
            #expect(try await server.call("PUT", "/db/a", .object(document)).status == 400, "\(document)")
        }
        let parent = try await server.call("PUT", "/db/a?rev=1-b", ["_rev": rev])
        #expect(parent.status == 400)
        #expect(try await server.call("POST", "/db", ["_id": 5]).status == 400)
        #expect(try await server.call("PUT", "/db/b?new_edits=false", ["_rev": "1-a", "_deleted": 1]).status == 400)
        #expect(try await server.call("PUT", "/db/_local/x", ["_rev": 1]).status == 400)
        #expect(try await server.call("GET", "/db").json["doc_count"] == 1)
        for target in ["_all_docs?limit=-1", "_all_docs?skip=-1", "_all_docs?limit=x", "_changes?limit=-1"] {
            #expect(try await server.call("GET", "/db/\(target)").status == 400, "\(target)")
        }
        #expect(try await server.call("PUT", "/db/a", ["_id": "a", "_rev": rev, "_deleted": false]).status == 201)
    }

    /// Asks a service as it ends.
    private final class Last: Sendable {
        private let service: Service
        private let ended: Counter

        init(_ service: Service, _ ended: Counter) {
            self.service = service
            self.ended = ended
        }

        deinit { ended.add(service.isStopping ? 1 : 0) }
    }

    /// They were closed within the service's lock, which whatever they ended could need.
    @Test("Databases close outside of the service's lock when it releases them") func releases() async throws {
        _ = try await server.call("PUT", "/db")
        let ended = Counter()
        // A listener ends with its database, and this with its listener.
        func listen() throws {
            let last = Last(server.service, ended)
            try server.database().addChangeListener { _ in withExtendedLifetime(last) {} }
        }
        try listen()
        server.service.stop()
        // Nobody but the service has it, once the thread that opened it is done.
        try await Task.sleep(for: .milliseconds(50))
        #expect(ended.value == 0)
        server.service.releaseDatabases()
        for _ in 0..<30_000 where ended.value == 0 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(ended.value == 1)
    }

    @Test("Documents are saved, replaced and deleted over HTTP, and a late one has a 409") func documents() async throws
    {
        _ = try await server.call("PUT", "/db")
        let first = try await server.call("PUT", "/db/plain", ["n": 1])
        let revision = try #require(first.json["rev"]?.stringValue)
        #expect(first.status == 201 && revision.hasPrefix("1-") && first.fields["ETag"] == "\"\(revision)\"")
        #expect(try await server.call("PUT", "/db/plain", ["n": 2]).json["error"] == "conflict")
        let got = try await server.call("GET", "/db/plain?revs=true")
        #expect(got.json["_id"] == "plain" && got.json["n"] == 1)
        #expect(got.json["_revisions"] == ["start": 1, "ids": [.string(String(revision.dropFirst(2)))]])
        #expect(try await server.call("GET", "/db/plain", fields: ["If-None-Match": "\"\(revision)\""]).status == 304)
        let second = try await server.call("PUT", "/db/plain?rev=\(revision)", ["n": 2])
        #expect(second.status == 201)
        #expect(try await server.call("PUT", "/db/plain?rev=\(revision)", ["n": 3]).status == 409)
        #expect(try await server.call("GET", "/db/plain?rev=\(revision)").json["n"] == 1)
        #expect(try await server.call("DELETE", "/db/plain").status == 409)
        let deleted = try await server.call("DELETE", "/db/plain?rev=\(second.json["rev"]?.stringValue ?? "")")
        #expect(deleted.status == 200)
        #expect(try await server.call("GET", "/db/plain").json == ["error": "not_found", "reason": "deleted"])
        #expect(try await server.call("GET", "/db/none").json == ["error": "not_found", "reason": "missing"])
        let made = try await server.call("POST", "/db", ["n": 3])
        #expect(made.status == 201 && made.json["id"]?.stringValue?.isEmpty == false)
        #expect(try await server.call("PUT", "/db/x", [1]).status == 400)
        #expect(try await server.call("PUT", "/db/x", ["_id": "y"]).status == 400)
        #expect(try await server.call("PUT", "/db/x", ["_secret": 1]).status == 400)
    }

    @Test("Revisions of other databases are taken as they are, conflicts too") func newEdits() async throws {
        _ = try await server.call("PUT", "/db")
        let saved = try await server.call(
            "POST", "/db/_bulk_docs",
            try json(
                """
                {"new_edits":false,"docs":[{"_id":"conf","_rev":"2-bbbb","_revisions":{"start":2,"ids":["bbbb","aaaa"]},"w":"b"},
                {"_id":"conf","_rev":"2-cccc","_revisions":{"start":2,"ids":["cccc","aaaa"]},"w":"c",
                "_attachments":{"t.txt":{"content_type":"text/plain","data":"Y29uZmxpY3Q="}}},
                {"_id":"gone","_rev":"2-dddd","_revisions":{"start":2,"ids":["dddd","aaaa"]},"_deleted":true}]}
                """))
        #expect(saved.status == 201 && saved.json == [])
        let document = try await server.call("GET", "/db/conf?conflicts=true&revs_info=true").json
        #expect(document["_rev"] == "2-cccc" && document["_conflicts"] == ["2-bbbb"])
        #expect(document["_revs_info"]?[1] == ["rev": "1-aaaa", "status": "missing"])
        #expect(document["_attachments"]?["t.txt"]?["stub"] == true)
        let difference = try await server.call(
            "POST", "/db/_revs_diff", try json(#"{"conf":["2-bbbb","3-eeee"],"missing":["1-x"],"gone":["2-dddd"]}"#))
        #expect(
            difference.json
                == (try json(
                    #"{"missing":{"missing":["1-x"]},"conf":{"missing":["3-eeee"],"possible_ancestors":["2-cccc","2-bbbb"]}}"#
                )))
        let changes = try ChangesPage(try await server.call("GET", "/db/_changes?style=all_docs").json)
        #expect(changes.rows.map(\.id) == ["conf", "gone"])
        #expect(changes.rows[0].revisions.map(\.description) == ["2-cccc", "2-bbbb"])
        #expect(changes.rows.map(\.isDeletion) == [false, true])
    }

    @Test("A document that is refused keeps no other of its request from being saved") func bulkFailures() async throws
    {
        _ = try await server.call("PUT", "/db")
        try server.database().setValidation(named: "no") { if try $0["bad"] == true { try $0.reject("bad doc") } }
        let answer = try await server.call(
            "POST", "/db/_bulk_docs",
            try json(#"{"docs":[{"_id":"a"},{"_id":"b","bad":true},5,{"_id":"_c"},{"_id":"d"}]}"#))
        let results = try #require(answer.json.arrayValue)
        #expect(results.map { $0["ok"] == true } == [true, false, false, false, true])
        #expect(results[1]["error"] == "forbidden")
        #expect(results[1]["id"] == "b")
        let replicated = try await server.call(
            "POST", "/db/_bulk_docs",
            try json(#"{"new_edits":false,"docs":[{"_id":"e","_rev":"1-a"},{"_id":"f","_rev":"no"}]}"#))
        #expect(try BulkFailure.all(in: replicated.json).map(\.id) == ["f"])
        #expect(try await server.call("GET", "/db").json["doc_count"] == 3)
    }

    @Test("Open_revs and _bulk_get bring leaves, and what isn't there") func revisions() async throws {
        let database = try server.database()
        for (id, ids) in [("conf", ["2-b", "1-a"]), ("conf", ["2-c", "1-a"]), ("one", ["1-x"])] {
            _ = try await database.putExistingRevision(
                ["w": .string(ids[0])], withID: id, history: ids.compactMap { RevisionID($0) })
        }
        let open = try await server.call(
            "GET", "/db/conf?open_revs=%5B%221-a%22,%229-zz%22%5D&latest=true&revs=true",
            fields: ["Accept": "application/json"])
        #expect(open.json.arrayValue?.compactMap { $0["ok"]?["_rev"]?.stringValue }.sorted() == ["2-b", "2-c"])
        #expect(open.json.arrayValue?.contains(["missing": "9-zz"]) == true)
        let bulk = try await server.call(
            "POST", "/db/_bulk_get?revs=true",
            try json(#"{"docs":[{"id":"conf","rev":"2-b"},{"id":"none"},{"id":"one"}]}"#))
        let answers = try RevisionAnswer.all(inBulkAnswer: bulk.json)
        guard case .revision(let first) = answers[0], case .failure(_, _, let error) = answers[1],
            case .revision(let last) = answers[2]
        else {
            Issue.record("\(bulk.text)")
            return
        }
        #expect(first["_revisions"] == ["start": 2, "ids": ["b", "a"]])
        #expect(error.status == 404 && last["_rev"] == "1-x")
    }

    @Test("The server makes ids, purges revisions, and begins a compaction") func housekeeping() async throws {
        let ids = try await server.call("GET", "/_uuids?count=3").json["uuids"]?.arrayValue?.compactMap(\.stringValue)
        #expect(Set(ids ?? []).count == 3 && ids?.allSatisfy { $0.utf8.count == 32 } == true)
        #expect(try await server.call("GET", "/_uuids").json["uuids"]?.arrayValue?.count == 1)
        for count in ["1001", "-1", "x"] {
            #expect(try await server.call("GET", "/_uuids?count=\(count)").status == 400)
        }
        let database = try server.database()
        for ids in [["2-b", "1-a"], ["2-c", "1-a"]] {
            _ = try await database.putExistingRevision(
                ["w": .string(ids[0])], withID: "conf", history: ids.compactMap { RevisionID($0) })
        }
        let purged = try await server.call(
            "POST", "/db/_purge", try json(#"{"conf":["2-c","9-x"],"none":["1-a"]}"#))
        #expect(purged.status == 201)
        #expect(purged.json == (try json(#"{"purge_seq":null,"purged":{"conf":["2-c"],"none":[]}}"#)))
        #expect(try await server.call("GET", "/db/conf").json["_rev"] == "2-b")
        for body in [#"{"conf":"2-b"}"#, #"{"conf":[2]}"#, "[]", #"{"conf":["2-b"],"_x":["1-a"]}"#] {
            #expect(try await server.call("POST", "/db/_purge", try json(body)).status == 400, "\(body)")
        }
        #expect(try await server.call("GET", "/db/conf").json["_rev"] == "2-b")
        #expect(try await server.call("POST", "/db/_compact").status == 202)
        await server.service.endTasks()
        #expect(try await server.call("GET", "/db").json["compact_running"] == false)
        #expect(try await server.call("GET", "/db/_compact").status == 405)
    }

    @Test("A session says whose it is") func sessionNames() async throws {
        let server = TestServer { $0.access = .passwords(["robin": "s3cret"]) }
        let login = try await server.call(
            HTTPRequest("POST", "/_session", body: .bytes(Array("name=robin&password=s3cret".utf8))))
        let cookie = String(try #require(login.fields["Set-Cookie"]).prefix { $0 != ";" })
        for fields in [
            ["Cookie": cookie], ["Authorization": "Basic " + Data("robin:s3cret".utf8).base64EncodedString()],
        ] as [HTTPFields] {
            #expect(try await server.call("GET", "/_session", fields: fields).json["userCtx"]?["name"] == "robin")
        }
    }

    @Test("Local documents have their own revisions, and no place among documents") func localDocuments() async throws {
        _ = try await server.call("PUT", "/db")
        #expect(try await server.call("GET", "/db/_local/ckpt").json == ["error": "not_found", "reason": "missing"])
        let saved = try await server.call("PUT", "/db/_local/ckpt", ["a": 1])
        #expect(saved.json == ["ok": true, "id": "_local/ckpt", "rev": "0-1"])
        #expect(try await server.call("PUT", "/db/_local/ckpt", ["a": 2]).status == 409)
        #expect(try await server.call("PUT", "/db/_local%2Fckpt", ["a": 2, "_rev": "0-1"]).json["rev"] == "0-2")
        #expect(try await server.call("GET", "/db/_local/ckpt").json == ["_id": "_local/ckpt", "_rev": "0-2", "a": 2])
        #expect(try await server.call("GET", "/db/_all_docs").json["rows"] == [])
        #expect(try await server.call("DELETE", "/db/_local/ckpt").status == 200)
        #expect(try await server.call("DELETE", "/db/_local/ckpt").status == 404)
    }

    @Test("The server lists all documents, by ranges and by keys") func allDocuments() async throws {
        let database = try server.database()
        for id in ["a", "b", "c"] { try await database.save(json: Data("{\"n\":1}".utf8), withID: id) }
        let all = try await server.call("GET", "/db/_all_docs?include_docs=true").json
        #expect(all["total_rows"] == 3)
        #expect(all["rows"]?.arrayValue?.map { $0["id"]?.stringValue } == ["a", "b", "c"])
        #expect(all["rows"]?[0]?["doc"]?["n"] == 1)
        let some = try await server.call("GET", "/db/_all_docs?startkey=%22b%22&limit=1").json
        #expect(some["rows"]?.arrayValue?.map { $0["id"]?.stringValue } == ["b"])
        let last = try await server.call("GET", "/db/_all_docs?descending=true&skip=1&limit=1").json
        #expect(last["rows"]?.arrayValue?.map { $0["id"]?.stringValue } == ["b"])
        let one = try await server.call("GET", "/db/_all_docs?key=%22b%22").json
        #expect(one["rows"]?.arrayValue?.map { $0["id"]?.stringValue } == ["b"])
        let keys = try await server.call("POST", "/db/_all_docs", ["keys": ["c", "x"]]).json
        #expect(keys["rows"]?[0]?["id"] == "c")
        #expect(keys["rows"]?[1] == ["key": "x", "error": "not_found"])
    }

    @Test("Bodies of requests may be packed, and are no larger than allowed") func bodies() async throws {
        let server = TestServer { $0.documentByteLimit = 1000 }
        _ = try await server.call("PUT", "/db")
        let packed = Data(base64Encoded: "H4sIAAAAAAAAA6tWyitKzVGyMqwFADgBxZQKAAAA").map(Array.init) ?? []
        let bad = try await server.call(
            HTTPRequest("PUT", "/db/x", fields: ["Content-Encoding": "gzip"], body: .bytes(packed)))
        #expect(bad.status == 400)
        let long = try await server.call("PUT", "/db/x", ["a": .string(String(repeating: "x", count: 2000))])
        #expect(long.status == 413 && long.json["error"] == "too_large")
        #expect(
            try await server.call(HTTPRequest("PUT", "/db/x", fields: ["Content-Encoding": "br"], body: .bytes([1])))
                .status == 415)
        for text in ["", "{", "{\"a\":1}}", String(repeating: "[", count: 900)] {
            #expect(
                try await server.call(HTTPRequest("POST", "/db/_bulk_docs", body: .bytes(Array(text.utf8)))).status
                    == 400)
        }
    }

    @Test("A read-only server changes nothing") func readOnly() async throws {
        let server = TestServer { $0.isReadOnly = true }
        let database = try server.database()
        try await database.save(json: Data("{}".utf8), withID: "a")
        let before = try database.lastSequenceNumber
        try await database.close()
        for (method, target) in [
            ("PUT", "/new"), ("DELETE", "/db"), ("PUT", "/db/a"), ("DELETE", "/db/a"), ("POST", "/db"),
            ("POST", "/db/_bulk_docs"), ("POST", "/db/_purge"), ("POST", "/db/_compact"), ("PUT", "/db/_local/x"),
            ("PUT", "/db/a/b"),
        ] {
            #expect(try await server.call(method, target, ["docs": []]).status == 403)
        }
        #expect(try await server.call("POST", "/db/_revs_diff", ["a": ["1-x"]]).status == 200)
        #expect(try await server.call("GET", "/db/a").status == 200)
        // It has the store open for reading only, and nobody can write to it meanwhile.
        #expect(throws: CofferError.self) { try server.database() }
        var options = DatabaseOptions()
        (options.readOnly, options.encryptionKey) = (true, TestServer.key)
        let served = try await server.stores.manager.openDatabase(named: "db", options: options)
        #expect(try served.lastSequenceNumber == before)
    }

    @Test("A request without a password, or with a wrong one, has a 401 and learns nothing") func passwords()
        async throws
    {
        let server = TestServer { $0.access = .passwords(["robin": "s3:cret"]) }
        _ = try server.database()
        func field(_ text: String) -> HTTPFields { ["Authorization": "Basic " + Data(text.utf8).base64EncodedString()] }
        for fields in [
            [:], field("robin:wrong"), field("robin:"), field("other:s3:cret"), field(":"), field("robin"),
            ["Authorization": "Basic %%%"], ["Authorization": "Bearer x"], ["Cookie": "AuthSession=abc"],
        ] as [HTTPFields] {
            let answer = try await server.call("GET", "/db", fields: fields)
            #expect(answer.status == 401 && answer.fields["WWW-Authenticate"] != nil)
            #expect(try await server.call("GET", "/nothing", fields: fields).body == answer.body)
        }
        #expect(try await server.call("GET", "/db", fields: field("robin:s3:cret")).status == 200)
        let wrong = HTTPRequest("POST", "/_session", body: .bytes(Array("name=robin&password=no".utf8)))
        #expect(try await server.call(wrong).status == 401)
        let login = try await server.call(
            HTTPRequest("POST", "/_session", body: .bytes(Array("name=robin&password=s3%3Acret".utf8))))
        let cookie = try #require(login.fields["Set-Cookie"]).prefix { $0 != ";" }
        #expect(login.status == 200)
        #expect(try await server.call("GET", "/db", fields: ["Cookie": "a=b; \(cookie)"]).status == 200)
        #expect(try await server.call("DELETE", "/_session", fields: ["Cookie": String(cookie)]).status == 200)
        #expect(try await server.call("GET", "/db", fields: ["Cookie": String(cookie)]).status == 401)
    }

    @Test("A key of the server's that opens nothing is no 401 of the client's") func wrongKey() async throws {
        let stores = server.stores
        try await stores.manager.database(named: "other", encryptionKey: SymmetricKey()).close()
        let answer = try await server.call("GET", "/other")
        #expect(answer.status == 500 && answer.fields["WWW-Authenticate"] == nil)
    }
}
