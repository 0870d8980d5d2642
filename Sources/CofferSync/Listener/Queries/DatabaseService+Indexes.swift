internal import Coffer
internal import CofferModel
internal import CofferSealing

extension DatabaseService {
    /// Answers `_index` and what is below it: indexes that are declared over properties.
    ///
    /// - Parameter rest: the path behind `_index`.
    func indexes(_ request: HTTPRequest, _ rest: [String]) async throws -> HTTPResponse {
        if rest == ["_bulk_delete"] { return try await deleteIndexes(request) }
        guard !rest.isEmpty else {
            try request.expect("GET", "HEAD", "POST")
            return request.method == "POST" ? try await createIndex(request) : try listIndexes()
        }
        try request.expect("DELETE")
        // `_index/_design/idx/json/by-n`, and without `_design`.
        let parts = rest.first == "_design" ? Array(rest.dropFirst()) : rest
        guard parts.count == 3, parts[1] == "json" else { throw SyncError(404, "missing") }
        let design = parts[0].hasPrefix("_design/") ? String(parts[0].dropFirst(8)) : parts[0]
        let name = IndexDescription.name(design: design, parts[2])
        let database = database
        guard try await database.inTransaction({ try database.deleteIndex(named: name) }) else {
            throw SyncError(404, "missing")
        }
        return try .json(200, ["ok": true])
    }

    private func listIndexes() throws -> HTTPResponse {
        let all = [IndexDescription(nil)] + (try database.indexes.map { IndexDescription($0) })
        return try .json(200, ["total_rows": .number(all.count), "indexes": .array(all.map(\.json))])
    }

    private func createIndex(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard let json = try await request.json(upTo: service.options.documentByteLimit).objectValue else {
            throw SyncError(400, "Request body must be a JSON object")
        }
        let type = json["type"] ?? "json"
        guard type == "json" else {
            throw NamedRefusal(
                status: 503, name: "required index service unavailable", reason: type.stringValue ?? "no type")
        }
        guard let index = json["index"]?.objectValue else {
            throw NamedRefusal(status: 400, name: "missing_required_key", reason: "Missing required key: index")
        }
        guard index["partial_filter_selector"] == nil else {
            throw NamedRefusal(
                status: 501, name: "not_implemented", reason: "Indexes over a part of the documents are not supported")
        }
        let fields = try FieldList(index["fields"] ?? nil).fields.map(\.field)
        guard !fields.isEmpty else {
            throw NamedRefusal(
                status: 400, name: "invalid_index_fields", reason: "An index is over one field at least")
        }
        // As CouchDB does, one that isn't named is called by what it is over.
        let digest = try Digest.sha1(of: JSONValue.array(fields.map { .string($0) }).canonicalJSON())
        let name = json["name"]?.stringValue ?? hexadecimal(digest)
        let stated = json["ddoc"]?.stringValue.map { $0.hasPrefix("_design/") ? String($0.dropFirst(8)) : $0 }
        let full = IndexDescription.name(design: stated ?? name, name)
        let (database, paths) = (database, fields.map(PropertyPath.init(ofField:)))
        let isNew = try await database.inTransaction { try database.createIndex(named: full, on: paths) }
        return try .json(
            200,
            [
                "result": isNew ? "created" : "exists", "id": .string("_design/\(stated ?? name)"),
                "name": .string(name),
            ])
    }

    private func deleteIndexes(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        let json = try await request.json(upTo: service.options.documentByteLimit)
        guard let list = json["docids"]?.arrayValue else { throw SyncError(400, "docids is not a list") }
        try RequestLimits.check(list.count, "ids")
        var (gone, failed): ([JSONValue], [JSONValue]) = ([], [])
        let database = database
        for id in list {
            let design = id.stringValue.map { $0.hasPrefix("_design/") ? String($0.dropFirst(8)) : $0 }
            let names = try database.indexes.map(\.name).filter { IndexDescription.design(of: $0) == design }
            if names.isEmpty {
                failed.append(["id": id, "error": "not_found"])
                continue
            }
            try await database.inTransaction { for name in names { try database.deleteIndex(named: name) } }
            gone.append(["id": id, "ok": true])
        }
        return try .json(200, ["success": .array(gone), "fail": .array(failed)])
    }
}

/// An index as CouchDB tells of it: there each is in a design document, here its name may hold both.
struct IndexDescription {
    private let index: PropertyIndex?

    /// - Parameter index: nil for that of all documents by their ids.
    init(_ index: PropertyIndex?) { self.index = index }

    /// What an index is called here.
    static func name(design: String, _ name: String) -> String { design == name ? name : "\(design)/\(name)" }

    static func design(of name: String) -> String {
        name.split(separator: "/", maxSplits: 1).first.map(String.init) ?? name
    }

    private static func ownName(of name: String) -> String {
        let parts = name.split(separator: "/", maxSplits: 1)
        return parts.count > 1 ? String(parts[1]) : name
    }

    /// Whether a client that says this means it: its design document, or that and its name.
    func isCalled(_ text: String) -> Bool {
        index.map { $0.name == text || Self.design(of: $0.name) == text } ?? false
    }

    var json: JSONValue {
        guard let index else {
            return [
                "ddoc": nil, "name": "_all_docs", "type": "special", "def": ["fields": [["_id": "asc"]]],
            ]
        }
        let fields = index.paths.map { JSONValue.object([$0.fieldName: "asc"]) }
        return [
            "ddoc": .string("_design/\(Self.design(of: index.name))"), "name": .string(Self.ownName(of: index.name)),
            "type": "json", "partitioned": false, "def": ["fields": .array(fields)],
        ]
    }
}
