internal import CofferModel
internal import CofferSealing
internal import Foundation
internal import Synchronization

/// Who has said a password at `_session`, by the token that the cookie holds.
final class Sessions: Sendable {
    private let tokens = Lock<[String: ContinuousClock.Instant]>([:])

    static let lifetime: Duration = .seconds(600)
    private static let limit = 10_000

    /// A token that is good from now on.
    func begin() throws -> String {
        let token = try randomBytes(count: 32).map { String($0 / 16, radix: 16) + String($0 % 16, radix: 16) }.joined()
        let now = ContinuousClock.now
        tokens.withLock { tokens in
            tokens = tokens.filter { $0.value > now }
            // Only who knows a password comes here: too many are one client that never keeps its cookie.
            if tokens.count >= Self.limit { tokens = [:] }
            tokens[token] = now + Self.lifetime
        }
        return token
    }

    func isGood(_ token: String) -> Bool { tokens.withLock { ($0[token] ?? .now) > .now } }

    /// Ends all of them.
    func endAll() { tokens.withLock { $0 = [:] } }

    func end(_ token: String) { tokens.withLock { $0[token] = nil } }
}

extension Service {
    private static let cookie = "AuthSession"

    /// Whether the request says a name and its password, or has a session.
    func isAllowed(_ request: HTTPRequest) -> Bool {
        guard case .passwords(let passwords) = options.access else { return true }
        if let token = sessionToken(request), sessions.isGood(token) { return true }
        guard let field = request.fields["Authorization"], field.lowercased().hasPrefix("basic "),
            let data = Data(base64Encoded: String(field.dropFirst(6)).trimmed),
            let text = String(validating: data, as: UTF8.self), let colon = text.firstIndex(of: ":")
        else { return false }
        return Self.isPassword(String(text[text.index(after: colon)...]), of: String(text[..<colon]), in: passwords)
    }

    /// Takes as long for a wrong password as for a right one.
    private static func isPassword(_ password: String, of name: String, in passwords: [String: String]) -> Bool {
        let expected = passwords[name]
        let (left, right) = (Digest.sha256(of: Array(password.utf8)), Digest.sha256(of: Array((expected ?? "").utf8)))
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

    /// Answers `_session`: POST begins one, DELETE ends it, GET says whether there is one.
    func session(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("GET", "POST", "DELETE")
        switch request.method {
        case "POST":
            guard case .passwords(let passwords) = options.access else {
                throw SyncError(400, "there are no passwords")
            }
            let (name, password) = try await Self.credentials(request)
            guard Self.isPassword(password, of: name, in: passwords) else {
                throw SyncError(401, "wrong name or password")
            }
            let cookie = "\(Self.cookie)=\(try sessions.begin()); Path=/; Max-Age=600; HttpOnly; SameSite=Strict"
            return try .json(200, ["ok": true, "name": .string(name), "roles": []], fields: ["Set-Cookie": cookie])
        case "DELETE":
            if let token = sessionToken(request) { sessions.end(token) }
            return try .json(
                200, ["ok": true], fields: ["Set-Cookie": "\(Self.cookie)=; Path=/; Max-Age=0; HttpOnly"])
        default:
            guard isAllowed(request) else { throw SyncError(401, "there is no session") }
            return try .json(200, ["ok": true, "userCtx": ["name": nil, "roles": []]])
        }
    }

    private static func credentials(_ request: HTTPRequest) async throws -> (name: String, password: String) {
        let body = try await request.body.stream.collect(upTo: 1 << 16)
        if request.fields["Content-Type"].flatMap(MediaType.init)?.name == "application/json" {
            let json = try JSONValue(json: body)
            return (json["name"]?.stringValue ?? "", json["password"]?.stringValue ?? "")
        }
        let form = RequestTarget("/?" + String(decoding: body, as: UTF8.self))
        return (form?["name"] ?? "", form?["password"] ?? "")
    }
}
