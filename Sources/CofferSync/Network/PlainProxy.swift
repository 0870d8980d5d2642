#if Sync
internal import NIOCore
internal import NIOHTTP1

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
