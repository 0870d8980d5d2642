/// The result of salvaging a damaged database into a new one.
public struct Salvage: Sendable {
    /// Data that the new database lacks: each page with which rows were lost, each document, revision, local document
    /// and attachment that can't be read, as far as anything still names it. Nothing when all was salvaged.
    public internal(set) var losses: [VerificationFinding] = []

    /// Damage without a loss: everything that was there is found elsewhere, or follows from other data.
    public internal(set) var harmless: [VerificationFinding] = []

    /// Documents in the new database, deleted ones not counted.
    public internal(set) var documentCount = 0
    /// Revisions in the new database, of deleted documents too.
    public internal(set) var revisionCount = 0
    /// Local documents in the new database.
    public internal(set) var localDocumentCount = 0
    /// Contents of attachments and blobs in the new database.
    public internal(set) var attachmentCount = 0
    /// The bytes of these contents.
    public internal(set) var attachmentByteCount = 0

    /// Whether nothing was lost.
    public var isComplete: Bool { losses.isEmpty }

    init() {}
}
