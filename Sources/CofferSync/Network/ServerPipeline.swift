#if Sync
internal import NIOCore
internal import NIOHTTP1

/// The requests of one connection, part by part, taken by one task at a time.
actor InboundParts {
    private var iterator: NIOAsyncChannelInboundStream<HTTPServerRequestPart>.AsyncIterator
    private var isInBody = false

    init(_ stream: NIOAsyncChannelInboundStream<HTTPServerRequestPart>) { iterator = stream.makeAsyncIterator() }

    private func next() async throws -> HTTPServerRequestPart? {
        var taken = iterator
        defer { iterator = taken }
        return try await taken.next(isolation: self)
    }

    /// The head of the next request; nil if the client has closed the connection.
    func nextHead() async throws -> HTTPRequestHead? {
        guard case .head(let head)? = try await next() else { return nil }
        isInBody = true
        return head
    }

    /// The next bytes of the request's body; nil after the last ones.
    func nextBytes() async throws -> [UInt8]? {
        guard isInBody else { return nil }
        switch try await next() {
        case .body(let bytes): return Array(buffer: bytes)
        case .end:
            isInBody = false
            return nil
        case .head, nil:
            throw SyncError(400, "the request ends before its end")
        }
    }

    /// Reads the rest of the request's body.
    ///
    /// - Returns: whether it came to its end within so many bytes.
    func skip(upTo limit: Int) async throws -> Bool {
        var count = 0
        while isInBody {
            guard count <= limit, limit > 0 else { return false }
            count += try await nextBytes()?.count ?? 0
        }
        return true
    }
}

/// Closes a connection on which nothing moves.
final class ClosesWhenIdle: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.fireChannelRead(data) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is IdleStateHandler.IdleStateEvent {
            context.close(promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }
}

/// Refuses a body in chunks (RFC 9112, section 7.1) whose framing is too long: a chunk's size with its extensions, or the fields
/// that follow the last chunk. The decoder would read such a line for ever and say nothing of it.
///
/// It stands in two places: before the decoder, where bytes come in, and behind it, where what they mean comes out. Bytes of
/// which nothing comes out are such framing.
enum ChunkLimit {
    /// More bytes than that, of which nothing comes out, are refused: 400, and the connection is closed. Since bytes are looked
    /// at in pieces as long as this, it shows after twice as many at the latest.
    static let byteCount = 16 << 10

    /// What both places know of the request under way. Used on the connection's event loop alone.
    final class Progress {
        /// Whether its body comes in chunks, and has not ended.
        var isInChunks = false
        /// So many bytes have come in since anything came out.
        var silentByteCount = 0
    }

    /// Puts both around the decoder of a pipeline.
    static func bytes(_ progress: Progress) -> some ChannelInboundHandler { Bytes(progress) }
    static func parts(_ progress: Progress) -> some ChannelInboundHandler { Parts(progress) }

    private final class Bytes: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias InboundOut = ByteBuffer

        private let progress: Progress

        init(_ progress: Progress) { self.progress = progress }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard progress.isInChunks else { return context.fireChannelRead(data) }
            var bytes = unwrapInboundIn(data)
            while let piece = bytes.readSlice(length: min(bytes.readableBytes, ChunkLimit.byteCount)),
                piece.readableBytes > 0
            {
                let before = progress.silentByteCount
                progress.silentByteCount = before + piece.readableBytes
                context.fireChannelRead(wrapInboundOut(piece))
                guard progress.isInChunks, progress.silentByteCount > ChunkLimit.byteCount else { continue }
                // As the decoder says it for an invalid line, so that it is answered in the same way.
                context.fireErrorCaught(HTTPParserError.invalidChunkSize)
                return context.close(promise: nil)
            }
        }
    }

    private final class Parts: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias InboundOut = HTTPServerRequestPart

        private let progress: Progress

        init(_ progress: Progress) { self.progress = progress }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            progress.silentByteCount = 0
            switch unwrapInboundIn(data) {
            case .head(let head): progress.isInChunks = head.headers.contains(name: "Transfer-Encoding")
            case .end: progress.isInChunks = false
            case .body: break
            }
            context.fireChannelRead(data)
        }
    }
}
#endif
