internal import Coffer
internal import CofferModel

extension HTTPResponse {
    static func json(_ status: Int, _ value: JSONValue, fields: HTTPFields = [:]) throws -> HTTPResponse {
        .json(status, try value.canonicalJSON() + [UInt8(ascii: "\n")], fields: fields)
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
