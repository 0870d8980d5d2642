internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Foundation
internal import Synchronization

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
        try RequestLimits.check(question.documents.reduce(0) { $0 + max(1, $1.revisions.count) }, "revisions")
        var missing: JSONObject = [:]
        for (id, revisions) in question.documents {
            let isPossible = (try? DocumentID(id)) != nil
            let absent = isPossible ? try database.missingRevisions(of: revisions, ofDocumentWithID: id) : revisions
            if !absent.isEmpty { missing[id] = .array(absent.map { .string($0.description) }) }
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
