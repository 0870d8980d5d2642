/// What went wrong between a database and another one over HTTP.
///
/// What goes wrong in a database itself is a `CofferError`. Descriptions hold URLs' paths, ids and numbers, never content,
/// passwords or tokens.
public struct SyncError: Error, Sendable, Equatable {
    /// What the other side answered, as HTTP has it, or what comes closest: 400 what can't be asked for, 495 a server whose
    /// certificate is not trusted, 499 cancelled, 502 an answer that is none of the protocol's, 503 nobody there, 504 nobody
    /// answered in time.
    public let status: Int

    /// What it happened to, such as `document invoice-17`.
    public let subject: String?

    /// What happened, in a few words.
    public let detail: String

    package init(_ status: Int, of subject: String? = nil, _ detail: String) {
        self.status = status
        self.subject = subject
        self.detail = detail
    }

    /// An answer that is none of the protocol's.
    package static func garbage(_ detail: String, of subject: String? = nil) -> SyncError {
        SyncError(502, of: subject, detail)
    }

    /// A revision of another database whose id, or an ancestor's, none can have here.
    package static func foreignRevision(_ subject: String) -> SyncError {
        SyncError(403, of: subject, "a revision id that none can have here")
    }

    /// Whether it is about the server or the way there, and not about one document.
    package var isAboutServer: Bool { subject == nil && [401, 495, 503, 504].contains(status) }

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
