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
    /// - Parameter value: what one without bytes says. Default: nothing, which is not JSON.
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
        let bytes = try await bytes(of: stream, upTo: limit)
        if bytes.isEmpty, let value { return value }
        return try await self.value(of: bytes)
    }

    private func bytes(of stream: ByteStream, upTo limit: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let piece = try await stream.next() {
            guard bytes.count + piece.count <= limit else { throw SyncError(413, "more than \(limit) bytes") }
            // As bytes grow they are moved, and are there twice meanwhile.
            try await memory?.grow(to: 2 * (bytes.count + piece.count))
            if bytes.isEmpty { bytes = piece } else { bytes += piece }
        }
        return bytes
    }

    private func value(of bytes: consuming [UInt8]) async throws -> JSONValue {
        let byteCount = bytes.count
        try Task.checkCancellation()
        guard let text = try CheckedJSON(received: bytes, valueLimit: JSONLimits.valueCount) else { throw Self.tooMany }
        // The text, the same in another form, which it is saved in later, and the values with their strings.
        try await memory?.grow(to: 3 * byteCount + text.valueCount * JSONLimits.valueByteCost)
        try Task.checkCancellation()
        return try text.value()
    }

    private static let tooMany = SyncError(413, "more than \(JSONLimits.valueCount) values")

    /// A body that lists documents under `docs`. Where one can't be held, it says so in its place, and the others stand beside
    /// it.
    ///
    /// - Throws: as for ``json(upTo:default:)``; ``SyncError`` 400 where there is no such list.
    func documents(upTo limit: Int) async throws -> (all: [Result<JSONValue, UnholdableJSON>], areReplicated: Bool) {
        let bytes = try await bytes(of: try unpackedBody(), upTo: limit)
        do {
            let json = try await value(of: bytes)
            guard let documents = json["docs"]?.arrayValue else { throw SyncError(400, "there are no docs") }
            return (documents.map { .success($0) }, json["new_edits"] == false)
        } catch let error as UnholdableJSON {
            guard let list = try error.outline["docs"]?.elements(upTo: RequestLimits.itemCount) else {
                throw SyncError(400, "there are no docs")
            }
            let isReplicated = error.outline["new_edits"]?.bytes == Array("false".utf8)
            return (try await values(of: list, byteCount: bytes.count), isReplicated)
        }
    }

    /// A body that is an object whose members have any names, one of them perhaps more than once.
    ///
    /// - Throws: as for ``json(upTo:default:)``; ``SyncError`` 400 if it is not an object.
    func members(upTo limit: Int) async throws -> [(name: String, value: JSONValue)] {
        let bytes = try await bytes(of: try unpackedBody(), upTo: limit)
        do {
            guard let object = try await value(of: bytes).objectValue else {
                throw SyncError(400, "Request body must be a JSON object")
            }
            return object.map { ($0, $1) }
        } catch let error as UnholdableJSON {
            guard let members = try error.outline.members(upTo: RequestLimits.itemCount) else { throw error }
            let values = try await values(of: members.map(\.value), byteCount: bytes.count)
            return try zip(members, values).map { ($0.name, try $1.get()) }
        }
    }

    private func values(
        of list: [JSONOutline], byteCount: Int
    ) async throws -> [Result<JSONValue, UnholdableJSON>] {
        var valueCount = 0
        var checked: [Result<CheckedJSON, UnholdableJSON>] = []
        for element in list {
            try Task.checkCancellation()
            do {
                let limit = JSONLimits.valueCount - valueCount
                guard let text = try CheckedJSON(received: element.bytes, valueLimit: limit) else { throw Self.tooMany }
                valueCount += text.valueCount
                checked.append(.success(text))
            } catch let error as UnholdableJSON {
                checked.append(.failure(error))
            }
        }
        try await memory?.grow(to: 4 * byteCount + valueCount * JSONLimits.valueByteCost)
        return try checked.map { element in
            switch element {
            case .success(let text): .success(try text.value())
            case .failure(let error): .failure(error)
            }
        }
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
