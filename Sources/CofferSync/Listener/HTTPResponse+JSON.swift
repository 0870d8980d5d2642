internal import Coffer
internal import CofferModel

extension HTTPResponse {
    static func json(_ status: Int, _ value: JSONValue, fields: HTTPFields = [:]) throws -> HTTPResponse {
        .json(status, try value.messageJSON() + [UInt8(ascii: "\n")], fields: fields)
    }

    static func json(_ status: Int, _ text: [UInt8], fields: HTTPFields = [:]) -> HTTPResponse {
        var fields = fields
        fields["Content-Type"] = "application/json"
        return HTTPResponse(status, fields: fields, body: .bytes(text))
    }

    /// What went wrong, in CouchDB's words.
    static func failure(_ error: any Error) -> HTTPResponse {
        let (status, name, reason) = ServerFailure.parts(of: error)
        let body: JSONValue = ["error": .string(name), "reason": .string(reason)]
        var fields: HTTPFields = [:]
        if status == 401 { fields["WWW-Authenticate"] = "Basic realm=\"coffer\"" }
        if status == 503 { fields["Retry-After"] = "1" }
        if let error = error as? TooManyAttempts {
            fields["Retry-After"] = String(Int((error.pause / .seconds(1)).rounded(.up)))
        }
        return (try? .json(status, body, fields: fields)) ?? HTTPResponse(status)
    }

    static func json(_ status: Int, stream: ByteStream) -> HTTPResponse {
        HTTPResponse(status, fields: ["Content-Type": "application/json"], body: .stream(stream, length: nil))
    }
}

/// A refusal that CouchDB has a name of its own for, which clients go by: a 412 can be about a database or about a content.
struct NamedRefusal: Error {
    let status: Int
    let name: String
    let reason: String

    static let databaseExists = NamedRefusal(status: 412, name: "file_exists", reason: "the database exists")

    /// An attachment whose content neither came with its revision nor is here. CouchDB's replicator sends it once more then,
    /// with the contents.
    static func missingStub(_ name: String, of subject: String) -> NamedRefusal {
        NamedRefusal(
            status: 412, name: "missing_stub", reason: "the content of attachment \(name) of \(subject) is not here")
    }
}

extension NamedRefusal {
    /// Another database's revision that none here can be. CouchDB's replicator skips what is forbidden, and ends, to begin
    /// again later, where it is refused in any other way.
    static func unholdable(_ reason: String) -> NamedRefusal {
        NamedRefusal(status: 403, name: "forbidden", reason: reason)
    }
}

/// Errors in CouchDB's words.
enum ServerFailure {
    static func parts(of error: any Error) -> (status: Int, name: String, reason: String) {
        switch error {
        case let error as NamedRefusal: return (error.status, error.name, error.reason)
        case let error as UnholdableJSON: return (400, name(of: 400), error.reason)
        case let error as SyncError:
            // What a client sent wrongly is its fault, and not a gateway's.
            let status = error.status == 502 ? 400 : error.status
            return (status, name(of: status), error.detail)
        case let error as CofferError:
            return (status(of: error), name(of: error), reason(of: error))
        case let error as ReplicationFailure:
            return (error.status, name(of: error.status), error.reason)
        case is TooManyAttempts:
            return (429, name(of: 429), "too many wrong passwords")
        case is CancellationError:
            return (503, name(of: 503), "the server stops")
        default:
            return (500, name(of: 500), "an error of the server")
        }
    }

    private static func status(of error: CofferError) -> Int {
        switch error.code {
        // The server's own key, and not the client's password.
        case .wrongKey, .keyRequired, .notEncrypted: 500
        case .cancelled: 503
        default: error.status
        }
    }

    private static func name(of error: CofferError) -> String {
        switch error.code {
        case .databaseExists: NamedRefusal.databaseExists.name
        case .databaseOpen: "database_open"
        case .invalidDocumentID: "illegal_docid"
        default: name(of: status(of: error))
        }
    }

    private static func reason(of error: CofferError) -> String {
        switch error.code {
        case .wrongKey: "the server's key does not open this database"
        default: error.detail ?? error.code.description
        }
    }

    private static func name(of status: Int) -> String {
        switch status {
        case 412: "precondition_failed"
        case 413: "too_large"
        case 408: "timeout"
        case 416: "requested_range_not_satisfiable"
        case 429: "too_many_requests"
        case 503: "service_unavailable"
        case 507: "insufficient_storage"
        default: BulkFailure.statuses.first { $0.status == status }?.name ?? "internal_server_error"
        }
    }
}

/// Writes JSON that is a list of rows, as they are read: nothing needs them all in memory.
struct RowWriter {
    let head: [UInt8]
    let tail: [UInt8]

    /// - Parameter next: the next row; nil after the last one.
    func stream(_ next: sending @escaping () throws -> JSONValue?) -> ByteStream {
        streamTexts { try next()?.messageJSON() }
    }

    /// - Parameter next: the next row as text; nil after the last one.
    func streamTexts(_ next: sending @escaping () throws -> [UInt8]?) -> ByteStream {
        var isFirst = true
        return streamPieces {
            guard let row = try next() else { return nil }
            defer { isFirst = false }
            return isFirst ? row : [UInt8(ascii: ","), UInt8(ascii: "\n")] + row
        }
    }

    /// - Parameter next: the next piece of the text between head and tail; nil after the last one.
    func streamPieces(_ next: sending @escaping () throws -> [UInt8]?) -> ByteStream {
        let source = PieceSource(head: head, tail: tail, next)
        return ByteStream { try await source.next() }
    }
}

private actor PieceSource {
    /// What is small is gathered into pieces of about that many bytes.
    private static let pieceByteCount = 64 << 10

    private let nextPiece: () throws -> [UInt8]?
    private var head: [UInt8]
    private let tail: [UInt8]
    private var isOver = false

    init(head: [UInt8], tail: [UInt8], _ next: sending @escaping () throws -> [UInt8]?) {
        self.head = head
        self.tail = tail
        nextPiece = next
    }

    func next() throws -> [UInt8]? {
        guard !isOver else { return nil }
        var gathered = head
        head = []
        while gathered.count < Self.pieceByteCount {
            try Task.checkCancellation()
            guard let piece = try nextPiece() else {
                isOver = true
                return gathered + tail
            }
            gathered += piece
        }
        return gathered
    }
}
