import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// Most revisions are read together: each must be answered as it is alone, and in its turn.
@Suite("Revisions that are asked for together")
struct BulkRevisionTests {
    let server = TestServer()

    /// Documents that are plain, replaced, deleted, in conflict, or have an attachment, and what is asked of them.
    private func make() throws -> [JSONValue] {
        let database = try server.database()
        var requests: [JSONValue] = []
        func ask(_ id: String, _ revision: RevisionID?) {
            var request: JSONObject = ["id": .string(id)]
            request["rev"] = revision.map { .string($0.description) }
            requests.append(.object(request))
        }
        for number in 0..<24 {
            let id = "document \(number) \"é\""
            let first = try database.write(id, ["n": .number(JSONNumber(Int64(number)))])
            ask(id, first.revisionID)
            switch number % 6 {
            case 1: ask(id, try database.write(id, ["again": true]).revisionID)
            case 2: ask(id, try database.document(withID: id).delete().revisionID)
            case 3:
                let draft = try first.createRevision()
                draft["branch"] = true
                ask(id, try draft.saveAllowingConflict().revisionID)
                let other = try first.createRevision()
                other["branch"] = false
                ask(id, try other.saveAllowingConflict().revisionID)
            case 4: ask(id, try database.write(id, [:], attachment: ("a", Data("content".utf8))).revisionID)
            case 5: ask(id, nil)
            default: break
            }
            if number == 12 { ask("nobody", first.revisionID) }
        }
        return requests
    }

    @Test(
        "Each is answered as it is alone, in the order of the request",
        arguments: ["", "?revs=true", "?revs=true&latest=true", "?latest=true", "?attachments=true", "?revs_info=true"])
    func sameAsAlone(_ query: String) async throws {
        let requests = try make()
        let together = try await ask(requests, query)
        #expect(together.count == requests.count && together.count > 40)
        for (number, request) in requests.enumerated() {
            #expect(try await ask([request], query) == [together[number]], "\(request) \(query)")
        }
        // What asks for more than the text says is read alone.
        let plain = try await ask(requests, query + (query.isEmpty ? "?" : "&") + "local_seq=true")
        for (number, row) in plain.enumerated() {
            #expect(Self.withoutSequence(row) == together[number], "\(requests[number]) \(query)")
        }
    }

    /// One row ended the answer, and with it a pull of everything: "the server can't be reached".
    @Test(
        "A document that can't be had is a row that says why, and keeps no other from being answered",
        arguments: ["application/json", "multipart/mixed"])
    func failingRows(_ type: String) async throws {
        let database = try server.database()
        let revision = try database.write("a", ["n": 1]).revisionID.description
        try database.write("z", ["n": 2])
        let ids = ["a", "_foo", "", String(repeating: "x", count: 1_000), "_local/x", "z"]
        let requests = ids.flatMap { id -> [JSONValue] in
            [["id": .string(id), "rev": .string(revision)], ["id": .string(id)]]
        }
        for query in ["", "?revs=true&latest=true"] {
            let answer = try await server.call(
                "POST", "/db/_bulk_get\(query)", ["docs": .array(requests)], fields: ["Accept": type])
            #expect(answer.status == 200)
            if type == "application/json" {
                let rows = try #require(answer.json["results"]?.arrayValue)
                #expect(rows.compactMap { $0["id"]?.stringValue } == ids.flatMap { [$0, $0] })
                let found = rows.map { $0["docs"]?[0]?["ok"]?["n"]?.intValue }
                #expect(found.prefix(2) == [1, 1] && found.dropFirst(2).prefix(9).allSatisfy { $0 == nil })
                #expect(found.last == 2)
                for row in rows.dropFirst(2).prefix(8) {
                    #expect(row["docs"]?[0]?["error"]?["error"] == "illegal_docid", "\(row)")
                }
            } else {
                #expect(answer.text.components(separatedBy: "illegal_docid").count == 9, "\(answer.text)")
                #expect(answer.text.contains(#""n":1"#) && answer.text.contains(#""n":2"#))
            }
        }
    }

    @Test("A pull and a push bring all but what is damaged, and say which that is", arguments: [true, false])
    func damaged(isPull: Bool) async throws {
        let server = TestServer { $0.encryptionKey = { _ in nil } }
        var options = DatabaseOptions()
        options.create = true
        let database = try await server.stores.manager.openDatabase(named: "db", options: options)
        for number in 0..<300 { try database.write("d\(number)", ["n": .string("<\(number)>")]) }
        try await database.close()
        let store = server.stores.url(ofDatabaseNamed: "db")
        for name in try FileManager.default.subpathsOfDirectory(atPath: store.path) where name.hasSuffix("sqlite3") {
            let file = store.appending(path: name)
            var bytes = try Data(contentsOf: file)
            for number in [0, 77, 299] {
                let place = try #require(bytes.range(of: Data("{\"n\":\"<\(number)>\"}".utf8)))
                // Two are no JSON, and the last one is no object.
                bytes.replaceSubrange(
                    place.lowerBound..<place.lowerBound + 5, with: Data((number < 299 ? "{{{{{" : "     ").utf8))
                if number == 299 { bytes[place.upperBound - 1] = UInt8(ascii: " ") }
            }
            try bytes.write(to: file)
        }
        for query in ["", "?attachments=true"] {
            let answer = try await server.call(
                "POST", "/db/_bulk_get\(query)", ["docs": [["id": "d0"], ["id": "d1"]]],
                fields: ["Accept": "application/json"])
            let rows = answer.json["results"]?.arrayValue
            #expect(rows?.first?["docs"]?[0]?["error"]?["id"] == "d0", "\(query)")
            #expect(rows?.last?["docs"]?[0]?["ok"]?["n"] == "<1>", "\(query)")
        }
        let peers = try Peers()
        let failed: [DocumentFailure]
        let copy: Database
        if isPull {
            copy = try peers.database()
            let pull = try peers.replication(.pull, copy, through: server)
            try await pull.run()
            failed = pull.failures
        } else {
            let push = try await peers.push(try await server.stores.manager.openDatabase(named: "db", options: options))
            failed = push.failures
            copy = try peers.remote
        }
        #expect(try copy.documentCount == 297)
        #expect(Set(failed.map(\.documentID)) == ["d0", "d77", "d299"], "\(failed)")
    }

    /// The containers around it made it too deep to be sent, which ended the answer.
    @Test("A document as deep as any can be comes with all that is around it, and crosses")
    func deep() async throws {
        let peers = try Peers()
        let database = try peers.remote
        func nested(_ depth: Int) -> JSONValue { (0..<depth).reduce(1) { value, _ in [value] } }
        try database.write("attached", ["a": nested(511)], attachment: ("a", Data("content".utf8)))
        try database.write("plain", ["a": nested(511)])
        let first = try database.write("branched", ["a": nested(511)])
        for branch in [true, false] {
            let draft = try first.createRevision()
            draft["branch"] = .bool(branch)
            try await draft.saveAllowingConflict()
        }
        #expect(throws: CofferError.self) { try database.write("deeper", ["a": nested(512)]) }
        let ids = ["attached", "plain", "branched"]
        let question: JSONValue = ["docs": .array(ids.map { ["id": .string($0)] })]
        for (method, target, body) in [
            ("POST", "_bulk_get?revs=true&latest=true", question), ("GET", "_all_docs?include_docs=true", nil),
            ("GET", "_changes?include_docs=true", nil), ("GET", "branched?open_revs=all", nil),
            ("POST", "_find", ["selector": ["_id": ["$gt": nil]]] as JSONValue),
        ] as [(String, String, JSONValue?)] {
            let answer = try await peers.server.call(
                method, "/db/\(target)", body, fields: ["Accept": "application/json"])
            #expect(answer.status == 200, "\(target)")
            #expect(answer.text.contains(String(repeating: "[", count: 511) + "1"), "\(target)")
            // To its end.
            #expect(answer.text.count { $0 == "[" } == answer.text.count { $0 == "]" }, "\(target)")
            #expect(answer.text.count { $0 == "{" } == answer.text.count { $0 == "}" }, "\(target)")
        }
        let copy = try peers.database()
        let pull = try await peers.pull(copy)
        #expect(pull.failures.isEmpty, "\(pull.failures)")
        #expect(try Contents(copy) == Contents(database))
        let again = try Peers()
        let push = try await again.push(copy)
        #expect(push.failures.isEmpty, "\(push.failures)")
        #expect(try Contents(again.remote) == Contents(database))
    }

    private func ask(_ requests: [JSONValue], _ query: String) async throws -> [JSONValue] {
        let answer = try await server.call(
            "POST", "/db/_bulk_get\(query)", ["docs": .array(requests)], fields: ["Accept": "application/json"])
        #expect(answer.status == 200)
        return try #require(answer.json["results"]?.arrayValue)
    }

    private static func withoutSequence(_ row: JSONValue) -> JSONValue? {
        guard var object = row.objectValue, let documents = row["docs"]?.arrayValue else { return nil }
        object["docs"] = .array(
            documents.map { document in
                guard var answer = document.objectValue, var ok = document["ok"]?.objectValue else { return document }
                ok["_local_seq"] = nil
                answer["ok"] = .object(ok)
                return .object(answer)
            })
        return .object(object)
    }

    @Test("What is missing of many documents is said of each as it is alone")
    func differences() async throws {
        let requests = try make()
        let database = try server.database()
        var question: JSONObject = [:]
        for request in requests {
            let id = try #require(request["id"]?.stringValue)
            let known = try database.document(withID: id).leafRevisions.map(\.revisionID.description)
            question[id] = .array((known + ["1-x", "2-y", "9-z"]).map { .string($0) })
        }
        question["_impossible"] = ["1-a"]
        question["foreign"] = [.string("1-" + String(repeating: "z", count: 250))]
        question["all here"] = [.string(try database.write("all here", [:]).revisionID.description)]
        for number in 0..<600 { question["new \(number)"] = ["1-a"] }
        let together = try await server.call("POST", "/db/_revs_diff", .object(question)).json
        let missing = try await server.call("POST", "/db/_missing_revs", .object(question)).json["missing_revs"]
        #expect(together.objectValue?.count == question.count - 1)
        #expect(together["_impossible"]?["missing"] == ["1-a"] && together["all here"] == nil)
        for (id, revisions) in question where !id.hasPrefix("new") || id.hasSuffix("9") {
            let alone = try await server.call("POST", "/db/_revs_diff", [id: revisions]).json
            #expect(alone[id] == together[id], "\(id)")
            #expect(missing?[id] == together[id]?["missing"], "\(id)")
            guard id.hasPrefix("document") else { continue }
            #expect(together[id]?["missing"] == ["1-x", "2-y", "9-z"], "\(id)")
            let leaves = try database.document(withID: id).leafRevisions.map(\.revisionID.description)
            #expect(together[id]?["possible_ancestors"] == .array(leaves.map { .string($0) }), "\(id)")
        }
    }
}
