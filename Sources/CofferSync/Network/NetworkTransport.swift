#if Sync
internal import AsyncHTTPClient
internal import CofferSealing
internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL
internal import Synchronization

/// Takes requests to one server, over connections that are kept.
final class NetworkTransport: HTTPTransport {
    private let client: HTTPClient
    /// Scheme, host and port.
    private let origin: String
    /// Where connections go: the server, or the proxy where requests are for plain HTTP.
    private let target: String
    /// Goes with each request.
    private let ownFields: [(name: String, value: String)]
    private let isClosed = Atomic(false)

    /// - Parameters:
    ///   - origin: such as `https://example.com:6984`.
    ///   - connectTimeout: nobody there after that is a 504.
    ///   - idleTimeout: nothing from the server for that time is a 504.
    ///   - tls: whom to trust.
    ///   - proxy: the proxy that requests go through; nil for a direct connection.
    init(
        origin: String, connectTimeout: Duration, idleTimeout: Duration,
        tls: TLSConfiguration = .makeClientConfiguration(), proxy: ReplicationOptions.Proxy? = nil
    ) {
        self.origin = origin
        var configuration = HTTPClient.Configuration()
        // Credentials go to the server that they were given for, and to no other.
        configuration.redirectConfiguration = .disallow
        configuration.timeout.connect = TimeAmount(connectTimeout)
        configuration.timeout.read = TimeAmount(idleTimeout)
        configuration.timeout.write = TimeAmount(idleTimeout)
        // The caller decides how often to try, and learns at once that nobody answers.
        configuration.connectionPool.retryConnectionEstablishment = false
        // Packed contents have the digest of the packed bytes.
        configuration.decompression = .disabled
        configuration.httpVersion = .http1Only
        configuration.tlsConfiguration = tls
        if let proxy, origin.hasPrefix("http:") {
            target = "http://\(proxy.host.contains(":") ? "[\(proxy.host)]" : proxy.host):\(proxy.port)"
            configuration.http1_1ConnectionDebugInitializer = { PlainProxy.prepare($0, for: origin) }
            ownFields =
                [("Host", String(origin.dropFirst("http://".count)))]
                + (proxy.authorization.map { [("Proxy-Authorization", $0)] } ?? [])
        } else {
            target = origin
            configuration.proxy = proxy.map { proxy in
                let (name, password) = (proxy.user ?? "", proxy.password ?? "")
                let isKnown = proxy.authorization != nil
                return .server(
                    host: proxy.host, port: proxy.port,
                    authorization: isKnown ? .basic(username: name, password: password) : nil)
            }
            ownFields = []
        }
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// What makes transports to a server.
    ///
    /// - Throws: ``SyncError`` 400 for invalid certificates.
    static func maker(
        _ origin: String, _ options: ReplicationOptions
    ) throws(SyncError) -> @Sendable () -> any HTTPTransport {
        let tls = try TLSConfiguration.client(trusting: options.trustedCertificates)
        return {
            NetworkTransport(
                origin: origin, connectTimeout: options.connectTimeout, idleTimeout: options.idleTimeout, tls: tls,
                proxy: options.proxy)
        }
    }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        var message = HTTPClientRequest(url: target + request.target)
        message.method = HTTPMethod(rawValue: request.method)
        for (name, value) in request.fields.all { message.headers.add(name: name, value: value) }
        for (name, value) in ownFields { message.headers.replaceOrAdd(name: name, value: value) }
        switch request.body {
        case .none: break
        case .bytes(let bytes): message.body = .bytes(ByteBuffer(bytes: bytes))
        case .stream(let stream, let length):
            message.body = .stream(
                OutgoingBytes(stream: stream), length: length.map { .known(Int64($0)) } ?? .unknown)
        }
        do {
            let response = try await client.execute(message, deadline: .distantFuture)
            var fields = HTTPFields()
            for (name, value) in response.headers { fields.add(name, value) }
            let body = IncomingBytes(response.body)
            let length = fields["Content-Length"].flatMap(Int.init)
            return HTTPResponse(
                Int(response.status.code), fields: fields,
                body: .stream(ByteStream { try await body.next() }, length: length))
        } catch {
            throw Self.meaning(of: error)
        }
    }

    func close() async {
        guard !isClosed.exchange(true, ordering: .relaxed) else { return }
        try? await client.shutdown()
    }

    deinit {
        // One that nobody closed is closed here; the client would end the process.
        if !isClosed.load(ordering: .relaxed) { client.shutdown { _ in } }
    }

    /// What an error of the connection means to those above.
    fileprivate static func meaning(of error: any Error) -> any Error {
        if error is CancellationError || error is SyncError || error is CofferError { return error }
        if let error = SyncError(tls: error) { return error }
        guard let error = error as? HTTPClientError else { return SyncError(503, "the server can't be reached") }
        switch error {
        case .cancelled: return CancellationError()
        case .connectTimeout, .readTimeout, .writeTimeout, .getConnectionFromPoolTimeout, .deadlineExceeded,
            .tlsHandshakeTimeout:
            return SyncError(504, "the server does not answer")
        case .proxyAuthenticationRequired: return SyncError.proxyRefusal
        case .invalidProxyResponse, .httpProxyHandshakeTimeout:
            return SyncError(502, "the proxy leads to no server")
        default: return SyncError(503, "the connection broke")
        }
    }

    private struct OutgoingBytes: AsyncSequence, Sendable {
        let stream: ByteStream

        struct Iterator: AsyncIteratorProtocol {
            let stream: ByteStream
            mutating func next() async throws -> ByteBuffer? { try await stream.next().map { ByteBuffer(bytes: $0) } }
        }

        func makeAsyncIterator() -> Iterator { Iterator(stream: stream) }
    }

    /// The body of an answer, taken by one task at a time.
    private actor IncomingBytes {
        private var iterator: HTTPClientResponse.Body.AsyncIterator

        init(_ body: HTTPClientResponse.Body) { iterator = body.makeAsyncIterator() }

        func next() async throws -> [UInt8]? {
            do {
                var taken = iterator
                defer { iterator = taken }
                return try await taken.next(isolation: self).map { Array(buffer: $0) }
            } catch {
                throw NetworkTransport.meaning(of: error)
            }
        }
    }
}

extension ReplicationOptions.Proxy {
    /// What the proxy is notified of who one is; nil for nothing.
    fileprivate var authorization: String? {
        user.map { "Basic " + Data("\($0):\(password ?? "")".utf8).base64EncodedString() }
    }
}

extension TimeAmount {
    init(_ duration: Duration) { self = .nanoseconds(Int64(clamping: Int128(duration / .nanoseconds(1)))) }
}

/// Has requests over a connection to a proxy name the server that they are for, as a proxy of plain HTTP is asked (RFC 9112,
/// section 3.2.2). The client's own way is a tunnel (CONNECT), which many proxies refuse to any port but that of https.
enum PlainProxy {
    /// - Parameter origin: of the server, such as `http://example.com:5984`.
    static func prepare(_ channel: any Channel, for origin: String) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            let encoder = try pipeline.handler(type: HTTPRequestEncoder.self)
            try pipeline.addHandler(AbsoluteTargets(origin: origin), position: .after(encoder))
        }
    }

    private final class AbsoluteTargets: ChannelOutboundHandler {
        typealias OutboundIn = HTTPClientRequestPart
        typealias OutboundOut = HTTPClientRequestPart

        private let origin: String

        init(origin: String) { self.origin = origin }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            guard case .head(var head) = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
            head.uri = origin + head.uri
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        }
    }
}
#endif
