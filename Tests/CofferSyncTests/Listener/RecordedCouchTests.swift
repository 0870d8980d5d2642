import Coffer
import CofferModel
import Foundation
import Testing

@testable import CofferSync

/// What clients ask a server beside replication was asked of CouchDB 3.5, and its answers were recorded; the same is asked here.
@Suite("Answers that were recorded from CouchDB") struct RecordedCouchTests {
    private struct Recording {
        let documents: [JSONValue]
        let exchanges: [JSONValue]

        init() throws {
            let file = URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "../../Recorded/couchdb-3.5.json").standardizedFileURL
            let json = try JSONValue(json: Array(try Data(contentsOf: file)))
            documents = try #require(json["documents"]?.arrayValue)
            exchanges = try #require(json["exchanges"]?.arrayValue)
        }
    }

    /// What each server chooses for itself, and what only one of them says.
    private static let ownMembers: Set = [
        "bookmark", "warning", "seq", "last_seq", "pending", "_rev", "rev", "reason", "digest", "revpos", "opts",
        "index_candidates", "selector_hints", "covering", "limit", "skip", "fields", "partitioned", "plan",
        "all_nodes", "cluster_nodes", "selector", "mrargs", "status",
    ]

    /// Without what is a server's own, and lists of documents in one order: CouchDB has them from several shards.
    private static func compared(_ json: JSONValue, as name: String = "") -> JSONValue {
        if let object = json.objectValue {
            var kept: JSONObject = [:]
            for (name, value) in object where !ownMembers.contains(name) { kept[name] = compared(value, as: name) }
            return .object(kept)
        }
        guard let list = json.arrayValue else { return json }
        let elements = list.map { compared($0) }
        guard ["docs", "results", "indexes"].contains(name), elements.allSatisfy({ $0.objectValue != nil }) else {
            return .array(elements)
        }
        return .array(elements.sorted { $0.description < $1.description })
    }

    private static func objects(_ left: JSONValue, _ right: JSONValue) -> (JSONObject, JSONObject)? {
        guard let left = left.objectValue, let right = right.objectValue else { return nil }
        return (left, right)
    }

    /// The views of the design document that was recorded, as an app registers them.
    private static func addViews(to database: Database) throws {
        try database.view(named: "dd/v").setMap(version: "1") { revision, emit in
            if let number = try revision.properties["n"] { emit(number, try revision.properties["t"] ?? .null) }
        }
        try database.view(named: "dd/c").setMap(version: "1", reduction: .count) { revision, emit in
            if let number = try revision.properties["n"] { emit(number, 1) }
        }
        try database.view(named: "dd/pair").setMap(version: "1", reduction: .count) { revision, emit in
            for tag in try revision.properties["tags"]?.arrayValue ?? [] {
                emit(.array([tag, .string(revision.documentID)]), 1)
            }
        }
    }

    /// Whether the answer tells of what CouchDB does by itself: a checkpoint of its views, and a replication that it ran.
    private static func isOfItsOwn(_ exchange: JSONValue) -> Bool {
        let answer = exchange["answer"]?.description ?? ""
        return answer.contains("purge-mrview") || answer.contains("checkpointed_source_seq")
    }

    @Test("Clients' calls beside replication get CouchDB's answers")
    func answers() async throws {
        let recording = try Recording()
        let server = TestServer()
        let database = try server.database()
        try Self.addViews(to: database)
        for document in recording.documents {
            let id = try #require(document["_id"]?.stringValue)
            #expect(try await server.call("PUT", "/db/\(id)", document).status == 201)
        }
        for name in ["l1", "l2"] { try await database.saveLocalDocument(["a": name == "l1" ? 1 : 2], withID: name) }
        #expect(try await server.call("PUT", "/db/_design/dd", ["language": "javascript"]).status == 201)
        for exchange in recording.exchanges where !Self.isOfItsOwn(exchange) {
            let (method, target) = (exchange["method"]?.stringValue ?? "", exchange["target"]?.stringValue ?? "")
            var fields: HTTPFields = ["Host": "127.0.0.1:5984"]
            for (name, value) in exchange["fields"]?.objectValue ?? [:] { fields[name] = value.stringValue }
            let answer = try await server.call(method, target, exchange["body"], fields: fields)
            let what = "\(method) \(target) \(exchange["body"]?.description ?? "")"
            #expect("\(answer.status)" == exchange["status"]?.description, "\(what): \(answer.text)")
            var (ours, theirs) = (Self.compared(answer.json), Self.compared(exchange["answer"] ?? nil))
            // CouchDB says something there where keys are listed, and Coffer nothing.
            if what.contains("keys"), var (left, right) = Self.objects(ours, theirs) {
                (left["offset"], right["offset"]) = (nil, nil)
                (ours, theirs) = (.object(left), .object(right))
            }
            #expect(ours == theirs, "\(what): \(answer.text)")
            for name in exchange["named"]?.arrayValue ?? [] {
                #expect(answer.fields[name.stringValue ?? ""] != nil, "\(what): no \(name)")
            }
        }
    }
}
