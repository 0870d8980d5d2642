internal import CofferSealing

/// What an import of a Couchbase Lite store brought across, or what one would bring across.
public struct CouchbaseLiteImportReport: Sendable, Equatable, Codable {
    /// The version of the source's schema, such as 102 for Couchbase Lite 1.3 and 1.4.
    public internal(set) var schemaVersion = 0
    /// Whether the source is encrypted.
    public internal(set) var isSourceEncrypted = false

    /// The number of documents, without deleted ones.
    public internal(set) var documentCount = 0
    /// The number of deleted documents.
    public internal(set) var deletedDocumentCount = 0
    /// The number of documents with a conflict.
    public internal(set) var conflictCount = 0
    /// The number of revisions that have a body. If the source had dropped a body, only the revision's id was imported.
    public internal(set) var revisionCount = 0
    /// The number of attachments of these revisions.
    public internal(set) var attachmentCount = 0
    /// The number of attachment contents. Each counts once, however many revisions use it.
    public internal(set) var contentCount = 0
    /// The length of these contents in bytes, decompressed.
    public internal(set) var contentByteCount = 0
    /// The number of contents that are missing from the source, or damaged. Their attachments were imported without
    /// them.
    public internal(set) var missingContentCount = 0
    /// The number of local documents.
    public internal(set) var localDocumentCount = 0
    /// The number of documents that expire.
    public internal(set) var expirationCount = 0

    /// The number of views in the source. Views are not imported, since their functions are in the app's code.
    public internal(set) var skippedViewCount = 0
    /// The number of replication checkpoints in the source. They are not imported, since the new database is a new
    /// client to a server.
    public internal(set) var skippedCheckpointCount = 0
    /// The number of old revisions that were left out because no current revision descends from them.
    public internal(set) var skippedRevisionCount = 0

    /// The number of problems.
    public internal(set) var problemCount = 0
    /// The first problems, up to ``CouchbaseLiteImportOptions/problemLimit``.
    public internal(set) var problems: [CouchbaseLiteImportProblem] = []

    /// Whether there was no problem.
    public var isComplete: Bool { problemCount == 0 }
}

/// Something in a source that could not be imported as it is.
public struct CouchbaseLiteImportProblem: Sendable, Equatable, Codable, CustomStringConvertible {
    /// The document's id, if the problem is about a document.
    public let documentID: String?
    /// The revision's id, if the problem is about one revision.
    public let revisionID: String?
    /// The attachment's name, if the problem is about an attachment.
    public let attachmentName: String?
    /// What the problem is. It contains no document content.
    public let reason: String

    /// All of it in one line.
    public var description: String {
        var words: [String] = []
        if let documentID { words.append("document \(documentID)") }
        if let revisionID { words.append("revision \(revisionID)") }
        if let attachmentName { words.append("attachment \(attachmentName)") }
        return (words.isEmpty ? "the store" : words.joined(separator: ", ")) + ": " + reason
    }
}

/// Collects what a report says.
struct ImportReport {
    /// The ids of the document and the revision that have a problem, as the source has them.
    struct Place {
        var document: [UInt8]?
        var revision: [UInt8]?
    }

    private struct Leaves {
        var liveCount: UInt32 = 0
        var deletedCount: UInt32 = 0
        /// Whether the last saved revision is a deletion. It decides if none of the document's leaves could be saved.
        var isLastDeleted = false
    }

    var values = CouchbaseLiteImportReport()
    private let problemLimit: Int
    private var documents: [Int64: Leaves] = [:]

    init(problemLimit: Int) { self.problemLimit = problemLimit }

    mutating func add(_ reason: String, _ place: Place, attachment: String? = nil) {
        values.problemCount += 1
        guard values.problems.count < problemLimit else { return }
        values.problems.append(
            CouchbaseLiteImportProblem(
                documentID: place.document.map(Self.text), revisionID: place.revision.map(Self.text),
                attachmentName: attachment, reason: reason))
    }

    /// The text of an id, cut if it is long, since it may be anything.
    private static func text(_ bytes: [UInt8]) -> String {
        let limit = 300
        let text = String(decoding: bytes.prefix(limit), as: UTF8.self)
        return bytes.count > limit ? text + "…" : text
    }

    mutating func noteSaved(_ document: Int64, isLeaf: Bool, isDeletion: Bool, attachmentCount: Int) {
        values.revisionCount += 1
        values.attachmentCount += attachmentCount
        var leaves = documents[document] ?? Leaves()
        leaves.isLastDeleted = isDeletion
        if isLeaf {
            if isDeletion { leaves.deletedCount += 1 } else { leaves.liveCount += 1 }
        }
        documents[document] = leaves
    }

    /// The finished report.
    func finished() -> CouchbaseLiteImportReport {
        var values = values
        for leaves in documents.values {
            let hasLeaf = leaves.liveCount + leaves.deletedCount > 0
            if hasLeaf ? leaves.liveCount > 0 : !leaves.isLastDeleted {
                values.documentCount += 1
            } else {
                values.deletedDocumentCount += 1
            }
            if leaves.liveCount > 1 { values.conflictCount += 1 }
        }
        return values
    }
}
