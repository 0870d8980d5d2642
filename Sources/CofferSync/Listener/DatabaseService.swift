internal import CofferModel
internal import Foundation
internal import Coffer
internal import CofferSealing
internal import Synchronization

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

extension DatabaseService {
    /// Answers requests for the database itself: what it is, and a document that is given an id or has one.
    func top(_ request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "POST")
        if request.method == "POST" { return try await postDocument(request, target) }
        return try .json(200, .object(try information()))
    }

    /// What `GET /db` says.
    func information() throws -> JSONObject {
        let sums = try service.sums(of: database)
        return [
            "db_name": .string(database.name), "instance_start_time": "0",
            "doc_count": .number(try database.documentCount), "doc_del_count": .number(sums.deletedCount),
            "update_seq": .number(try database.lastSequenceNumber), "purge_seq": 0,
            // What could be freed is not counted apart.
            "sizes": [
                "file": .number(sums.byteCount), "active": .number(sums.byteCount), "external": .number(sums.byteCount),
            ],
            "compact_running": .bool(service.tasks.isCompacting(database)), "props": [:],
            "cluster": ["n": 1, "q": 1, "r": 1, "w": 1],
            "uuid": try database.uuid.map { .string($0.uuidString) } ?? .null,
        ]
    }

    /// Answers `_revs_limit`: how many revisions of one line are kept.
    func revisionsLimit(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "PUT")
        guard request.method == "PUT" else { return try .json(200, .number(try database.maxRevTreeDepth)) }
        let json = try await request.json(upTo: 1 << 10)
        guard let depth = Int(jsonValue: json), depth >= 1 else {
            throw SyncError(400, "`rev_limit` must be a positive integer")
        }
        let database = database
        try await database.inTransaction { try database.setMaxRevTreeDepth(depth) }
        return try .json(200, ["ok": true])
    }

    /// Answers `_security`. Who may do what is up to the server's own options, and the same for all databases: those whom it
    /// lets in may do everything, as CouchDB's administrators.
    func security(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "PUT")
        let ours: JSONValue = ["admins": ["roles": ["_admin"]], "members": ["roles": ["_admin"]]]
        guard request.method == "PUT" else { return try .json(200, ours) }
        let asked = try await request.json(upTo: service.options.documentByteLimit)
        guard let object = asked.objectValue else { throw SyncError(400, "Request body must be a JSON object") }
        guard object.isEmpty || asked == ours else {
            throw NamedRefusal(
                status: 501, name: "not_implemented",
                reason: "who may do what is up to the server's options, and the same for all databases")
        }
        return try .json(200, ["ok": true])
    }

    /// Answers `_missing_revs`: as `_revs_diff`, without what may be their ancestors.
    func missingRevisions(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        let question = try RevisionsQuestion(
            members: try await request.members(upTo: service.options.documentByteLimit))
        try RequestLimits.check(question.revisionCount, "revisions")
        var missing: JSONObject = [:]
        for (document, found) in zip(question.documents, try database.missingRevisions(of: question.documents)) {
            // What can't be here is missing.
            let absent = ((try? found.get().revisions) ?? document.revisions).map(\.description)
            let all = absent + (question.foreign[ByteKey(document.id)] ?? [])
            if !all.isEmpty { missing[document.id] = .array(all.map { .string($0) }) }
        }
        return try .json(200, ["missing_revs": .object(missing)])
    }
}

extension Service {
    /// What takes long to count of a database, as it was when its last sequence was this.
    struct DatabaseSums {
        var sequence: Int
        var deletedCount: Int
        var byteCount: Int
    }

    /// Counted again only where something was saved since.
    func sums(of database: Database) throws -> DatabaseSums {
        let sequence = try database.lastSequenceNumber
        if let known = sums.withLock({ $0[database.name] }), known.sequence == sequence { return known }
        let sizes = try database.sizes
        let counted = DatabaseSums(
            sequence: sequence, deletedCount: try database.deletedDocumentCount,
            byteCount: sizes.databaseByteCount.addingSaturated(sizes.contentByteCount))
        sums.withLock { $0[database.name] = counted }
        return counted
    }
}
