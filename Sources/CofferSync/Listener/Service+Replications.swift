internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Synchronization
internal import Foundation

/// What makes transports to a server.
package typealias TransportMaker =
    @Sendable (RemoteURL, ReplicationOptions) throws(SyncError) -> @Sendable () -> any HTTPTransport

extension Service {
    /// Answers `_active_tasks`.
    func activeTasks(_ request: HTTPRequest) throws -> HTTPResponse {
        try request.expect("GET", "HEAD")
        return try .json(200, .array(tasks.list))
    }

    /// Answers `_replicate`: begins a replication and, unless it is continuous, waits for its end; or cancels one.
    ///
    /// - Throws: ``SyncError`` 403 where the app has not allowed it, 400 for what can't be asked for, 404 for a database that
    ///   is not there and a replication that is not under way; 500 for what else keeps it from coming to its end.
    func replicate(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        guard let base = options.replications, let makeTransport else {
            throw SyncError(403, "this server starts no replications")
        }
        guard let json = try await request.json(upTo: options.documentByteLimit).objectValue else {
            throw SyncError(400, "a replication is an object")
        }
        let isCancelled = json["cancel"] == true
        if isCancelled, let id = (json["replication_id"] ?? json["_local_id"])?.stringValue {
            return try await cancel(id)
        }
        let asked = try ReplicationRequest(json, to: request.fields["Host"], base)
        if !isCancelled, asked.createsDatabase, !manager.databaseExists(named: asked.databaseName) {
            _ = try await create(asked.databaseName)
        }
        let replication = try Replication(
            asked.direction, try await open(asked.databaseName), asked.remote, asked.options,
            transport: try makeTransport(asked.remote, asked.options))
        let isContinuous = asked.options.isContinuous
        if isCancelled { return try await cancel(ServerReplication.id(of: replication, isContinuous: isContinuous)) }
        let running = try tasks.begin(ServerReplication(replication, isContinuous: isContinuous))
        guard !isContinuous else { return try .json(202, ["ok": true, "_local_id": .string(running.id)]) }
        return try await answer(running)
    }

    private func cancel(_ id: String) async throws -> HTTPResponse {
        guard let running = tasks.replication(id) else { throw SyncError(404, "no such replication is under way") }
        await running.stop()
        return try .json(200, ["ok": true, "_local_id": .string(id)])
    }

    /// Waits for a replication's end. A connection on which nothing moves would be closed: where it takes long the answer begins
    /// before it is known, and what goes wrong then is said with `ok` false.
    private func answer(_ running: ServerReplication) async throws -> HTTPResponse {
        let pause = options.idleTimeout / 3
        switch try await running.outcome(within: pause) {
        case .success(let status)?: return try .json(200, .object(running.report(status)))
        case .failure(let error)?: throw ReplicationFailure(error)
        case nil: break
        }
        let isOver = Lock(false)
        return .json(
            200,
            stream: ByteStream {
                guard !isOver.withLock({ $0 }) else { return nil }
                guard let outcome = try await running.outcome(within: pause) else { return [UInt8(ascii: "\n")] }
                isOver.withLock { $0 = true }
                switch outcome {
                case .success(let status): return try JSONValue.object(running.report(status)).canonicalJSON()
                case .failure(let error):
                    let (_, name, reason) = ServerFailure.parts(of: ReplicationFailure(error))
                    let answer: JSONValue = ["ok": false, "error": .string(name), "reason": .string(reason)]
                    return try answer.canonicalJSON()
                }
            })
    }
}

/// Why a replication did not come to its end: nothing that whoever asked for it did wrong.
struct ReplicationFailure: Error {
    let status: Int
    let reason: String

    init(_ error: any Error) {
        switch error {
        case is CancellationError: (status, reason) = (503, "the replication was stopped")
        // In CouchDB's words a database that is not there.
        case let error as SyncError where error.status == 404: (status, reason) = (404, error.detail)
        case let error as SyncError: (status, reason) = (500, "the other side: \(error.detail) (\(error.status))")
        case let error as CofferError: (status, reason) = (500, error.detail ?? error.code.description)
        default: (status, reason) = (500, "an error of the server")
        }
    }
}

/// What a request to `_replicate` asks for, as CouchDB has it: one side is a database of this server, the other is elsewhere.
///
/// Source: CouchDB's documentation, `/_replicate` and "Replication Settings".
struct ReplicationRequest {
    let direction: Replication.Direction
    let databaseName: String
    let remote: RemoteURL
    let options: ReplicationOptions
    /// Whether to create the database here if it does not exist.
    let createsDatabase: Bool

    /// Members that say how fast something is done, and not what: they are not looked at.
    private static let tuning: Set = [
        "checkpoint_interval", "connection_timeout", "http_connections", "retries_per_request", "socket_options",
        "use_bulk_get", "use_checkpoints", "user_ctx", "worker_batch_size", "worker_processes",
    ]
    private static let known: Set = [
        "cancel", "continuous", "create_target", "doc_ids", "filter", "query_params", "source", "target",
    ]

    /// - Parameters:
    ///   - host: what the request calls this server. A URL that leads there means a database here.
    ///   - base: what the server says of replications.
    /// - Throws: ``SyncError`` 400 for what can't be asked for.
    init(_ json: JSONObject, to host: String?, _ base: ReplicationOptions) throws {
        for (name, _) in json where !Self.known.contains(name) && !Self.tuning.contains(name) {
            throw SyncError(400, "a member of the request that is not known here")
        }
        let source = try ReplicationEnd(json["source"], "source", host)
        let target = try ReplicationEnd(json["target"], "target", host)
        var options = base
        let there: ReplicationEnd.Elsewhere
        switch (source, target) {
        case (.here(let name), .elsewhere(let end)): (direction, databaseName, there) = (.push, name, end)
        case (.elsewhere(let end), .here(let name)): (direction, databaseName, there) = (.pull, name, end)
        default: throw SyncError(400, "one of source and target is a database of this server, the other is elsewhere")
        }
        remote = there.url
        options.credentials = there.credentials
        options.headers.merge(there.headers) { $1 }
        options.isContinuous = try json.flag("continuous")
        let createsTarget = try json.flag("create_target")
        options.createsTarget = createsTarget && direction == .push
        createsDatabase = createsTarget && direction == .pull
        options.filter = try json.value("filter", \.stringValue)
        options.filterParameters = try json.value("query_params", \.objectValue) ?? [:]
        options.documentIDs = try json.value("doc_ids", \.arrayValue)?.map { id throws(SyncError) in
            guard let id = id.stringValue else { throw SyncError(400, "doc_ids are strings") }
            return id
        }
        try RequestLimits.check(options.documentIDs?.count ?? 0, "ids")
        self.options = options
    }
}

/// One end of a replication.
private enum ReplicationEnd {
    struct Elsewhere {
        let url: RemoteURL
        var headers: [String: String] = [:]
        var credentials: ReplicationOptions.Credentials?
    }

    case here(String)
    case elsewhere(Elsewhere)

    /// - Parameter json: a name, a URL, or an object with `url`, `headers` and `auth`.
    init(_ json: JSONValue?, _ name: String, _ host: String?) throws {
        let text = json?.stringValue ?? json?["url"]?.stringValue
        guard let text, !text.isEmpty else { throw SyncError(400, "\(name) is not a database") }
        guard text.contains("://") else {
            self = .here(text)
            return
        }
        guard let url = URL(string: text) else { throw SyncError(400, "\(name) is not a URL") }
        let remote = try RemoteURL(url)
        if let host, ["http://\(host)", "https://\(host)"].contains(where: { HTTPFields.isSame($0, remote.origin) }) {
            guard let path = RequestTarget(remote.path)?.path, path.count == 1 else {
                throw SyncError(404, "no such database")
            }
            self = .here(path[0])
            return
        }
        var end = Elsewhere(url: remote)
        for (field, value) in try json?.objectValue?.value("headers", \.objectValue) ?? [:] {
            guard let value = value.stringValue else { throw SyncError(400, "headers are strings") }
            end.headers[field] = value
        }
        if let basic = json?["auth"]?["basic"] {
            guard let user = basic["username"]?.stringValue, let password = basic["password"]?.stringValue else {
                throw SyncError(400, "auth.basic has a username and a password")
            }
            end.credentials = .basic(name: user, password: password)
        }
        self = .elsewhere(end)
    }
}

extension JSONObject {
    /// A member that is false where it is left out.
    fileprivate func flag(_ name: String) throws(SyncError) -> Bool { try value(name, \.boolValue) ?? false }

    /// A member of one kind; nil if it is left out, or null.
    fileprivate func value<Value>(
        _ name: String, _ kind: KeyPath<JSONValue, Value?>
    ) throws(SyncError) -> Value? {
        guard let value = self[name], value != .null else { return nil }
        guard let found = value[keyPath: kind] else { throw SyncError(400, "\(name) is of another kind") }
        return found
    }
}
