public import CofferModel
public import CofferSealing
public import Foundation

/// An attachment of a revision: a name, what is known of its content, and the way to it.
///
/// The content is read when it is asked for, whole, in part or as a stream, and checked as it is read: every byte that
/// comes out is one that was put in. It is nil if it was never downloaded from where the document came from; content
/// that should be here and is missing or was changed is an error. Safe from any thread.
public final class Attachment: Sendable {
    /// The attachment's name, unique in its document. Any text but an empty one, slashes included.
    public let name: String

    /// The content's type, by convention a MIME type; nil if it is unknown.
    public let contentType: String?

    /// The document that it belongs to.
    public let document: Document

    let stored: Content
    private let stub: AttachmentStub?

    init(name: String, contentType: String?, document: Document, _ content: Content, stub: AttachmentStub? = nil) {
        self.name = name
        self.contentType = contentType
        self.document = document
        self.stub = stub
        stored = content
    }

    /// The length of the content in bytes.
    public var length: Int { stored.length ?? 0 }

    /// The SHA-1 of the content, as `sha1-` and base64. What came from another database may have another kind of digest.
    public var digest: String { stored.digest ?? "" }

    /// The generation of the revision that last changed it; nil while it is not saved.
    public var changedInGeneration: Int? { stub?.changedInGeneration }

    // MARK: Content

    /// Whether the content is here. Neither opens nor reads it, so it may still turn out to be damaged.
    public var contentAvailable: Bool { stored.isAvailable }

    /// The whole content; nil if it was never downloaded. All of it is in memory then: see ``chunks`` for more.
    ///
    /// - Throws: `attachmentNotFound` (404) when no revision used it at the last compaction; `damaged` (500)
    ///   with its name when it is missing or was changed; `closed` (500).
    public var content: Data? {
        get throws(CofferError) { try stored.data(subject: subject) }
    }

    /// Bytes of the content; nil if it was never downloaded. Reads little more than what is asked for.
    ///
    /// - Throws: `invalidArgument` (400) for a range beyond ``length``; as ``content``.
    public func content(in range: Range<Int>) throws(CofferError) -> Data? {
        try stored.data(in: range, subject: subject)
    }

    /// The content in pieces of 1 MiB, the last one shorter; nil if it was never downloaded. Needs memory for one.
    ///
    /// Each iteration reads from the beginning. What is being read stays readable even if the database is compacted.
    public var chunks: AttachmentChunks? {
        get throws(CofferError) { try AttachmentChunks(stored, subject: subject) }
    }

    /// A stream of the content, to be opened; nil if it was never downloaded.
    ///
    /// Damage is an error of the stream, never its end.
    public func openContentStream() throws(CofferError) -> InputStream? {
        try chunks.map { ContentStream($0) }
    }

    /// A file with the content, to be read only; nil in an encrypted database, and where the content was never downloaded.
    ///
    /// The file belongs to the database: it may be gone after the database is compacted.
    public var contentURL: URL? { stored.fileURL }

    var subject: String { "attachment \(name) of \(document.subject)" }
}

extension Database {
    /// The digest that an attachment's content has in this database; nil if it is not saved here.
    package func digest(of attachment: Attachment) -> String? { attachment.stored.digest(savedIn: storage) }
}

extension Blob {
    /// A blob of bytes in memory.
    ///
    /// - Parameters:
    ///   - contentType: what kind of content it is, by convention a MIME type. Default: nil.
    ///   - data: the content.
    public convenience init(contentType: String? = nil, data: Data) {
        self.init(contentType: contentType, backing: Content(data))
    }

    /// A blob of a file's content, which is read when the blob is saved.
    ///
    /// - Throws: `invalidAttachment` (400) when there is no such file.
    public convenience init(contentType: String? = nil, contentsOf url: URL) throws(CofferError) {
        self.init(contentType: contentType, backing: Content(try FileSource(url)))
    }

    /// A blob of a stream's content, which is read when the blob is saved, once. The stream belongs to the blob from here
    /// on.
    public convenience init(contentType: String? = nil, contentsOf stream: sending InputStream) {
        self.init(contentType: contentType, backing: Content(StreamSource(stream)))
    }

    /// The whole content; nil if it was never downloaded, and of a stream that was not saved yet.
    ///
    /// - Throws: as ``Attachment/content``.
    public var content: Data? {
        get throws(CofferError) { try stored?.data(subject: subject) }
    }

    /// Bytes of the content: see ``Attachment/content(in:)``.
    public func content(in range: Range<Int>) throws(CofferError) -> Data? {
        try stored?.data(in: range, subject: subject)
    }

    /// The content in pieces: see ``Attachment/chunks``.
    public var chunks: AttachmentChunks? {
        get throws(CofferError) {
            try stored.flatMap { (content) throws(CofferError) in try AttachmentChunks(content, subject: subject) }
        }
    }

    /// A stream of the content: see ``Attachment/openContentStream()``.
    public func openContentStream() throws(CofferError) -> InputStream? {
        try chunks.map { ContentStream($0) }
    }

    /// A file with the content: see ``Attachment/contentURL``.
    public var contentURL: URL? { stored?.fileURL }

    /// Whether the content is here: see ``Attachment/contentAvailable``.
    public var contentAvailable: Bool { stored?.isAvailable ?? false }

    /// Nil for a blob that was decoded from something else than a database's document.
    var stored: Content? { backing as? Content }

    private var subject: String { "blob \(digest ?? "without a digest")" }

    /// The blob that a document of `storage` refers to.
    convenience init(_ reference: BlobReference, in storage: Storage) {
        self.init(
            contentType: reference.contentType,
            backing: Content(in: storage, digest: reference.digest, byteCount: reference.length))
    }

    /// The blob of that content, for a revision's database.
    package convenience init(_ reference: BlobReference, in revision: SavedRevision) {
        self.init(reference, in: revision.database.storage)
    }
}
