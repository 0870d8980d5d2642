internal import CofferSealing
internal import Foundation
internal import Synchronization
internal import Coffer

/// What a service does beside answering: compactions, and replications that it was asked for.
final class BackgroundTasks: Sendable {
    private struct State {
        /// By the databases' names.
        var compactions: [String: (task: Task<Void, Never>, start: Date)] = [:]
        /// By their ids.
        var replications: [String: ServerReplication] = [:]
        var isStopping = false
    }

    private let state = Lock(State())

    /// Begins a compaction, unless one is under way. What it can't do now, a later one does.
    func compact(_ database: Database) {
        state.withLock { state in
            guard state.compactions[database.name] == nil, !state.isStopping else { return }
            let task = Task {
                _ = try? await database.compact()
                self.state.withLock { $0.compactions[database.name] = nil }
            }
            state.compactions[database.name] = (task, Date())
        }
    }

    func isCompacting(_ database: Database) -> Bool { state.withLock { $0.compactions[database.name] != nil } }

    /// Begins a replication, unless the same one is under way.
    ///
    /// - Throws: ``SyncError`` 503 where the server stops.
    func begin(_ replication: ServerReplication) throws(SyncError) -> ServerReplication {
        try state.withLock { (state) throws(SyncError) in
            guard !state.isStopping else { throw SyncError(503, "the server stops") }
            if let running = state.replications[replication.id] { return running }
            state.replications[replication.id] = replication
            replication.start { [self] in
                self.state.withLock { $0.replications[replication.id] = nil }
            }
            return replication
        }
    }

    /// A replication that is under way.
    func replication(_ id: String) -> ServerReplication? { state.withLock { $0.replications[id] } }

    /// Ends all of it. What was done stays.
    func end() async {
        let (compactions, replications) = state.withLock { state in
            state.isStopping = true
            return (Array(state.compactions.values), Array(state.replications.values))
        }
        for compaction in compactions { compaction.task.cancel() }
        for replication in replications { await replication.stop() }
        for compaction in compactions { await compaction.task.value }
    }

    /// What is under way, as CouchDB's `_active_tasks` says it.
    var list: [JSONValue] {
        let (compactions, replications) = state.withLock { ($0.compactions, $0.replications) }
        let now = Date()
        var tasks: [JSONValue] = []
        for (name, compaction) in compactions.sorted(by: { $0.key < $1.key }) {
            tasks.append([
                "type": "database_compaction", "database": .string(name), "started_on": compaction.start.json,
                "updated_on": now.json,
            ])
        }
        for replication in replications.values.sorted(by: { $0.id < $1.id }) {
            tasks.append(.object(replication.description(at: now)))
        }
        return tasks
    }
}

extension Date {
    /// Seconds since 1970.
    fileprivate var json: JSONValue { .number(JSONNumber(Int64(timeIntervalSince1970))) }
}

/// A replication that a server was asked for.
final class ServerReplication: Sendable {
    let id: String
    let isContinuous: Bool
    private let replication: Replication
    private let start = Date()
    private let sessionID = UUID().uuidString
    private let task = Lock<Task<Void, Never>?>(nil)
    private let outcome = Lock<Result<ReplicationStatus, any Error>?>(nil)

    /// - Throws: as `checkpointID`.
    init(_ replication: Replication, isContinuous: Bool) throws {
        id = try Self.id(of: replication, isContinuous: isContinuous)
        self.replication = replication
        self.isContinuous = isContinuous
    }

    /// What CouchDB calls `_local_id`.
    static func id(of replication: Replication, isContinuous: Bool) throws -> String {
        try replication.checkpointID() + (isContinuous ? "+continuous" : "")
    }

    /// - Parameter end: called once it has ended, however that was.
    fileprivate func start(_ end: @escaping @Sendable () -> Void) {
        let begun = Task {
            let result: Result<ReplicationStatus, any Error>
            do {
                result = .success(try await replication.run())
            } catch {
                result = .failure(error)
            }
            end()
            outcome.withLock { $0 = result }
        }
        task.withLock { $0 = begun }
    }

    /// Stops it, and waits for its end.
    func stop() async {
        let begun = task.withLock { $0 }
        begun?.cancel()
        await begun?.value
    }

    /// How it ended; nil if it has not after that time.
    func outcome(within time: Duration) async throws -> Result<ReplicationStatus, any Error>? {
        let end = ContinuousClock.now + time
        while true {
            if let outcome = outcome.withLock({ $0 }) { return outcome }
            guard ContinuousClock.now < end else { return nil }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    fileprivate func description(at now: Date) -> JSONObject {
        let status = replication.status
        let here = JSONValue.string(replication.database.name)
        let there = JSONValue.string(replication.remoteURL)
        let isPull = replication.direction == .pull
        var task: JSONObject = [
            "type": "replication", "replication_id": .string(id), "source": isPull ? there : here,
            "target": isPull ? here : there, "continuous": .bool(isContinuous), "started_on": start.json,
            "updated_on": now.json, "changes_pending": .count(status.totalCount - status.completedCount),
            "info": .string("\(status.activity)"),
        ]
        status.addCounts(to: &task)
        return task
    }

    /// What one that has come to its end did, as CouchDB says it.
    func report(_ status: ReplicationStatus) -> JSONObject {
        var session: JSONObject = [
            "session_id": .string(sessionID), "start_time": .string(start.httpText),
            "end_time": .string(Date().httpText),
        ]
        status.addCounts(to: &session)
        var report: JSONObject = [
            "ok": true, "session_id": .string(sessionID), "replication_id_version": 4, "history": [.object(session)],
        ]
        if status.writtenCount == 0, status.failedCount == 0 { report["no_changes"] = true }
        return report
    }
}

extension JSONValue {
    fileprivate static func count(_ count: Int) -> JSONValue { .number(JSONNumber(Int64(max(0, count)))) }
}

extension ReplicationStatus {
    fileprivate func addCounts(to object: inout JSONObject) {
        object["docs_written"] = .count(writtenCount)
        object["doc_write_failures"] = .count(failedCount)
        object["docs_read"] = .count(writtenCount + failedCount)
        object["missing_found"] = .count(writtenCount + failedCount)
    }
}

extension Date {
    /// As HTTP writes it (RFC 9110 section 5.6.7).
    fileprivate var httpText: String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: self)
    }
}
