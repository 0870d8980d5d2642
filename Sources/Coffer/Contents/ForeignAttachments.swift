internal import CofferModel
internal import CofferSealing
internal import Foundation

extension Content {
    /// The content's MD5; nil if the content is not here, or can be read only once.
    fileprivate func md5(subject: String) throws(CofferError) -> Data? {
        guard let chunks = try AttachmentChunks(self, subject: subject) else { return nil }
        var digest = try StreamingDigest(.md5)
        var cursor = chunks.cursor()
        while let chunk = try cursor.next() { digest.update(chunk.bytes) }
        return Data(digest.finalize())
    }
}

/// The attachments of a revision of another database: what its `_attachments` say, in the form in which they are kept here.
struct ForeignAttachments {
    private(set) var stubs: [(name: String, stub: AttachmentStub)] = []
    private(set) var staged: [StagedContent] = []

    /// A digest that another database made may be as long as that, in bytes. It stands in an index.
    private static let digestByteLimit = 200

    /// - Parameters:
    ///   - attachments: what `_attachments` says, as CouchDB writes it: stubs, `data` in base64, or `follows` with the content
    ///     in `contents`.
    ///   - contents: contents by the names of their attachments.
    ///   - areContentsChecked: whether `contents` are known to have the digests that `_attachments` says.
    ///   - generation: the revision's.
    /// - Throws: `invalidAttachment` (400).
    init(
        _ attachments: JSONObject, contents: [ByteKey: Blob], areContentsChecked: Bool, generation: Int,
        in storage: Storage
    ) throws(CofferError) {
        var unused = contents.count
        for (name, value) in attachments {
            let content = contents[ByteKey(name)]
            if content != nil { unused -= 1 }
            let entry = try Entry(name, value, generation: generation)
            if let content = content?.stored {
                if !areContentsChecked { try entry.checkMD5(of: content) }
                stubs.append((name, try stage(content, entry, in: storage)))
            } else if let content = try entry.inlineContent() {
                try entry.checkMD5(of: content)
                stubs.append((name, try stage(content, entry, in: storage)))
            } else {
                stubs.append((name, try entry.stub()))
            }
        }
        guard unused == 0 else {
            throw CofferError(
                .invalidAttachment, "a content was given for an attachment that the revision doesn't have")
        }
    }

    /// The `_attachments` of the revision's body; nil if it has none.
    var json: JSONObject? {
        stubs.isEmpty ? nil : JSONObject(uniqueKeysWithValues: stubs.map { ($0.name, $0.stub.json) })
    }

    private mutating func stage(
        _ content: Content, _ entry: Entry, in storage: Storage
    ) throws(CofferError) -> AttachmentStub {
        if let file = try StagedContent(content, in: storage) { staged.append(file) }
        guard let digest = content.digest, let byteCount = content.length else {
            throw CofferError(.invalidAttachment, of: entry.subject, "its content is unknown")
        }
        if let stated = entry.digest, SHA1Digest.bytes(of: stated) != nil, stated != digest {
            throw CofferError(
                .invalidAttachment, of: entry.subject, "the digest of its content differs from what it says")
        }
        guard entry.byteCount == nil || entry.byteCount == byteCount else {
            throw CofferError(
                .invalidAttachment, of: entry.subject, "the length of its content differs from what it says")
        }
        return AttachmentStub(
            contentType: entry.contentType, digest: digest, byteCount: byteCount,
            changedInGeneration: entry.generation)
    }

    /// One member of `_attachments`.
    private struct Entry {
        let subject: String
        let contentType: String?
        let digest: String?
        let byteCount: Int?
        let generation: Int
        private let inline: String?
        /// How the content is packed where the other database has it: then its digest is that of the packed bytes.
        private let encoding: String?
        private let isStub: Bool

        init(_ name: String, _ value: JSONValue, generation revisionGeneration: Int) throws(CofferError) {
            let subject = "attachment \(name)"
            self.subject = subject
            guard let object = value.objectValue else {
                throw CofferError(.invalidAttachment, of: subject, "it is not an attachment")
            }
            func string(_ key: String) throws(CofferError) -> String? {
                guard let value = object[key], value != .null else { return nil }
                guard let text = value.stringValue else {
                    throw CofferError(.invalidAttachment, of: subject, "its \(key) is not a string")
                }
                return text
            }
            func number(_ key: String) throws(CofferError) -> Int? {
                guard let value = object[key], value != .null else { return nil }
                let number: Int? = object[key]
                guard let number, BlobReference.lengths.contains(number) else {
                    throw CofferError(.invalidAttachment, of: subject, "its \(key) is not a valid number")
                }
                return number
            }
            contentType = try string("content_type")
            digest = try string("digest")
            byteCount = try number("length")
            inline = try string("data")
            encoding = try string("encoding")
            isStub = object["stub"] == true
            // CouchDB says 0 where it does not know.
            let generation = try number("revpos") ?? 0
            self.generation = generation == 0 ? revisionGeneration : generation
            guard self.generation <= revisionGeneration else {
                throw CofferError(.invalidAttachment, of: subject, "its revpos is beyond the revision's generation")
            }
            guard digest?.isEmpty != true, (digest?.utf8.count ?? 0) <= ForeignAttachments.digestByteLimit else {
                throw CofferError(.invalidAttachment, of: subject, "its digest is invalid")
            }
        }

        /// The content that stands in the JSON; nil if there isn't one.
        func inlineContent() throws(CofferError) -> Content? {
            guard let inline else { return nil }
            guard encoding == nil else {
                throw CofferError(
                    .invalidAttachment, of: subject, "its data is compressed, and must be decompressed first")
            }
            guard let data = Data(base64Encoded: inline) else {
                throw CofferError(.invalidAttachment, of: subject, "its data is not base64")
            }
            return Content(data)
        }

        /// Compares a content with an MD5 that is said of it, unless that is of its packed form.
        ///
        /// - Throws: `invalidAttachment` (400) where it has another; what reading the content throws.
        func checkMD5(of content: Content) throws(CofferError) {
            guard let digest, digest.hasPrefix("md5-"), encoding == nil else { return }
            guard let found = try content.md5(subject: subject), digest == "md5-" + found.base64EncodedString() else {
                throw CofferError(
                    .invalidAttachment, of: subject, "the digest of its content differs from what it says")
            }
        }

        /// What is kept of it while its content is elsewhere.
        func stub() throws(CofferError) -> AttachmentStub {
            guard isStub, let digest, let byteCount else {
                throw CofferError(.invalidAttachment, of: subject, "it has neither content, nor digest and length")
            }
            return AttachmentStub(
                contentType: contentType, digest: digest, byteCount: byteCount, changedInGeneration: generation)
        }
    }
}
