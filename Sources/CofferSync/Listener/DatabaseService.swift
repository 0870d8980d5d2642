internal import CofferModel
internal import Foundation
internal import Coffer

/// Answers requests for one database.
struct DatabaseService {
    let service: Service
    let database: Database

    init(_ service: Service, _ database: Database) {
        self.service = service
        self.database = database
    }

    func respond(to request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        do {
            return try await route(request, target)
        } catch let error as CofferError where error.code == .closed || error.code == .reopenRequired {
            service.forget(database)
            throw SyncError(503, "the database was closed")
        }
    }

    private func route(_ request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        let path = Array(target.path.dropFirst())
        guard let first = path.first else { return try await top(request) }
        switch first {
        case "_changes": return try await changes(request, target)
        case "_all_docs": return try await allDocuments(request, target, Array(path.dropFirst()))
        case "_bulk_docs": return try await bulkDocuments(request)
        case "_bulk_get": return try await bulkGet(request, target)
        case "_revs_diff": return try await revisionsDifference(request)
        case "_ensure_full_commit":
            // A commit has reached the disk when its call returns.
            try request.expect("POST")
            return try .json(201, ["ok": true, "instance_start_time": "0"])
        case "_compact":
            try request.expect("POST")
            service.tasks.compact(database)
            return try .json(202, ["ok": true])
        case "_purge": return try await purge(request)
        case "_local":
            guard path.count > 1 else { throw SyncError(404, "no such document") }
            return try await localDocument(request, "_local/" + path.dropFirst().joined(separator: "/"))
        case "_design":
            guard path.count > 1 else { throw SyncError(404, "no such document") }
            return try await document(request, target, "_design/\(path[1])", Array(path.dropFirst(2)))
        default:
            if first.hasPrefix("_local/") { return try await localDocument(request, first) }
            guard !first.hasPrefix("_") || first.hasPrefix("_design/") else { throw SyncError(404, "no such resource") }
            return try await document(request, target, first, Array(path.dropFirst()))
        }
    }

    // MARK: The database

    private func top(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "POST")
        if request.method == "POST" { return try await postDocument(request) }
        var info: JSONObject = ["db_name": .string(database.name), "instance_start_time": "0"]
        info["doc_count"] = .number(JSONNumber(Int64(try database.documentCount)))
        info["update_seq"] = .number(JSONNumber(Int64(try database.lastSequenceNumber)))
        info["compact_running"] = .bool(service.tasks.isCompacting(database))
        info["uuid"] = try database.uuid.map { .string($0.uuidString) }
        return try .json(200, .object(info))
    }

    // MARK: Local documents

    private func localDocument(_ request: HTTPRequest, _ id: String) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "PUT", "DELETE")
        switch request.method {
        case "PUT":
            guard var json = try await request.json(upTo: service.options.documentByteLimit).objectValue else {
                throw SyncError(400, "a document is an object")
            }
            guard json["_rev"] == nil || json["_rev"]?.stringValue != nil else {
                throw SyncError(400, of: "document \(id)", "_rev is no revision id")
            }
            // Whoever wrote it last may have been somebody else.
            let stated = json["_rev"]?.stringValue
            // CouchDB's replicator says the history of its checkpoint too.
            for key in ["_id", "_rev", "_revisions"] { json[key] = nil }
            let (database, saved) = (database, json)
            let generation = try await database.inTransaction {
                let generation = try database.localDocumentGeneration(withID: id)
                guard stated == (generation == 0 ? nil : "0-\(generation)") else {
                    throw SyncError(409, of: "document \(id)", "another revision of it is there")
                }
                try database.saveLocalDocument(saved, withID: id)
                return try database.localDocumentGeneration(withID: id)
            }
            return try .json(201, ["ok": true, "id": .string(id), "rev": .string("0-\(generation)")])
        case "DELETE":
            try await database.deleteLocalDocument(withID: id)
            return try .json(200, ["ok": true, "id": .string(id), "rev": "0-0"])
        default:
            guard var json = try database.localDocument(withID: id) else { throw SyncError(404, "missing") }
            json["_id"] = .string(id)
            json["_rev"] = .string("0-\(try database.localDocumentGeneration(withID: id))")
            return try .json(200, .object(json))
        }
    }
}
