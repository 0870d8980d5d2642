internal import CofferRecords

/// How much of a database is looked at. Each level includes those before it.
public enum VerificationLevel: Int, Sendable, Comparable, CaseIterable, Codable {
    /// That MANIFEST is what its key vouches for.
    case keys
    /// That every page of the database file and of its log has the right code. Of a store that is not encrypted, whose
    /// pages have none, that the file has whole pages, and that none that a table or index uses is all zeros.
    case pages
    /// That every table and index is well formed, that every document is what was written, and that the tables agree.
    case documents
    /// That the file of every attachment and blob is there, has its length and the header that its row says, and ends where
    /// it should.
    case attachments
    /// That every byte of every attachment and blob is what was written.
    case everything

    /// Whether it looks at less.
    public static func < (left: VerificationLevel, right: VerificationLevel) -> Bool { left.rawValue < right.rawValue }
}

/// The result of a verification: how much it checked, and which damage it found.
public struct Verification: Sendable, Codable {
    /// How much was looked at.
    public let level: VerificationLevel

    /// The damage, in the order in which it was found; empty if the database is sound.
    public internal(set) var findings: [VerificationFinding] = []

    /// Pages of the database file, and of the log as often as they are in it.
    public internal(set) var pageCount = 0
    /// Documents, deleted ones not counted. Where something is damaged, those of which a revision can still be read. 0 when the
    /// level is below documents.
    public internal(set) var documentCount = 0
    /// Revisions that could be read.
    public internal(set) var revisionCount = 0
    /// Contents of attachments and blobs. 0 when the level is below attachments.
    public internal(set) var attachmentCount = 0
    /// The bytes of these contents.
    public internal(set) var attachmentByteCount = 0
    /// Contents that documents have and that are not here, since a pull left them out. That is not damage. 0 when the level is
    /// below attachments.
    public internal(set) var missingContentCount = 0

    /// Entries of the store's directory that were skipped: links, FIFOs, sockets and devices, none of which belongs to
    /// a store. One in the place of something that does is also a finding. Empty when the level is below pages.
    public internal(set) var skipped: [SkippedEntry] = []

    /// Remains of earlier generations of the store, which are not damage: see ``Database/oldGenerations``.
    public internal(set) var oldGenerations: [OldGeneration] = []

    /// Whether nothing is damaged.
    public var isSound: Bool { findings.isEmpty }

    init(_ level: VerificationLevel) { self.level = level }
}

/// One thing that is not what was written.
public struct VerificationFinding: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The kind of thing. The list is open: later versions may add kinds, so a `switch` over it needs a `default`.
    public struct Kind: Sendable, Hashable, Codable, CustomStringConvertible {
        private let name: String

        /// MANIFEST, or its tie to the database file.
        public static let manifest = Kind(name: "manifest")
        /// A page of the database file or of its log.
        public static let page = Kind(name: "page")
        /// How pages, tables and indexes hang together.
        public static let structure = Kind(name: "structure")
        /// A document, one of its revisions, or a local document.
        public static let document = Kind(name: "document")
        /// The content of an attachment or blob.
        public static let attachment = Kind(name: "attachment")

        /// The kind's name, such as `page`.
        public var description: String { name }
    }

    /// The kind of thing it is.
    public let kind: Kind
    /// Which one: `page 17`, or `document invoice-4`.
    public let subject: String
    /// A description of the damage.
    public let detail: String
    /// The number of the page, from 1; nil for anything else.
    public var page: Int?
    /// The document's id, where it is known.
    public var documentID: String?
    /// The digest of the content, for an attachment or blob.
    public var digest: String?

    init(
        _ kind: Kind, _ subject: String, _ detail: String, page: Int? = nil, documentID: String? = nil,
        digest: String? = nil
    ) {
        self.kind = kind
        self.subject = subject
        self.detail = detail
        self.page = page
        self.documentID = documentID
        self.digest = digest
    }

    init(_ damage: Damage) {
        let kind: Kind =
            switch damage.kind {
            case .page: .page
            case .structure: .structure
            case .document: .document
            case .attachment: .attachment
            }
        self.init(
            kind, damage.subject, damage.detail, page: damage.page, documentID: damage.documentID, digest: damage.digest
        )
    }

    /// Which one, and what is wrong.
    public var description: String { "\(subject): \(detail)" }
}

/// How far a verification has come.
public struct VerificationProgress: Sendable, Equatable, Codable {
    /// The level that is being checked.
    public var level: VerificationLevel
    /// How many bytes of this level are done: of pages, bodies or contents.
    public var completedByteCount: Int
    /// How many there are, as far as that is known.
    public var totalByteCount: Int
}

typealias VerificationMonitor = ProgressMonitor<VerificationProgress>

extension ProgressMonitor where Progress == VerificationProgress {
    /// The same for who only goes through a database file.
    var work: WorkMonitor {
        WorkMonitor(goesOn: { self.goesOn }, advance: { self.advance(byteCount: $0) })
    }

    func begin(_ level: VerificationLevel, byteCount: Int) {
        update { $0 = VerificationProgress(level: level, completedByteCount: 0, totalByteCount: byteCount) }
    }

    func advance(byteCount: Int) { update { $0.completedByteCount += byteCount } }
}

extension VerificationProgress {
    static let start = VerificationProgress(level: .keys, completedByteCount: 0, totalByteCount: 0)
}

/// Something in a folder that was not looked into.
public struct SkippedEntry: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The way to it from where the search began.
    public let path: String
    /// Why: what it is, such as `a FIFO`.
    public let reason: String

    package init(path: String, reason: String) {
        self.path = path
        self.reason = reason
    }

    /// Where it is, and why.
    public var description: String { "\(path): \(reason), not looked into" }
}
