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
