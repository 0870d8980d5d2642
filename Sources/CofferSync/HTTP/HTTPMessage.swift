internal import CofferSealing
internal import Synchronization
internal import CofferGzip

/// A request, as it is sent or was received.
package struct HTTPRequest: Sendable {
    package var method: String
    /// The path, percent-encoded, from the slash on, with the query.
    package var target: String
    package var fields: HTTPFields
    package var body: HTTPBody
    /// The address that a request came from; nil if there isn't one.
    package var address: String?
    /// What a listener has set aside of its memory for this request; nil for one that is sent.
    package var memory: MemoryPart?

    package init(_ method: String, _ target: String, fields: HTTPFields = [:], body: HTTPBody = .none) {
        self.method = method
        self.target = target
        self.fields = fields
        self.body = body
    }
}

/// The body of a message.
package enum HTTPBody: Sendable {
    case none
    case bytes([UInt8])
    /// With its length in bytes, where it is known.
    case stream(ByteStream, length: Int?)

    package var stream: ByteStream {
        switch self {
        case .none: .empty
        case .bytes(let bytes): ByteStream(bytes)
        case .stream(let stream, _): stream
        }
    }

    /// Nil where it is not known.
    package var length: Int? {
        switch self {
        case .none: 0
        case .bytes(let bytes): bytes.count
        case .stream(_, let length): length
        }
    }
}

/// An answer, as it is sent or was received.
package struct HTTPResponse: Sendable {
    package var status: Int
    package var fields: HTTPFields
    package var body: HTTPBody
    /// What is set aside of a listener's memory until the body has been read to its end.
    package var memory: MemoryPart?

    package init(_ status: Int, fields: HTTPFields = [:], body: HTTPBody = .none) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}

/// What takes requests to a server: the network, or in tests whatever goes wrong there.
package protocol HTTPTransport: Sendable {
    /// Sends a request; returns as soon as the head of the answer is here. Whoever doesn't read the answer's body to its end
    /// lets go of it.
    ///
    /// - Throws: ``SyncError`` 503 where nobody is there, 504 where nobody answers in time; `CancellationError`.
    func send(_ request: HTTPRequest) async throws -> HTTPResponse

    /// Lets go of connections. Requests that come later are a 503.
    func close() async
}

/// Bytes that come in pieces, from the network or from a store, to be taken once, by one task at a time.
package struct ByteStream: AsyncSequence, Sendable {
    package typealias Element = [UInt8]

    private let pull: @Sendable () async throws -> [UInt8]?

    /// - Parameter pull: the next piece; nil after the last one, and then always.
    package init(_ pull: @escaping @Sendable () async throws -> [UInt8]?) { self.pull = pull }

    /// Bytes that are all there.
    package init(_ bytes: [UInt8]) {
        let rest = Lock<[UInt8]?>(bytes.isEmpty ? nil : bytes)
        self.init { rest.withLock { $0.take() } }
    }

    package static let empty = ByteStream { nil }

    package func makeAsyncIterator() -> Iterator { Iterator(pull: pull) }

    /// The next piece; nil after the last one.
    package func next() async throws -> [UInt8]? { try await pull() }

    package struct Iterator: AsyncIteratorProtocol {
        fileprivate let pull: @Sendable () async throws -> [UInt8]?
        package mutating func next() async throws -> [UInt8]? { try await pull() }
    }

    /// All bytes.
    ///
    /// - Throws: 413 for more than `limit`.
    package func collect(upTo limit: Int) async throws -> [UInt8] {
        var all: [UInt8] = []
        while let piece = try await next() {
            guard all.count + piece.count <= limit else { throw SyncError(413, "more than \(limit) bytes") }
            if all.isEmpty { all = piece } else { all += piece }
        }
        return all
    }
}

extension GzipDecoder {
    /// The next decompressed bytes; nil if more compressed bytes are needed.
    ///
    /// - Throws: ``SyncError`` 502 if the input is not gzip.
    func nextPiece() throws(SyncError) -> [UInt8]? {
        do throws(NotGzip) {
            return try next()
        } catch {
            throw .garbage("a packed content that is not gzip")
        }
    }
}

extension ByteStream {
    /// The same bytes unpacked.
    ///
    /// - Throws: while it is read, ``SyncError`` 502 for what is not gzip, or ends before its end.
    package func gunzipped() -> ByteStream {
        let unpacker = Unpacker(self)
        return ByteStream { try await unpacker.next() }
    }

    private actor Unpacker {
        private let packed: ByteStream
        private let decoder = GzipDecoder()

        init(_ packed: ByteStream) { self.packed = packed }

        func next() async throws -> [UInt8]? {
            while true {
                if let piece = try unpacked() { return piece }
                guard let bytes = try await packed.next() else { return try end() }
                decoder.append(bytes)
            }
        }

        // Apart from what waits: inlined there, they crash the optimizer of Swift 6.3.

        @inline(never)
        private func unpacked() throws -> [UInt8]? { try decoder.nextPiece() }

        @inline(never)
        private func end() throws -> [UInt8]? {
            guard decoder.isOver else { throw SyncError.garbage("a packed content that ends before its end") }
            return nil
        }
    }
}
