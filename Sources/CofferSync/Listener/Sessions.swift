internal import CofferModel
internal import CofferSealing
internal import Foundation
internal import Synchronization

/// The users who logged in at `_session`, by the token that the cookie holds.
final class Sessions: Sendable {
    private struct Session {
        let name: String
        let end: ContinuousClock.Instant
    }

    private let tokens = Lock<[String: Session]>([:])

    static let lifetime: Duration = .seconds(600)
    private static let limit = 10_000

    /// A token that is good from now on.
    func begin(_ name: String) throws -> String {
        let token = hexadecimal(try randomBytes(count: 32))
        let now = ContinuousClock.now
        tokens.withLock { tokens in
            tokens = tokens.filter { $0.value.end > now }
            // Only who knows a password comes here: too many are one client that never keeps its cookie.
            if tokens.count >= Self.limit { tokens = [:] }
            tokens[token] = Session(name: name, end: now + Self.lifetime)
        }
        return token
    }

    /// Whose token it is; nil if it is nobody's any more.
    func name(of token: String) -> String? {
        tokens.withLock { tokens in tokens[token].flatMap { $0.end > .now ? $0.name : nil } }
    }

    /// Ends all of them.
    func endAll() { tokens.withLock { $0 = [:] } }

    func end(_ token: String) { tokens.withLock { $0[token] = nil } }
}

extension Service {
    private static let cookie = "AuthSession"

    /// The user: the name that came with its password, or that began the session; nil if nobody has to say
    /// one.
    ///
    /// - Throws: ``SyncError`` 401 where none is said, or a wrong password; ``TooManyAttempts``.
    @discardableResult
    func user(_ request: HTTPRequest) throws -> String? {
        guard case .passwords(let passwords) = options.access else { return nil }
        if let name = sessionToken(request).flatMap(sessions.name) { return name }
        guard let (name, password) = Self.basicCredentials(request) else {
            throw SyncError(401, "a name and a password are needed")
        }
        try check(name, password, in: passwords, from: request.address)
        return name
    }

    private static func basicCredentials(_ request: HTTPRequest) -> (name: String, password: String)? {
        guard let field = request.fields["Authorization"], field.lowercased().hasPrefix("basic "),
            let data = Data(base64Encoded: String(field.dropFirst(6)).trimmed),
            let text = String(validating: data, as: UTF8.self), let colon = text.firstIndex(of: ":")
        else { return nil }
        return (String(text[..<colon]), String(text[text.index(after: colon)...]))
    }

    /// Looks at a password, unless that was done too often. What is wrong with it is not told.
    private func check(
        _ name: String, _ password: String, in passwords: [String: String], from address: String?
    ) throws {
        // Under the lock, so that many at the same time are no more than one after another.
        try attempts.withLock { attempts in
            let now = self.now()
            if let pause = attempts.pause(of: address, at: now) { throw TooManyAttempts(pause: pause) }
            guard try Self.isPassword(password, of: name, in: passwords) else {
                attempts.fail(address, at: now)
                throw SyncError(401, "a name and a password are needed")
            }
            attempts.succeed(address, at: now)
        }
    }

    /// Takes as long for a wrong password as for a right one.
    private static func isPassword(_ password: String, of name: String, in passwords: [String: String]) throws -> Bool {
        let expected = passwords[name]
        let left = try Digest.sha256(of: Array(password.utf8))
        let right = try Digest.sha256(of: Array((expected ?? "").utf8))
        let difference = zip(left, right).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) }
        return difference == 0 && expected != nil
    }

    private func sessionToken(_ request: HTTPRequest) -> String? {
        for field in request.fields.values(of: "Cookie") {
            for pair in field.split(separator: ";") {
                let sides = pair.split(separator: "=", maxSplits: 1)
                if sides.count == 2, sides[0].trimmed == Self.cookie { return sides[1].trimmed }
            }
        }
        return nil
    }

    /// Answers `_session`: POST begins one, DELETE ends it, GET says who asks.
    func session(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "POST", "DELETE")
        switch request.method {
        case "POST":
            guard case .passwords(let passwords) = options.access else {
                throw SyncError(400, "there are no passwords")
            }
            let (name, password) = try await Self.credentials(request)
            try check(name, password, in: passwords, from: request.address)
            let secure = options.tls == nil ? "" : "; Secure"
            let cookie =
                "\(Self.cookie)=\(try sessions.begin(name)); Path=/; Max-Age=600; HttpOnly; SameSite=Strict\(secure)"
            return try .json(200, ["ok": true, "name": .string(name), "roles": []], fields: ["Set-Cookie": cookie])
        case "DELETE":
            if let token = sessionToken(request) { sessions.end(token) }
            return try .json(
                200, ["ok": true], fields: ["Set-Cookie": "\(Self.cookie)=; Path=/; Max-Age=0; HttpOnly"])
        default:
            let name = try user(request).map { JSONValue.string($0) } ?? .null
            return try .json(200, ["ok": true, "userCtx": ["name": name, "roles": []]])
        }
    }

    /// As CouchDB has it, either word will do.
    private static func name(_ name: String?, _ username: String?) throws(SyncError) -> String {
        guard let either = name ?? username else { throw SyncError(400, "request body must contain a username") }
        guard name == nil || username == nil || name == username else {
            throw SyncError(400, "request body contains different usernames")
        }
        return either
    }

    /// - Throws: ``SyncError`` 408 for what takes too long: anybody can ask.
    private static func credentials(_ request: HTTPRequest) async throws -> (name: String, password: String) {
        let body = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            group.addTask { try await request.body.stream.collect(upTo: 1 << 16) }
            group.addTask {
                try await Task.sleep(for: .seconds(30))
                throw SyncError(408, "the name and the password did not come in time")
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
        if request.fields["Content-Type"].flatMap(MediaType.init)?.name == "application/json" {
            let json = try JSONValue(json: body)
            return (
                try name(json["name"]?.stringValue, json["username"]?.stringValue), json["password"]?.stringValue ?? ""
            )
        }
        let form = RequestTarget("/?" + String(decoding: body, as: UTF8.self))
        return (try name(form?["name"], form?["username"]), form?["password"] ?? "")
    }
}
