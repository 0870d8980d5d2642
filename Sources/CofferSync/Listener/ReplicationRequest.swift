internal import Coffer
internal import CofferModel
internal import Foundation

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
