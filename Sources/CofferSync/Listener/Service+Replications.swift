internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Synchronization

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
