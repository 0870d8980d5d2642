/// What came of an import of a Couchbase Lite store, or would.
public struct CouchbaseLiteImportReport: Sendable, Equatable, Codable {
    /// The version of the source's schema, such as 102 for Couchbase Lite 1.3 and 1.4.
    public internal(set) var schemaVersion = 0
    /// Whether the source is encrypted.
    public internal(set) var isSourceEncrypted = false

    /// How many documents there are, not counting deleted ones.
    public internal(set) var documentCount = 0
    /// How many documents are deleted.
    public internal(set) var deletedDocumentCount = 0
    /// How many documents have a conflict.
    public internal(set) var conflictCount = 0
    /// How many revisions came with a body. Those whose bodies the source had dropped came as ids.
    public internal(set) var revisionCount = 0
    /// How many attachments these revisions have.
    public internal(set) var attachmentCount = 0
    /// How many contents of attachments came; each counts once, however many revisions use it.
    public internal(set) var contentCount = 0
    /// The bytes of these contents, unpacked.
    public internal(set) var contentByteCount = 0
    /// How many contents are not in the source, or are not what they should be. Their attachments are there without them.
    public internal(set) var missingContentCount = 0
    /// How many local documents came.
    public internal(set) var localDocumentCount = 0
    /// How many documents have a time at which they will be purged.
    public internal(set) var expirationCount = 0

    /// How many views the source has: none is imported, since their functions are in an app's code.
    public internal(set) var skippedViewCount = 0
    /// How many checkpoints of replications it has: none is imported, since the new database is another one to a server.
    public internal(set) var skippedCheckpointCount = 0
    /// How many old revisions were left out that no current revision descends from.
    public internal(set) var skippedRevisionCount = 0

    /// How many problems there were.
    public internal(set) var problemCount = 0
    /// The first of them, as many as ``CouchbaseLiteImportOptions/problemLimit`` says.
    public internal(set) var problems: [CouchbaseLiteImportProblem] = []

    /// Whether everything that counts came across.
    public var isComplete: Bool { problemCount == 0 }
}

/// Something in a source that could not be imported, or not as it was.
public struct CouchbaseLiteImportProblem: Sendable, Equatable, Codable, CustomStringConvertible {
    /// The document's id, as far as there is one.
    public let documentID: String?
    /// The revision's id, as far as the problem is one revision's.
    public let revisionID: String?
    /// The name of the attachment, if it is about one.
    public let attachmentName: String?
    /// What the problem is. Holds no content.
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
