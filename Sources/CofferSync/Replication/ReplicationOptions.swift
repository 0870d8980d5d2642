public import Coffer

/// How a ``Replication`` goes about it.
public struct ReplicationOptions: Sendable {
    /// The user's name and password on the server.
    public enum Credentials: Sendable {
        /// A name and a password with each request, by HTTP's Basic scheme.
        case basic(name: String, password: String)
        /// A name and a password once, for a cookie that goes with each request: `_session` beside the database.
        case session(name: String, password: String)
    }

    /// A proxy of HTTP's: asked for each request where the server's URL has `http`, and for a way through (CONNECT) where it has
    /// `https`.
    public struct Proxy: Sendable {
        /// The name or address of its host.
        public var host: String
        /// Its port.
        public var port: Int
        /// The user's name and password at the proxy, by HTTP's Basic scheme. Default: nil.
        public var user: String?
        /// The password for ``user``. It goes to the proxy as it is.
        public var password: String?

        /// A proxy at that place.
        public init(host: String, port: Int, user: String? = nil, password: String? = nil) {
            self.host = host
            self.port = port
            self.user = user
            self.password = password
        }
    }

    /// Whether it goes on when everything was exchanged, and waits for more. Default: false, it stops then.
    public var isContinuous = false

    /// Whether the server's database is made where there isn't one. Only for a push. Default: false.
    public var createsTarget = false

    /// The name of the filter that revisions must pass: on a pull the server's, such as `design/name`; on a push one that
    /// `setFilter` has given the database. Default: nil, all do.
    public var filter: String?

    /// The parameters for the filter. Default: empty.
    public var filterParameters: JSONObject = [:]

    /// Only these documents. Not together with a filter. Default: nil, all.
    public var documentIDs: [String]?

    /// Only documents in these channels of Sync Gateway. Only for a pull, and not together with a filter. Default: nil, all.
    public var channels: [String]?

    /// Header fields that go with each request. Default: none.
    public var headers: [String: String] = [:]

    /// Default: nil, what the URL says, or nothing.
    public var credentials: Credentials?

    /// Certificates in PEM, one of which must have signed that of a server with `https`, or be it. Default: nil, those that
    /// the system trusts count; once set, only these.
    public var trustedCertificates: String?

    /// The proxy that leads to the server. It sees everything that is sent there, but for `https`, where it learns the
    /// host alone. Default: nil, nobody; variables such as `HTTPS_PROXY` are not looked at.
    public var proxy: Proxy?

    /// How often, and after which pauses, a request that failed is made again.
    public var retry = RetryPolicy()

    /// A server that can't be connected to within that time is not there. Default: 20 seconds.
    public var connectTimeout: Duration = .seconds(20)

    /// A server that sends nothing for that time doesn't answer. Default: 120 seconds.
    public var idleTimeout: Duration = .seconds(120)

    /// A batch has at most that many documents. Up to eight are under way at a time, as far as their bytes allow. Default: 500.
    public var batchDocumentCount = 500

    /// A batch has about that many bytes of documents; one that is larger goes alone. A pull's batches under way have together
    /// about as many, a push's twice as many. Default: 2 MiB.
    public var batchByteCount = 2 << 20

    /// So many contents of attachments are fetched at the same time. Default: 16.
    public var parallelDownloadCount = 16

    /// Whether a pull brings the contents of attachments and blobs, too. Default: true.
    ///
    /// Otherwise it brings what their documents say of them, and no content travels: `contentAvailable` is false, `content`
    /// nil. ``Replication/download(_:)-(Attachment)`` fetches one when it is wanted,
    /// ``Replication/downloadMissingContents(ofDocumentsWithIDs:progress:)`` all. A run with another choice goes on where the
    /// last one ended; it does not come back for what that left out.
    public var downloadsAttachments = true

    /// Decides which contents a pull brings, where ``downloadsAttachments`` doesn't say none. Default: nil, all.
    ///
    /// Asked before anything of a content is fetched, once or more often, from any thread. Contents that are here are not
    /// asked about.
    public var shouldDownloadAttachment: (@Sendable (AttachmentInfo) -> Bool)?

    /// A pull leaves a content of more bytes on the server, as ``downloadsAttachments`` does with all. One that turns out to have
    /// more than the server said is refused (413), with its document. Default: nil, as many as fit on the disk.
    public var attachmentByteLimit: Int?

    /// Whether documents that were refused for good are tried once more when a run begins: see
    /// ``Replication/refusedDocuments()``. Default: false.
    public var retriesRefused = false

    /// Says what becomes of a conflict that a pull meets: ours, theirs, or what comes of both. Default: nil, it stays, for
    /// whoever calls `resolveConflicts`.
    ///
    /// Called on a thread of the database's, in the transaction that saves what came, so that neither side is seen without the
    /// outcome; so it should not wait for others. It is asked about revisions that come in this run, once for each that is here
    /// and that they don't follow. What it throws is among ``Replication/failures``, and the conflict stays. The outcome reaches
    /// the server with the next push.
    public var conflictHandler: (@Sendable (ReplicationConflict) throws -> ConflictResolution)?

    /// The values that are their defaults.
    public init() {}
}

/// How often, and after which pauses, something that may go well later is tried again.
public struct RetryPolicy: Sendable {
    /// How often a request is tried before its error counts. Default: 5.
    public var attemptCount = 5

    /// The pause after the first attempt; each one after it is twice as long. Default: half a second.
    public var firstPause: Duration = .milliseconds(500)

    /// No pause is longer, but where the server asks for it. Default: 60 seconds.
    public var longestPause: Duration = .seconds(60)

    /// The values that are their defaults.
    public init() {}

    /// The pause after that many attempts that failed.
    ///
    /// - Parameters:
    ///   - chance: from 0 to 1: so that not all clients of a server that comes back ask at once, the pause is between half of
    ///     its length and all of it.
    ///   - serverAsks: what the server's Retry-After says.
    package func pause(after failureCount: Int, chance: Double, serverAsks: Duration? = nil) -> Duration {
        let doublings = max(0, min(failureCount - 1, 30))
        let whole = min(firstPause * (1 << doublings), longestPause)
        let pause = whole * (0.5 + 0.5 * min(max(chance, 0), 1))
        // Nobody waits for ever because a header says so.
        return max(pause, min(serverAsks ?? .zero, .seconds(3600)))
    }
}

/// What a server says of a content, before it is fetched.
public struct AttachmentInfo: Sendable, Equatable {
    /// The document that it belongs to.
    public let documentID: String

    /// The attachment's name; `blob_1` and so on for the blobs in a document's properties.
    public let name: String

    /// The content's type, by convention a MIME type; nil if it is unknown.
    public let contentType: String?

    /// The length of the content in bytes; nil if the server does not say it.
    public let length: Int?

    /// As the server has it: `md5-…`, perhaps of a packed form, or `sha1-…`; nil if it does not say it.
    public let digest: String?

    /// Whether it is the content of a blob.
    public let isBlob: Bool

    init(_ content: IncomingRevision.Content, of documentID: String) {
        self.documentID = documentID
        name = content.name
        contentType = content.contentType
        length = content.length
        digest = content.digest
        isBlob = content.blob != nil
    }
}

extension ReplicationOptions {
    /// Whether a pull fetches that content.
    func wants(_ content: IncomingRevision.Content, of documentID: String) -> Bool {
        guard downloadsAttachments else { return false }
        if let limit = attachmentByteLimit, let length = content.length, length > limit { return false }
        return shouldDownloadAttachment?(AttachmentInfo(content, of: documentID)) != false
    }
}

/// A document that a pull has brought a revision of, and that has another one here which that doesn't follow.
public struct ReplicationConflict: Sendable {
    /// The document's id.
    public let documentID: String

    /// The revision that was here.
    public let ours: SavedRevision

    /// The revision that came.
    public let theirs: SavedRevision
}

/// What becomes of a conflict: see ``ReplicationOptions/conflictHandler``.
public enum ConflictResolution: Sendable {
    /// Ours stays, and theirs is deleted.
    case ours
    /// Theirs stays, and ours is deleted.
    case theirs
    /// A revision with these properties, and the attachments of theirs, follows theirs; ours is deleted.
    case merged(JSONObject)
}

extension ExistingRevisionResult {
    /// Resolves the conflicts that the revision has with others of its document, in the transaction under way.
    ///
    /// - Throws: what `handler` throws, and what saving throws. Its document is as the pull left it then.
    func resolveConflicts(_ handler: (ReplicationConflict) throws -> ConflictResolution) throws {
        guard !wasKnown else { return }
        let document = revision.document
        var theirs = revision
        // What came may have had no conflict, or have been deleted where it came from.
        let conflicting = try document.conflictingRevisions
        guard conflicting.count > 1, conflicting.contains(theirs) else { return }
        try document.database.inTransaction {
            for ours in conflicting where ours != revision {
                let conflict = ReplicationConflict(documentID: document.documentID, ours: ours, theirs: theirs)
                switch try handler(conflict) {
                case .ours:
                    // Nothing is left of what came. What else is in conflict here was so before.
                    try theirs.deleteDocument()
                    return
                case .theirs:
                    try ours.deleteDocument()
                case .merged(let properties):
                    let draft = try theirs.createRevision()
                    draft.properties = properties
                    try ours.deleteDocument()
                    theirs = try draft.save()
                }
            }
        }
    }
}
