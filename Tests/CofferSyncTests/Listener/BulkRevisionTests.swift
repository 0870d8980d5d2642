import Coffer
import CofferModel
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
