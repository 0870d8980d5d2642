public import CofferModel
public import CofferSealing
public import Foundation

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
