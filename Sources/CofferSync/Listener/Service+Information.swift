internal import Coffer
internal import CofferModel

extension Service {
    /// Answers `_all_dbs`.
    func allDatabases(_ request: HTTPRequest, _ target: RequestTarget) throws -> HTTPResponse {
        try request.expect("GET", "HEAD")
        return try .json(200, .array(try names(target).map { .string($0) }))
    }

    /// Answers `_dbs_info`: of the databases that are named (POST), or of all.
    func databasesInformation(_ request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "POST")
        let names: [JSONValue]
        if request.method == "POST" {
            guard let keys = try await request.json(upTo: options.documentByteLimit)["keys"]?.arrayValue else {
                throw SyncError(400, "`keys` member must exist.")
            }
            guard keys.count <= Self.namedLimit else { throw SyncError(400, "more than \(Self.namedLimit) keys") }
            names = keys
        } else {
            names = try self.names(target).map { .string($0) }
        }
        var rows: [JSONValue] = []
        for key in names {
            do {
                guard let name = key.stringValue else { throw SyncError(404, "no such database") }
                let database = DatabaseService(self, try await open(name))
                rows.append(["key": key, "info": .object(try database.information())])
            } catch {
                let (status, name, _) = ServerFailure.parts(of: error)
                rows.append(["key": key, "error": .string(status == 404 ? "not_found" : name)])
            }
        }
        return try .json(200, .array(rows))
    }

    /// As CouchDB has it.
    private static let namedLimit = 100

    /// The names of all databases, as far as the request asks for them.
    private func names(_ target: RequestTarget) throws -> [String] {
        var (start, end, limit, skip): (String?, String?, Int, Int) = (nil, nil, .max, 0)
        var (isDescending, includesEnd) = (false, true)
        for (name, text) in target.query {
            let value = ParameterValue.text(text)
            switch name {
            case "startkey", "start_key": start = try value.id(name)
            case "endkey", "end_key": end = try value.id(name)
            case "limit": limit = try value.count(name)
            case "skip": skip = try value.count(name)
            case "descending": isDescending = try value.isTrue(name)
            case "inclusive_end": includesEnd = try value.isTrue(name)
            default: throw SyncError(400, "\(name.shortened(to: 100)) is not a parameter of a list of databases")
            }
        }
        var names = try manager.allDatabaseNames.filter { name in
            let (low, high) = isDescending ? (end, start) : (start, end)
            return (low.map { $0 <= name } ?? true) && (high.map { name <= $0 } ?? true) && (includesEnd || name != end)
        }
        if isDescending { names.reverse() }
        return Array(names.dropFirst(skip).prefix(limit))
    }

    /// Answers `_membership`: one node, as CouchDB calls one without others.
    func membership(_ request: HTTPRequest) throws -> HTTPResponse {
        try request.expect("GET", "HEAD")
        return try .json(200, ["all_nodes": ["nonode@nohost"], "cluster_nodes": ["nonode@nohost"]])
    }

    /// Answers `_scheduler/jobs` and `_scheduler/docs`: replications are asked for by `_replicate` alone, and are in
    /// `_active_tasks`.
    func scheduler(_ request: HTTPRequest, _ target: RequestTarget) throws -> HTTPResponse {
        try request.expect("GET", "HEAD")
        switch target.path.dropFirst().first {
        case "jobs": return try .json(200, ["total_rows": 0, "offset": 0, "jobs": []])
        case "docs": return try .json(200, ["total_rows": 0, "offset": 0, "docs": []])
        default: throw SyncError(404, "no such resource")
        }
    }
}
