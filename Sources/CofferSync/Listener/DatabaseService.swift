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
        guard let first = path.first else { return try await top(request, target) }
        let rest = Array(path.dropFirst())
        switch first {
        case "_changes": return try await changes(request, target)
        case "_all_docs": return try await allDocuments(request, target, rest)
        case "_design_docs": return try await allDocuments(request, target, rest, amongDesign: true)
        case "_local_docs": return try await localDocuments(request, target, rest)
        case "_find": return try await find(request)
        case "_explain": return try await explain(request)
        case "_index": return try await indexes(request, rest)
        case "_bulk_docs": return try await bulkDocuments(request)
        case "_bulk_get": return try await bulkGet(request, target)
        case "_revs_diff": return try await revisionsDifference(request)
        case "_missing_revs": return try await missingRevisions(request)
        case "_revs_limit": return try await revisionsLimit(request)
        case "_security": return try await security(request)
        case "_ensure_full_commit":
            // A commit has reached the disk when its call returns.
            try request.expect("POST")
            return try .json(201, ["ok": true, "instance_start_time": "0"])
        case "_compact":
            try request.expect("POST")
            service.tasks.compact(database)
            return try .json(202, ["ok": true])
        case "_view_cleanup":
            // Views that are no more have no files of their own.
            try request.expect("POST")
            return try .json(202, ["ok": true])
        case "_purge": return try await purge(request)
        case "_local":
            guard path.count > 1 else { throw SyncError(404, "no such document") }
            return try await localDocument(request, "_local/" + path.dropFirst().joined(separator: "/"))
        case "_design":
            guard path.count > 1 else { throw SyncError(404, "no such document") }
            if path.count > 2, path[2] == "_view" {
                return try await view(request, target, path[1], Array(path.dropFirst(3)))
            }
            return try await document(request, target, "_design/\(path[1])", Array(path.dropFirst(2)))
        default:
            if first.hasPrefix("_local/") { return try await localDocument(request, first) }
            if first.hasPrefix("_design/"), rest.first == "_view" {
                return try await view(request, target, String(first.dropFirst(8)), Array(rest.dropFirst()))
            }
            guard !first.hasPrefix("_") || first.hasPrefix("_design/") else { throw SyncError(404, "no such resource") }
            return try await document(request, target, first, Array(path.dropFirst()))
        }
    }
}
