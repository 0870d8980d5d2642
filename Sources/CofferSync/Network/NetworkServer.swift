#if Sync
internal import CofferSealing
internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
internal import Synchronization

/// Listens for connections and has their requests answered, those of one connection one after another.
final class NetworkServer: Sendable {
    typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

    struct Limits: Sendable {
        var connectionCount: Int
        var idleTimeout: Duration
    }

    /// The port that is listened at.
    let port: Int

    private let listening: NIOAsyncChannel<Connection, Never>
    private let limits: Limits
    private let threads = RequestThreads()
    private let respond: @Sendable (HTTPRequest) async -> HTTPResponse
    private let state = Lock(State())
    private let task = Lock<Task<Void, Never>?>(nil)

    private struct State {
        /// Connections that are served, and those that learn that they are too many.
        var connectionCount = 0
        var refusedCount = 0
        var isStopping = false
        /// Connections on which no request is being answered.
        var idle: [ObjectIdentifier: any Channel] = [:]
    }

    /// - Parameter identity: with what connections are encrypted; nil if they aren't.
    /// - Throws: ``SyncError`` 400 for an invalid identity, 503 where the address can't be listened at.
    init(
        host: String, port: Int, tls identity: ListenerOptions.TLS? = nil, limits: Limits,
        respond: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) async throws {
        let tls = try identity.map { (identity) throws(SyncError) in try TLSConfiguration.server(identity) }
        self.limits = limits
        self.respond = respond
        do {
            listening = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .bind(host: host, port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(IdleStateHandler(allTimeout: TimeAmount(limits.idleTimeout)))
                        if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
                        let progress = ChunkLimit.Progress()
                        try pipeline.addHandler(ChunkLimit.bytes(progress))
                        try pipeline.configureHTTPServerPipeline(withErrorHandling: true)
                        try pipeline.addHandler(ChunkLimit.parts(progress))
                        try pipeline.addHandler(ClosesWhenIdle())
                        return try Connection(wrappingChannelSynchronously: channel)
                    }
                }
        } catch {
            throw SyncError(503, "\(host):\(port) can't be listened at")
        }
        self.port = listening.channel.localAddress?.port ?? port
    }

    /// Begins to take connections.
    func start() {
        let task = Task { await run() }
        self.task.withLock { $0 = task }
    }

    /// Takes no connections any more, waits for requests under way, and ends those that take longer than `grace`.
    func stop(grace: Duration) async {
        let idle = state.withLock { state in
            state.isStopping = true
            return Array(state.idle.values)
        }
        try? await listening.channel.close()
        for channel in idle { channel.close(promise: nil) }
        guard let task = task.withLock({ $0 }) else { return }
        let killer = Task {
            try await Task.sleep(for: grace)
            task.cancel()
        }
        await task.value
        killer.cancel()
    }

    private func run() async {
        await withDiscardingTaskGroup { group in
            _ = try? await listening.executeThenClose { connections in
                for try await connection in connections {
                    let place = takePlace()
                    group.addTask {
                        // A feed that waits hears only so that nobody listens any more.
                        let serving = Task(executorPreference: self.threads) { await self.serve(connection, place) }
                        connection.channel.closeFuture.whenComplete { _ in serving.cancel() }
                        await withTaskCancellationHandler {
                            await serving.value
                        } onCancel: {
                            serving.cancel()
                        }
                        self.leave(place)
                    }
                }
            }
        }
    }

    // MARK: Places

    /// What becomes of a connection.
    private enum Place {
        case served
        /// The connection learns that it is one too many.
        case refused
        /// Nobody has time to tell it so.
        case dropped
    }

    private func takePlace() -> Place {
        state.withLock { state in
            if state.connectionCount < limits.connectionCount, !state.isStopping {
                state.connectionCount += 1
                return .served
            }
            guard state.refusedCount < limits.connectionCount else { return .dropped }
            state.refusedCount += 1
            return .refused
        }
    }

    private func leave(_ place: Place) {
        state.withLock { state in
            switch place {
            case .served: state.connectionCount -= 1
            case .refused: state.refusedCount -= 1
            case .dropped: break
            }
        }
    }

    // MARK: One connection

    /// So much of a body that nobody wants is read.
    private static let unwantedByteLimit = 1 << 20

    private func serve(_ connection: Connection, _ place: Place) async {
        let key = ObjectIdentifier(connection.channel)
        let address = connection.channel.remoteAddress?.ipAddress
        // A client that goes away in the middle doesn't concern us.
        try? await connection.executeThenClose { inbound, outbound in
            let requests = InboundParts(inbound)
            if case .dropped = place { return }
            defer { state.withLock { $0.idle[key] = nil } }
            while true {
                let mayGoOn = state.withLock { state in
                    state.idle[key] = connection.channel
                    return !state.isStopping
                }
                guard mayGoOn, let head = try await inTime(connection, { try await requests.nextHead() }) else {
                    return
                }
                state.withLock { $0.idle[key] = nil }
                if case .refused = place { return try await refuse(head, requests, connection, outbound) }
                guard try await answer(head, address, requests, connection, outbound) else { return }
            }
        }
    }

    /// Says that the connection is one too many. What is said before a request has come would be taken for no answer, and
    /// who still sends when it is hung up on may not see one.
    private func refuse(
        _ head: HTTPRequestHead, _ requests: InboundParts, _ connection: Connection,
        _ outbound: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>
    ) async throws {
        let limit = head.headers.contains(name: "Expect") ? 0 : Self.unwantedByteLimit
        _ = try await inTime(connection) { try await requests.skip(upTo: limit) }
        _ = try await write(
            HTTPResponse(503, fields: ["Retry-After": "1"]), to: outbound, method: head.method.rawValue,
            keepsAlive: false)
    }

    /// Closes the connection unless `work` is done in the time in which one may be idle, however little comes and goes on it:
    /// for work that anybody can ask for.
    private func inTime<Value: Sendable>(
        _ connection: Connection, _ work: () async throws -> Value
    ) async throws -> Value {
        let channel = connection.channel
        let closing = channel.eventLoop.scheduleTask(in: TimeAmount(limits.idleTimeout)) {
            channel.close(promise: nil)
        }
        defer { closing.cancel() }
        return try await work()
    }

    /// Answers one request.
    ///
    /// - Returns: whether another may follow on the same connection.
    private func answer(
        _ head: HTTPRequestHead, _ address: String?, _ requests: InboundParts, _ connection: Connection,
        _ outbound: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>
    ) async throws -> Bool {
        var fields = HTTPFields()
        for (name, value) in head.headers { fields.add(name, value) }
        let expectsContinue = fields["Expect"]?.lowercased() == "100-continue"
        let hasAsked = Lock(false)
        let stream = ByteStream {
            let isFirst = hasAsked.withLock { asked in
                defer { asked = true }
                return !asked
            }
            if expectsContinue, isFirst {
                try await outbound.write(.head(HTTPResponseHead(version: .http1_1, status: .continue)))
            }
            return try await requests.nextBytes()
        }
        let length = fields["Content-Length"].flatMap(Int.init) ?? (fields["Transfer-Encoding"] == nil ? 0 : nil)
        var request = HTTPRequest(
            head.method.rawValue, head.uri, fields: fields,
            body: length == 0 ? .none : .stream(stream, length: length))
        request.address = address
        let response = await respond(request)
        // Its part of the memory is given back when all of the answer has been written.
        defer { withExtendedLifetime(response) {} }
        // A body that nobody wanted is read to its end if that is near, and else ends the connection.
        let limit = expectsContinue && !hasAsked.withLock({ $0 }) ? 0 : Self.unwantedByteLimit
        let wasRead = try await inTime(connection) { try await requests.skip(upTo: limit) }
        let keepsAlive = head.isKeepAlive && wasRead && !state.withLock { $0.isStopping }
        return try await write(response, to: outbound, method: head.method.rawValue, keepsAlive: keepsAlive)
    }

    /// - Returns: whether another request may follow on the same connection.
    private func write(
        _ response: HTTPResponse, to outbound: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>,
        method: String, keepsAlive: Bool
    ) async throws -> Bool {
        var head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: response.status))
        for (name, value) in response.fields.all { head.headers.add(name: name, value: value) }
        head.headers.replaceOrAdd(name: "Server", value: "Coffer")
        head.headers.replaceOrAdd(name: "Cache-Control", value: "must-revalidate")
        if let length = response.body.length, response.status != 304 {
            head.headers.replaceOrAdd(name: "Content-Length", value: String(length))
        }
        let hasBody = method != "HEAD" && response.status != 304
        // Where the length is not known, an end would be written behind the head, which no body follows.
        let hasEnd = hasBody || response.body.length != nil || response.status == 304
        let keepsAlive = keepsAlive && hasEnd
        if !keepsAlive { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        try await outbound.write(.head(head))
        if hasBody {
            let stream = response.body.stream
            // An error ends the connection before the body's end: the client sees that something is missing.
            while let piece = try await stream.next() {
                try Task.checkCancellation()
                try await outbound.write(.body(.byteBuffer(ByteBuffer(bytes: piece))))
            }
        }
        if hasEnd { try await outbound.write(.end(nil)) }
        return keepsAlive
    }
}

/// The threads that requests are answered on, so that long work takes none of those that all tasks of the process share.
///
/// There are so many at most: what more there is to do waits, in the order in which it came.
final class RequestThreads: TaskExecutor {
    private let threadLimit: Int
    private let queue = DispatchQueue(label: "coffer.requests", attributes: .concurrent)
    private let state = Lock(State())

    private struct State {
        var jobs: [UnownedJob] = []
        /// Where the next of them stands: taking them from the front would move all others.
        var next = 0
        var threadCount = 0

        mutating func take() -> UnownedJob? {
            if next >= 256, 2 * next >= jobs.count {
                jobs.removeFirst(next)
                next = 0
            }
            guard next < jobs.count else { return nil }
            defer { next += 1 }
            return jobs[next]
        }
    }

    /// - Parameter threadLimit: Default: eight, or as many as there are cores where those are more, since reading from a disk
    ///   keeps a thread waiting.
    init(threadLimit: Int = max(8, ProcessInfo.processInfo.activeProcessorCount)) { self.threadLimit = threadLimit }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let needsThread = state.withLock { state in
            state.jobs.append(job)
            guard state.threadCount < threadLimit else { return false }
            state.threadCount += 1
            return true
        }
        if needsThread { queue.async { self.runJobs() } }
    }

    private func runJobs() {
        let executor = unsafe asUnownedTaskExecutor()
        while true {
            let job = state.withLock { state in
                let job = state.take()
                if job == nil { state.threadCount -= 1 }
                return job
            }
            guard let job else { return }
            unsafe job.runSynchronously(on: executor)
        }
    }
}
#endif
