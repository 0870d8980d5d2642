internal import Coffer
public import Foundation

/// What went wrong between a database and another one over HTTP.
///
/// What goes wrong in a database itself is a `CofferError`. Descriptions hold URLs' paths, ids and numbers, never content,
/// passwords or tokens.
public struct SyncError: Error, Sendable, Equatable {
    /// What the other side answered, as HTTP has it, or what comes closest: 400 what can't be asked for, 495 a server whose
    /// certificate is not trusted, 499 cancelled, 502 an answer that doesn't follow the protocol, 503 nobody there, 504
    /// nobody answered in time.
    public let status: Int

    /// What it happened to, such as `document invoice-17`.
    public let subject: String?

    /// What happened, in a few words.
    public let detail: String

    package init(_ status: Int, of subject: String? = nil, _ detail: String) {
        self.status = status
        // Another database's ids may have any length.
        self.subject = subject?.shortened(to: Self.textByteCount)
        self.detail = detail.shortened(to: Self.textByteCount)
    }

    /// What a message says of a thing, and what happened to it, is cut to about that many bytes.
    private static let textByteCount = 400

    /// An answer that doesn't follow the protocol.
    package static func garbage(_ detail: String, of subject: String? = nil) -> SyncError {
        SyncError(502, of: subject, detail)
    }

    /// A revision of another database whose id, or an ancestor's, none can have here.
    package static func foreignRevision(_ subject: String) -> SyncError {
        SyncError(403, of: subject, "a revision id that none can have here")
    }

    /// A proxy that wants to know who one is, or doesn't believe it.
    static let proxyRefusal = SyncError(
        407, "the proxy asks for a name and a password, or refuses those that it was given")

    /// A redirect. No request follows it: credentials are for the server that was named. One that is permanent (RFC 9110,
    /// sections 15.4.2 and 15.4.9) keeps its status and is final; others may pass, like that of a network which wants a login
    /// first.
    ///
    /// - Parameter location: where to, as the server says it. Neither a user nor a query of it is repeated.
    static func redirection(_ status: Int, to location: String?) -> SyncError {
        var place = "elsewhere"
        if let location, let parts = URLComponents(string: location) {
            var shown = URLComponents()
            (shown.scheme, shown.host, shown.port) = (parts.scheme, parts.host, parts.port)
            shown.percentEncodedPath = parts.percentEncodedPath
            if let text = shown.string, !text.isEmpty { place = "to \(HTTPFields.safe(text))" }
        }
        return SyncError(
            isPermanent(redirect: status) ? status : 502,
            "the server redirects \(place), and no redirect is followed")
    }

    private static func isPermanent(redirect status: Int) -> Bool { status == 301 || status == 308 }

    /// Whether it is about the server or the way there, and not about one document.
    package var isAboutServer: Bool {
        subject == nil && ([401, 407, 495, 503, 504].contains(status) || Self.isPermanent(redirect: status))
    }

    /// Whether the same may go well later: nobody was there, or who was there had no time.
    package var mayPass: Bool {
        switch status {
        case 408, 425, 429, 500...599: true
        default: false
        }
    }
}

extension SyncError: CustomStringConvertible {
    /// One line that ends in the status, such as `document invoice-17: forbidden (403)`.
    public var description: String { (subject.map { "\($0): " } ?? "") + "\(detail) (\(status))" }
}

extension SyncError: LocalizedError {
    /// The description, so that `localizedDescription`, which alerts show, says what happened too. It is in English.
    public var errorDescription: String? { description }
}

extension String {
    /// The text, with an ellipsis in the place of its middle where it has more bytes than that.
    package func shortened(to byteCount: Int) -> String {
        guard utf8.count > byteCount else { return self }
        let half = byteCount / 2
        let (start, end) = (Array(utf8.prefix(half)), Array(utf8.suffix(half)))
        // Not in the middle of a character.
        let last = start.lastIndex { $0 & 0xC0 != 0x80 } ?? 0
        let first = end.firstIndex { $0 & 0xC0 != 0x80 } ?? 0
        return String(decoding: start[..<last], as: UTF8.self) + "…" + String(decoding: end[first...], as: UTF8.self)
    }
}

extension LogMessage {
    /// The methods that messages name. Another one could be any text of a stranger's.
    static let methods: Set<String> = ["GET", "HEAD", "PUT", "POST", "DELETE", "COPY", "OPTIONS", "PATCH"]

    /// The details that say how something failed on the way to a server or there.
    static func details(ofSync error: any Error) -> [String: String] {
        (error as? SyncError).map { ["status": String($0.status)] } ?? details(of: error)
    }
}
