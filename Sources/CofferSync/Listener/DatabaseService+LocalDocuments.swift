internal import Coffer
internal import CofferModel

extension DatabaseService {
    /// Answers `_local_docs`, and `queries` below it.
    ///
    /// - Parameter rest: the path behind `_local_docs`.
    func localDocuments(_ request: HTTPRequest, _ target: RequestTarget, _ rest: [String]) async throws -> HTTPResponse
    {
        guard rest.isEmpty || rest == ["queries"] else { throw SyncError(404, "no such resource") }
        if rest.isEmpty { try request.expect("GET", "HEAD", "POST") } else { try request.expect("POST") }
        var body: JSONObject = [:]
        if request.method == "POST" {
            guard let object = try await request.json(upTo: service.options.documentByteLimit).objectValue else {
                throw SyncError(400, "the body is not an object")
            }
            body = object
        }
        guard rest.isEmpty else {
            guard let queries = body["queries"]?.arrayValue else { throw SyncError(400, "queries is not a list") }
            try RequestLimits.check(queries.count, "queries")
            let results = try queries.map { query in
                try rows(try LocalDocumentsQuery(query.objectValue ?? [:], target))
            }
            return try .json(200, ["results": .array(results)])
        }
        return try .json(200, try rows(try LocalDocumentsQuery(body, target)))
    }

    private func rows(_ query: LocalDocumentsQuery) throws -> JSONValue {
        var rows: [JSONValue] = []
        if let keys = query.keys {
            for key in keys.dropFirst(query.skip).prefix(query.limit) {
                let id = key.stringValue.map { $0.hasPrefix("_local/") ? $0 : "_local/" + $0 }
                rows.append(try id.flatMap { try row($0, query) } ?? ["key": key, "error": "not_found"])
            }
        } else {
            var ids: [String] = []
            while case let more = try database.localDocumentIDs(after: ids.last, limit: 1000), !more.isEmpty {
                ids += more
                try RequestLimits.check(ids.count, "local documents")
            }
            ids.removeAll { !query.contains($0) }
            if query.isDescending { ids.reverse() }
            for id in ids.dropFirst(query.skip).prefix(query.limit) {
                if let row = try row(id, query) { rows.append(row) }
            }
        }
        return ["total_rows": nil, "offset": nil, "rows": .array(rows)]
    }

    private func row(_ id: String, _ query: LocalDocumentsQuery) throws -> JSONValue? {
        guard (try? DocumentID(id)) != nil, case let generation = try database.localDocumentGeneration(withID: id),
            generation > 0
        else { return nil }
        let revision = JSONValue.string("0-\(generation)")
        var row: JSONObject = ["id": .string(id), "key": .string(id), "value": ["rev": revision]]
        if query.includesDocuments, var document = try database.localDocument(withID: id) {
            document["_id"] = .string(id)
            document["_rev"] = revision
            row["doc"] = .object(document)
        }
        return .object(row)
    }

    /// Answers requests for a local document, as a replication's checkpoint is one.
    func localDocument(_ request: HTTPRequest, _ id: String) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "PUT", "DELETE")
        switch request.method {
        case "PUT":
            guard var json = try await request.json(upTo: service.options.documentByteLimit).objectValue else {
                throw SyncError(400, "a document is an object")
            }
            guard json["_rev"] == nil || json["_rev"]?.stringValue != nil else {
                throw SyncError(400, of: "document \(id)", "_rev is not a revision id")
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

/// What a listing of local documents is asked for.
struct LocalDocumentsQuery {
    private(set) var keys: [JSONValue]?
    private(set) var isDescending = false
    private(set) var includesDocuments = false
    private(set) var limit = Int.max
    private(set) var skip = 0
    private var (start, end): (String?, String?) = (nil, nil)
    private var includesEnd = true

    /// - Throws: ``SyncError`` 400.
    init(_ body: JSONObject, _ target: RequestTarget) throws(SyncError) {
        for (name, value) in body { try set(name, .json(value)) }
        for (name, text) in target.query { try set(name, .text(text)) }
    }

    private mutating func set(_ name: String, _ value: ParameterValue) throws(SyncError) {
        switch name {
        case "keys": keys = try value.list(name)
        case "key":
            start = try value.id(name)
            end = start
        case "startkey", "start_key": start = try value.id(name)
        case "endkey", "end_key": end = try value.id(name)
        case "inclusive_end": includesEnd = try value.isTrue(name)
        case "limit": limit = try value.count(name)
        case "skip": skip = try value.count(name)
        case "descending": isDescending = try value.isTrue(name)
        case "include_docs": includesDocuments = try value.isTrue(name)
        case "conflicts", "update_seq": _ = try value.isTrue(name)
        default: throw SyncError(400, "\(name.shortened(to: 100)) is not a parameter of _local_docs")
        }
    }

    func contains(_ id: String) -> Bool {
        let (low, high) = isDescending ? (end, start) : (start, end)
        func comes(_ left: String, before right: String) -> Bool { left.utf8.lexicographicallyPrecedes(right.utf8) }
        if let low, comes(id, before: low) { return false }
        if let high, comes(high, before: id) { return false }
        return includesEnd || end.map { !$0.utf8.elementsEqual(id.utf8) } ?? true
    }
}
