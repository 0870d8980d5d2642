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
