import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// What CouchDB 3.5 answers was recorded; the same questions are asked here.
@Suite("Serving lists of documents") struct AllDocumentsServiceTests {
    private let server = TestServer()

    /// Five documents, of which `c` is deleted.
    private func fill() throws {
        let database = try server.database()
        for id in ["a", "b", "c", "d", "e"] { try database.write(id, ["n": 1]) }
        try database["c"]?.delete()
    }

    /// The ids of the rows, with `D` behind those of deletions and `!` behind those that aren't there, after the offset.
    private func rows(_ json: JSONValue?) -> String {
        let rows = (json?["rows"]?.arrayValue ?? []).map { row in
            let id = row["id"]?.stringValue ?? row["key"]?.description ?? ""
            return id + (row["value"]?["deleted"] == true ? "D" : "") + (row["error"] == "not_found" ? "!" : "")
                + (row["doc"]?.objectValue != nil ? "d" : "")
        }
        return ([json?["offset"]?.description ?? "none"] + rows).joined(separator: " ")
    }

    private static let cases: [(query: String, body: String, rows: String)] = [
        ("", "{}", "0 a b d e"), ("limit=2", #"{"limit":2}"#, "0 a b"), ("limit=0", #"{"limit":0}"#, "0"),
        ("skip=1&limit=1", #"{"skip":1,"limit":1}"#, "1 b"), ("skip=9", #"{"skip":9}"#, "4"),
        ("startkey=\"b\"", #"{"startkey":"b"}"#, "1 b d e"), ("start_key=\"x\"", #"{"start_key":"x"}"#, "4"),
        ("startkey=\"b\"&limit=0", #"{"startkey":"b","limit":0}"#, "1"),
        ("startkey=\"c\"&skip=1", #"{"startkey":"c","skip":1}"#, "3 e"),
        (
            "startkey=\"b\"&endkey=\"d\"&inclusive_end=false", #"{"startkey":"b","endkey":"d","inclusive_end":false}"#,
            "1 b"
        ),
        (
            "descending=true&startkey=\"d\"&end_key=\"b\"&inclusive_end=false",
            #"{"descending":true,"startkey":"d","end_key":"b","inclusive_end":false}"#, "1 d"
        ),
        ("descending=true&skip=1", #"{"descending":true,"skip":1}"#, "1 d b a"),
        ("key=\"b\"", #"{"key":"b"}"#, "1 b"), ("key=\"c\"", #"{"key":"c"}"#, "2"),
        ("startkey=\"d\"&endkey=\"a\"", #"{"startkey":"d","endkey":"a"}"#, "2"),
        ("keys=[\"c\",\"b\",\"x\",\"b\"]", #"{"keys":["c","b","x","b"]}"#, #"null cD b "x"! b"#),
        ("keys=[\"d\",\"b\",\"x\"]&skip=1", #"{"keys":["d","b","x"],"skip":1}"#, #"null b "x"!"#),
        ("keys=[\"c\",\"b\",\"x\"]&limit=2", #"{"keys":["c","b","x"],"limit":2}"#, "null cD b"),
        (
            "keys=[\"d\",\"b\",\"x\"]&descending=true", #"{"keys":["d","b","x"],"descending":true}"#,
            #"null "x"! b d"#
        ),
        (
            "keys=[\"c\",5,\"_x\"]&include_docs=true", #"{"keys":["c",5,"_x"],"include_docs":true}"#,
            #"null cD 5! "_x"!"#
        ),
        ("include_docs=true&key=\"a\"", #"{"include_docs":"true","key":"a"}"#, "0 ad"),
        (
            "reduce=false&sorted=false&stable=true&update=lazy&stale=ok&startkey_docid=z",
            #"{"reduce":false,"sorted":false,"stable":true,"update":"false","stale":"ok","endkey_docid":"z"}"#,
            "0 a b d e"
        ),
    ]

    /// A body's parameters but `keys` were ignored, so that all documents came.
    @Test("A listing says the same by URL, by body and among several, as CouchDB's does", arguments: cases)
    func listings(query: String, body: String, expected: String) async throws {
        try fill()
        let target = "/db/_all_docs?" + query.replacing("\"", with: "%22")
        #expect(rows(try await server.call("GET", target).json) == expected)
        #expect(rows(try await server.call("POST", "/db/_all_docs", try json(body)).json) == expected)
        let several: JSONValue = ["queries": [["limit": 0], try json(body), ["limit": 1]]]
        let results = try await server.call("POST", "/db/_all_docs/queries", several).json["results"]
        #expect(rows(results?[0]) == "0" && rows(results?[1]) == expected && rows(results?[2]) == "0 a")
        #expect(results?.arrayValue?.count == 3 && results?[1]?["total_rows"] == 4)
    }

    @Test(
        "An option that a listing of documents doesn't understand is a 400",
        arguments: [
            #"{"foo":1}"#, #"{"limit":-1}"#, #"{"limit":"2"}"#, #"{"limit":null}"#, #"{"limit":1.5}"#, #"{"skip":-1}"#,
            #"{"descending":5}"#, #"{"include_docs":"yes"}"#, #"{"inclusive_end":"x"}"#, #"{"startkey":5}"#,
            #"{"endkey":{}}"#, #"{"key":null}"#, #"{"keys":"a"}"#, #"{"keys":5}"#, #"{"reduce":true}"#,
            #"{"group":true}"#, #"{"update":"x"}"#, #"{"stale":"x"}"#, #"{"queries":[]}"#,
        ])
    func refused(text: String) async throws {
        try fill()
        let body = try json(text)
        for (target, body) in [("/db/_all_docs", body), ("/db/_all_docs/queries", ["queries": [body]])] {
            let answer = try await server.call("POST", target, body)
            #expect(answer.status == 400 && answer.json["error"] == "bad_request", "\(answer.text)")
        }
        let member = try #require(body.objectValue?.first)
        guard text != #"{"limit":"2"}"# else { return }
        let value = member.value.stringValue ?? member.value.description
        let target = "/db/_all_docs?\(member.key)=\(value.percentEncoded)"
        #expect(try await server.call("GET", target).status == 400)
    }

    @Test("Bodies that are no listings are a 400, and other paths a 404") func bodies() async throws {
        try fill()
        for body in ["[]", "5", "{"] {
            let request = HTTPRequest("POST", "/db/_all_docs", body: .bytes(Array(body.utf8)))
            #expect(try await server.call(request).status == 400)
        }
        for body in [[:], ["queries": 5], ["queries": [5]], ["queries": [], "limit": 1]] as [JSONValue] {
            #expect(try await server.call("POST", "/db/_all_docs/queries", body).status == 400)
        }
        #expect(try await server.call("POST", "/db/_all_docs/queries", ["queries": []]).json == ["results": []])
        #expect(try await server.call("GET", "/db/_all_docs/queries").status == 405)
        #expect(try await server.call("POST", "/db/_all_docs/other", [:]).status == 404)
        #expect(
            try await server.call("POST", "/db/_all_docs?limit=2", ["limit": 1]).json["rows"]?.arrayValue?.count == 2)
        let common = try await server.call("POST", "/db/_all_docs/queries?limit=1", ["queries": [["descending": true]]])
        #expect(rows(common.json["results"]?[0]) == "0 e")
        let queries = JSONValue.array(Array(repeating: ["limit": 0], count: RequestLimits.itemCount + 1))
        #expect(try await server.call("POST", "/db/_all_docs/queries", ["queries": queries]).status == 413)
    }

    @Test("Rows hold contents, conflicts and the last sequence where they are asked for") func more() async throws {
        let server = TestServer { $0.documentByteLimit = 2000 }
        let database = try server.database()
        try database.write("a", ["n": 1], attachment: ("x", Data([1, 2, 3])))
        try database.write("b", ["n": 1], attachment: ("x", Data(repeating: 7, count: 3000)))
        for rev in ["2-b", "2-c"] {
            _ = try await server.call(
                "PUT", "/db/c?new_edits=false",
                ["_rev": .string(rev), "_revisions": ["start": 2, "ids": [.string(String(rev.dropFirst(2))), "a"]]])
        }
        let all = try await server.call(
            "GET", "/db/_all_docs?include_docs=true&attachments=true&conflicts=true&update_seq=true"
        ).json
        #expect(all["update_seq"] == .number(JSONNumber(Int64(try database.lastSequenceNumber))))
        #expect(all["rows"]?[0]?["doc"]?["_attachments"]?["x"]?["data"] == "AQID")
        #expect(all["rows"]?[1]?["error"] == "attachment_too_large" && all["rows"]?[1]?["doc"] == nil)
        #expect(all["rows"]?[2]?["doc"]?["_conflicts"] == ["2-b"])
        let stubs = try await server.call("GET", "/db/_all_docs?include_docs=true").json
        #expect(stubs["rows"]?[1]?["doc"]?["_attachments"]?["x"]?["stub"] == true)
        #expect(stubs["update_seq"] == nil && stubs["rows"]?[2]?["doc"]?["_conflicts"] == nil)
    }

    @Test("A read-only server answers several listings") func readOnly() async throws {
        let server = TestServer { $0.isReadOnly = true }
        try await server.database().close()
        #expect(try await server.call("POST", "/db/_all_docs/queries", ["queries": [[:]]]).status == 200)
        #expect(try await server.call("POST", "/db/_all_docs/queries/x", ["queries": [[:]]]).status == 403)
    }
}
