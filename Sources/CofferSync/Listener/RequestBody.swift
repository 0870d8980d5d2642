internal import CofferModel

/// What requests may hold, beside the bytes that ``ListenerOptions/documentByteLimit`` allows them.
enum RequestLimits {
    /// So many documents, keys or revisions are asked for or sent in one request: what is said of each takes a hundred bytes or
    /// more, and all are saved in one transaction, during which nobody else writes.
    static let itemCount = 100_000

    /// - Throws: ``SyncError`` 413 for more than ``itemCount``.
    static func check(_ count: Int, _ what: String) throws(SyncError) {
        guard count <= itemCount else { throw SyncError(413, "more than \(itemCount) \(what)") }
    }
}

extension HTTPRequest {
    /// - Throws: ``SyncError`` 405 for another method.
    func expect(_ methods: String...) throws(SyncError) {
        guard methods.contains(method) else { throw SyncError(405, "only \(methods.joined(separator: ", "))") }
    }

    /// The body as JSON.
    ///
    /// - Parameter value: what one without bytes says. Default: nothing, which is no JSON.
    /// - Throws: ``SyncError`` 413 for one that is too large, 503 where other requests take all memory; `invalidJSON` (400).
    func json(upTo limit: Int, default value: JSONValue? = nil) async throws -> JSONValue {
        try await json(of: try unpackedBody(), upTo: limit, default: value)
    }

    /// The bytes of a stream as JSON.
    ///
    /// Its memory is taken from the listener's budget before there is anything in it: the bytes as they come, and the values once
    /// it is known how many there are. It stays taken until the request has been answered.
    ///
    /// - Throws: as for the body.
    func json(of stream: ByteStream, upTo limit: Int, default value: JSONValue? = nil) async throws -> JSONValue {
        var bytes: [UInt8] = []
        while let piece = try await stream.next() {
            guard bytes.count + piece.count <= limit else { throw SyncError(413, "more than \(limit) bytes") }
            // As bytes grow they are moved, and are there twice meanwhile.
            try await memory?.grow(to: 2 * (bytes.count + piece.count))
            if bytes.isEmpty { bytes = piece } else { bytes += piece }
        }
        if bytes.isEmpty, let value { return value }
        return try await self.value(of: bytes)
    }

    private func value(of bytes: consuming [UInt8]) async throws -> JSONValue {
        let byteCount = bytes.count
        try Task.checkCancellation()
        guard let text = try CheckedJSON(bytes, valueLimit: JSONLimits.valueCount) else {
            throw SyncError(413, "more than \(JSONLimits.valueCount) values")
        }
        // The text, the same in another form, which it is saved in later, and the values with their strings.
        try await memory?.grow(to: 3 * byteCount + text.valueCount * JSONLimits.valueByteCost)
        try Task.checkCancellation()
        return try text.value()
    }

    /// The body, unpacked where it is packed.
    ///
    /// - Throws: ``SyncError`` 415 for packed in a way that is not known.
    func unpackedBody() throws(SyncError) -> ByteStream {
        switch fields["Content-Encoding"]?.lowercased() {
        case nil, "identity": body.stream
        case "gzip": body.stream.gunzipped()
        default: throw SyncError(415, "a Content-Encoding that is not known")
        }
    }
}
