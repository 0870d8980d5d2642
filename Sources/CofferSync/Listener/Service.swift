internal import CofferModel
internal import CofferSealing
internal import Foundation
internal import Synchronization
package import Coffer

/// Answers requests for the databases of a manager, in the protocol of CouchDB. Knows no network.
package final class Service: Sendable {
    let manager: Manager
    let options: ListenerOptions
    let sessions = Sessions()
    let attempts = Lock(PasswordAttempts())
    package let memory: MemoryBudget
    let now: @Sendable () -> ContinuousClock.Instant
    let tasks = BackgroundTasks()
    /// Nil where nothing leads out of here.
    let makeTransport: TransportMaker?
    let sums = Lock<[String: DatabaseSums]>([:])
    private let state = Lock(State())

    private struct State {
        /// Those that were asked for, open until the service stops.
        var databases: [String: Database] = [:]
        var isStopping = false
    }

    /// - Parameters:
    ///   - makeTransport: leads to the servers that `_replicate` names. Default: nil, nothing does.
    ///   - now: what time it is, for passwords.
    package init(
        _ manager: Manager, _ options: ListenerOptions, makeTransport: TransportMaker? = nil,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.manager = manager
        self.now = now
        self.makeTransport = makeTransport
        self.options = options
        memory = MemoryBudget(byteLimit: options.memoryByteLimit)
    }

    /// Feeds end from here on, and requests that come later are a 503. Databases stay open for those under way.
    package func stop() {
        state.withLock { $0.isStopping = true }
        sessions.endAll()
    }

    /// Ends compactions and replications under way. What they have done stays.
    package func endTasks() async { await tasks.end() }

    // A database is let go of outside the lock: it may close here, which takes time, and what it held may end with it.

    /// Lets go of databases, which close unless somebody else holds them.
    package func releaseDatabases() {
        _ = state.withLock { state in
            defer { state.databases = [:] }
            return state.databases
        }
    }

    private func keep(_ database: Database, as name: String) {
        _ = state.withLock { $0.databases.updateValue(database, forKey: name) }
    }

    var isStopping: Bool { state.withLock { $0.isStopping } }

    // MARK: Requests

    /// Answers a request. Never fails: what goes wrong is an answer. What the request takes of the memory is given back when
    /// nobody holds the answer any more.
    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        var request = request
        request.memory = memory.part()
        let start = ContinuousClock.now
        var response = await answer(request)
        response.memory = request.memory
        log(request, response, after: .now - start)
        return response
    }

    /// Tells of a request, and not for what: a path holds ids.
    private func log(_ request: HTTPRequest, _ response: HTTPResponse, after duration: Duration) {
        let level: LogMessage.Level =
            switch response.status {
            case 401, 403, 429: .notice
            case 500...599: .warning
            default: .debug
            }
        CofferLog.write(
            level, .sync, "listener", "answered a request",
            [
                "method": LogMessage.methods.contains(request.method) ? request.method : "other",
                "status": String(response.status), "milliseconds": duration.inMilliseconds,
            ])
    }

    private func answer(_ request: HTTPRequest) async -> HTTPResponse {
        do {
            guard !isStopping else { throw SyncError(503, "the server stops") }
            try checkSender(request)
            guard let target = RequestTarget(request.target) else { throw SyncError(400, "the path is not encoded") }
            if target.path == ["_session"] { return try await session(request) }
            if target.path == ["_up"] { return try .json(200, ["status": "ok"]) }
            try user(request)
            if options.isReadOnly, !Self.isReading(request.method, target) {
                throw SyncError(403, "the server is read-only")
            }
            return try await route(request, target)
        } catch {
            return .failure(error)
        }
    }

    /// Refuses a request that names two hosts (RFC 9112 section 3.2), and what a page of the web sends behind its reader's
    /// back: to a name that leads here (Host), or from another origin (Origin, RFC 6454 section 7), with passwords that a
    /// browser remembers or none.
    ///
    /// - Throws: ``SyncError`` 400 and 403.
    private func checkSender(_ request: HTTPRequest) throws(SyncError) {
        guard request.fields.values(of: "Host").count <= 1 else { throw SyncError(400, "the request names two hosts") }
        let host = request.fields["Host"]
        if let origin = request.fields["Origin"] {
            guard let host, ["http://\(host)", "https://\(host)"].contains(where: { HTTPFields.isSame($0, origin) })
            else { throw SyncError(403, "pages of other origins are not served") }
        }
        guard case .unauthenticatedLoopback = options.access, let host else { return }
        let name = host.hasPrefix("[") ? host.dropFirst().prefix { $0 != "]" } : host.prefix { $0 != ":" }
        guard ListenerOptions.loopbackHosts.contains(where: { HTTPFields.isSame($0, name) }) else {
            throw SyncError(403, "without passwords only loopback is served, by no other name")
        }
    }

    private func route(_ request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        guard let name = target.path.first else {
            try request.expect("GET", "HEAD")
            return try .json(200, ["couchdb": "Welcome", "vendor": ["name": "Coffer"], "version": "3.5.0"])
        }
        switch name {
        case "_all_dbs": return try allDatabases(request, target)
        case "_dbs_info": return try await databasesInformation(request, target)
        case "_uuids": return try uuids(request, target)
        case "_active_tasks": return try activeTasks(request)
        case "_replicate": return try await replicate(request)
        case "_membership": return try membership(request)
        case "_scheduler": return try scheduler(request, target)
        default: break
        }
        if target.path.count == 1 {
            switch request.method {
            case "PUT": return try await create(name, request)
            case "DELETE": return try await delete(name)
            default: break
            }
        }
        return try await DatabaseService(self, try await open(name)).respond(to: request, target)
    }

    /// What a Location begins with: the server as the request calls it; nothing where it doesn't.
    func root(_ request: HTTPRequest) -> String {
        request.fields["Host"].map { "\(options.tls == nil ? "http" : "https")://\(HTTPFields.safe($0))" } ?? ""
    }

    /// Answers `_uuids`: ids that nothing has.
    private func uuids(_ request: HTTPRequest, _ target: RequestTarget) throws -> HTTPResponse {
        try request.expect("GET", "HEAD")
        guard let count = Int(target["count"] ?? "1"), count >= 0 else {
            throw SyncError(400, "count must be a positive integer")
        }
        guard count <= 1000 else { throw SyncError(400, "count parameter too large") }
        let ids = try (0..<count).map { _ in JSONValue.string(hexadecimal(try randomBytes(count: 16))) }
        return try .json(200, ["uuids": .array(ids)])
    }

    /// Whether the request changes nothing.
    private static func isReading(_ method: String, _ target: RequestTarget) -> Bool {
        if method == "GET" || method == "HEAD" { return true }
        guard method == "POST", target.path != ["_dbs_info"] else { return method == "POST" }
        guard target.path.count > 1 else { return false }
        if target.path.count > 3, target.path[1] == "_design", target.path[3] == "_view" { return true }
        let isListing = ["_all_docs", "_design_docs", "_local_docs"].contains(target.path[1])
        if target.path.count == 3 { return isListing && target.path[2] == "queries" }
        let others = [
            "_changes", "_bulk_get", "_revs_diff", "_missing_revs", "_ensure_full_commit", "_find", "_explain",
        ]
        return target.path.count == 2 && (isListing || others.contains(target.path[1]))
    }

    // MARK: Databases

    func open(_ name: String) async throws -> Database {
        if let database = state.withLock({ $0.databases[name] }) { return database }
        guard manager.databaseExists(named: name) else { throw SyncError(404, "no such database") }
        var openOptions = try await openOptions(name)
        openOptions.readOnly = options.isReadOnly
        let database: Database
        do {
            database = try await manager.openDatabase(named: name, options: openOptions)
        } catch let error as CofferError where error.code == .invalidDatabaseName || error.code == .notAStore {
            throw SyncError(404, "no such database")
        }
        keep(database, as: name)
        return database
    }

    private func openOptions(_ name: String) async throws -> DatabaseOptions {
        var openOptions = DatabaseOptions()
        do {
            openOptions.encryptionKey = try await options.encryptionKey(name)
        } catch let error where !(error is SyncError || error is CancellationError) {
            // What the app says of it may name what clients need not know.
            throw SyncError(503, "the key of this database can't be had")
        }
        openOptions.requiresEncryption = options.requiresEncryption
        return openOptions
    }

    func create(_ name: String, _ request: HTTPRequest? = nil) async throws -> HTTPResponse {
        guard !manager.databaseExists(named: name) else { throw NamedRefusal.databaseExists }
        var openOptions = try await openOptions(name)
        openOptions.create = true
        let database = try await manager.openDatabase(named: name, options: openOptions)
        keep(database, as: name)
        return try .json(201, ["ok": true], fields: ["Location": (request.map(root) ?? "") + "/\(name.percentEncoded)"])
    }

    private func delete(_ name: String) async throws -> HTTPResponse {
        let database = try await open(name)
        _ = state.withLock { $0.databases.removeValue(forKey: name) }
        _ = sums.withLock { $0.removeValue(forKey: name) }
        try await database.delete()
        return try .json(200, ["ok": true])
    }

    /// Forgets a database that somebody else has closed, so that the next request opens it again.
    func forget(_ database: Database) {
        _ = state.withLock { state in
            state.databases[database.name] === database ? state.databases.removeValue(forKey: database.name) : nil
        }
    }
}

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
