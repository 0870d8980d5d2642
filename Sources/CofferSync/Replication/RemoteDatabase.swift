package import CofferModel
internal import CofferSealing
package import Foundation
internal import Synchronization

/// A database on a server: requests that are made again where that may help, and answers that are checked.
package final class RemoteDatabase: Sendable {
    package let url: RemoteURL
    private let transport: any HTTPTransport
    let options: ReplicationOptions
    private let credentials: ReplicationOptions.Credentials?
    private let session = Lock<Session?>(nil)
    private let sleep: @Sendable (Duration) async throws -> Void

    /// What a server has given for a name and a password.
    private struct Session {
        var cookies: String
        /// When to ask for another one: to a server that it has expired for, one may be nobody in particular, without a word.
        var renewal: ContinuousClock.Instant
    }

    /// CouchDB's sessions last that long unless it says something else.
    private static let usualSessionLength = Duration.seconds(600)

    /// An answer that is read whole has at most that many bytes, and ``JSONLimits/valueCount`` values.
    package static let answerByteLimit = 64 << 20

    /// - Parameter sleep: waits between attempts.
    package init(
        _ url: RemoteURL, _ transport: any HTTPTransport, _ options: ReplicationOptions,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.url = url
        self.transport = transport
        self.options = options
        self.sleep = sleep
        credentials = options.credentials ?? url.credentials.map { .basic(name: $0.name, password: $0.password) }
    }

    package func close() async { await transport.close() }

    // MARK: Requests

    /// Makes a request, again where that may help, and gives its answer to `read`.
    ///
    /// - Parameters:
    ///   - target: behind the database's path, such as `/_changes?since=0`.
    ///   - subject: what an error happened to.
    ///   - request: makes the request again for each attempt: bodies that stream can be read once.
    ///   - read: is given an answer of 200 to 299. What it throws that may pass has the request made again.
    /// - Throws: ``SyncError`` with the server's status, and what `read` throws.
    package func ask<Value: Sendable>(
        _ method: String, _ target: String, subject: String? = nil, fields: HTTPFields = [:],
        body: @Sendable () throws -> HTTPBody = { .none },
        read: @Sendable (HTTPResponse) async throws -> Value
    ) async throws -> Value {
        var failureCount = 0
        while true {
            let error: SyncError
            var retryAfter: Duration?
            do {
                return try await read(
                    try await answer(method, target, subject: subject, fields: fields, body: body))
            } catch let refusal as Refusal {
                (error, retryAfter) = (refusal.error, refusal.retryAfter)
            } catch let failure as SyncError {
                error = failure
            } catch let failure as UnholdableJSON {
                // It is the same whenever it is asked for.
                throw SyncError(400, of: subject, failure.reason)
            }
            failureCount += 1
            guard error.mayPass, failureCount < options.retry.attemptCount else { throw error }
            try await pause(after: failureCount, retryAfter)
        }
    }

    /// Makes a request once; a second time where the session is over.
    ///
    /// - Returns: an answer of 200 to 299.
    /// - Throws: ``Refusal`` for any other answer; what the transport throws.
    func answer(
        _ method: String, _ target: String, subject: String?, fields: HTTPFields,
        body: @Sendable () throws -> HTTPBody = { .none }
    ) async throws -> HTTPResponse {
        var hasLoggedIn = false
        while true {
            let response = try await attempt(method, url.path + target, fields, try body())
            if (200..<300).contains(response.status) { return response }
            guard response.status == 401, case .session = credentials, !hasLoggedIn else {
                throw await Self.failure(response, subject)
            }
            hasLoggedIn = true
            session.withLock { $0 = nil }
        }
    }

    /// The same where the answer is JSON.
    package func askJSON(
        _ method: String, _ target: String, subject: String? = nil, _ question: JSONValue? = nil
    ) async throws -> JSONValue {
        let bytes = try question?.canonicalJSON()
        var fields: HTTPFields = ["Accept": "application/json"]
        if bytes != nil { fields["Content-Type"] = "application/json" }
        return try await ask(
            method, target, subject: subject, fields: fields, body: { bytes.map { .bytes($0) } ?? .none }
        ) {
            try await Self.json($0)
        }
    }

    /// - Throws: ``SyncError`` 502 for what is not JSON, 413 for what is too large; ``UnholdableJSON``.
    static func json(_ response: HTTPResponse) async throws -> JSONValue { try await sizedJSON(response).json }

    /// The same, and how many bytes it has.
    ///
    /// - Throws: the same, and ``TooLong`` for more bytes than a limit below the usual one.
    static func sizedJSON(
        _ response: HTTPResponse, upTo limit: Int = answerByteLimit
    ) async throws -> (json: JSONValue, byteCount: Int) {
        let body = try await collect(response.body.stream, upTo: limit, isLowered: limit < answerByteLimit)
        var valueCount = 0
        guard let json = try json(body, &valueCount) else { throw SyncError.garbage("an answer that is not JSON") }
        return (json, body.count)
    }

    /// An answer has more bytes than may come now, and is to be asked for again later.
    struct TooLong: Error {}

    /// - Throws: ``SyncError`` 413 for more than `limit` bytes; ``TooLong`` instead if the limit is below the usual one.
    static func collect(_ stream: ByteStream, upTo limit: Int, isLowered: Bool) async throws -> [UInt8] {
        do {
            return try await stream.collect(upTo: limit)
        } catch let error as SyncError where isLowered && error.status == 413 {
            throw TooLong()
        }
    }

    /// The value that a part of an answer says; nil for what is not JSON.
    ///
    /// - Parameter valueCount: how many values the answer has had so far.
    /// - Throws: ``SyncError`` 413 where it has too many; ``UnholdableJSON``.
    static func json(_ text: [UInt8], _ valueCount: inout Int) throws -> JSONValue? {
        let checked: CheckedJSON?
        do {
            checked = try CheckedJSON(received: text, valueLimit: JSONLimits.valueCount - valueCount)
        } catch is CofferError {
            return nil
        }
        guard let checked else { throw SyncError(413, "an answer with more than \(JSONLimits.valueCount) values") }
        valueCount += checked.valueCount
        return try? checked.value()
    }

    /// Waits as long as is usual after so many failures.
    func pause(after failureCount: Int, _ serverAsks: Duration?) async throws {
        try await sleep(
            options.retry.pause(after: failureCount, chance: Double.random(in: 0...1), serverAsks: serverAsks))
    }

    private func attempt(
        _ method: String, _ target: String, _ fields: HTTPFields, _ body: HTTPBody
    ) async throws -> HTTPResponse {
        var fields = fields
        fields["User-Agent"] = "Coffer"
        switch credentials {
        case .basic(let name, let password):
            fields["Authorization"] = "Basic " + Data("\(name):\(password)".utf8).base64EncodedString()
        case .session(let name, let password):
            fields["Cookie"] = try await cookies(name, password)
        case nil: break
        }
        // What an app sets stands, whatever it is.
        for (name, value) in options.headers { fields[name] = HTTPFields.safe(value) }
        return try await transport.send(HTTPRequest(method, target, fields: fields, body: body))
    }

    /// The cookies of a session, which is begun where there isn't one, or is about to end.
    private func cookies(_ name: String, _ password: String) async throws -> String {
        if let session = session.withLock({ $0 }), session.renewal > .now { return session.cookies }
        let form = "name=\(name.percentEncoded)&password=\(password.percentEncoded)"
        var fields: HTTPFields = ["Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"]
        for (name, value) in options.headers { fields[name] = HTTPFields.safe(value) }
        let response = try await transport.send(
            HTTPRequest("POST", url.beside("_session"), fields: fields, body: .bytes(Array(form.utf8))))
        let cookies = response.fields.values(of: "Set-Cookie")
        guard response.status == 200, !cookies.isEmpty else { throw await Self.failure(response, nil) }
        _ = try await response.body.stream.collect(upTo: 1 << 20)
        // What stands before the server may have one of its own among them.
        let session = Session(
            cookies: cookies.map { String($0.prefix { $0 != ";" }) }.joined(separator: "; "),
            renewal: .now + (cookies.compactMap(Self.age).min() ?? Self.usualSessionLength) * 0.8)
        self.session.withLock { $0 = session }
        return session.cookies
    }

    /// How long a cookie lasts; nil if it doesn't say (RFC 6265, section 5.2.2).
    private static func age(ofCookie field: String) -> Duration? {
        for attribute in field.split(separator: ";").dropFirst() {
            let parts = attribute.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, HTTPFields.isSame(parts[0].trimmed, "Max-Age") else { continue }
            return Int64(parts[1].trimmed).flatMap { $0 > 0 ? .seconds($0) : nil }
        }
        return nil
    }

    /// An answer that says no.
    struct Refusal: Error {
        let error: SyncError
        let retryAfter: Duration?
    }

    private static func failure(_ response: HTTPResponse, _ subject: String?) async -> Refusal {
        if response.status == 407 { return Refusal(error: .proxyRefusal, retryAfter: nil) }
        if (300..<400).contains(response.status) {
            return Refusal(
                error: .redirection(response.status, to: response.fields["Location"]), retryAfter: nil)
        }
        // The name of what went wrong, and not the reason, which can be anything.
        let body = try? await response.body.stream.collect(upTo: 1 << 16)
        let name = body.flatMap { try? JSONValue(json: $0) }?["error"]?.stringValue
        // What is neither a refusal nor an answer is not the protocol's.
        let status = response.status >= 400 ? response.status : 502
        return Refusal(
            error: SyncError(status, of: subject, name.map { String($0.prefix(100)) } ?? "the server refuses"),
            retryAfter: response.fields["Retry-After"].flatMap(Int64.init).map { .seconds(max(0, $0)) })
    }
}

/// The place of a database on a server, and who one is there.
package struct RemoteURL: Sendable {
    /// Scheme, host and port.
    package let origin: String
    /// The path of the database, percent-encoded, without a slash at its end.
    package let path: String
    /// What the URL itself says.
    package let credentials: (name: String, password: String)?

    /// - Throws: ``SyncError`` 400 for what is not such a place.
    package init(_ url: URL) throws(SyncError) {
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let scheme = parts.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = parts.percentEncodedHost, !host.isEmpty
        else { throw SyncError(400, "the URL is not an HTTP URL") }
        guard parts.query == nil, parts.fragment == nil else {
            throw SyncError(400, "the URL of a database has neither a query nor a fragment")
        }
        var path = parts.percentEncodedPath
        while path.hasSuffix("/") { path.removeLast() }
        guard path.count > 1, let name = path.split(separator: "/").last?.percentDecoded(), !name.hasPrefix("_") else {
            throw SyncError(400, "the URL names no database")
        }
        origin = "\(scheme)://\(host)" + (parts.port.map { ":\($0)" } ?? "")
        self.path = path
        credentials = parts.user.map { ($0, parts.password ?? "") }
    }

    /// Without credentials: what checkpoints are named by.
    package var text: String { origin + path }

    /// The path of what is beside the database, such as `_session`.
    package func beside(_ name: String) -> String {
        path.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/\(name)"
    }
}
