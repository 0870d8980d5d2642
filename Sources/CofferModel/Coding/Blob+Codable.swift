/// What a coder needs to know of the database that a blob is saved into or read from.
package struct BlobCoding: Sendable {
    /// Writes a blob's content where it belongs, so that its digest is known.
    package var prepare: @Sendable (Blob) throws -> Void
    /// The blob that a reference means.
    package var resolve: @Sendable (BlobReference) -> Blob

    package init(
        prepare: @escaping @Sendable (Blob) throws -> Void, resolve: @escaping @Sendable (BlobReference) -> Blob
    ) {
        self.prepare = prepare
        self.resolve = resolve
    }

    /// Where a coder's `userInfo` has it.
    package static let key: CodingUserInfoKey = {
        guard let key = CodingUserInfoKey(rawValue: "coffer.blobs") else { preconditionFailure("a key from a literal") }
        return key
    }()
}

extension Blob: Codable {
    private enum Key: String, CodingKey {
        case type = "@type"
        case digest, length
        case contentType = "content_type"
    }

    /// Reads what a document says of a blob. Its content is there when the document was read from a database.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        guard try container.decode(String.self, forKey: .type) == "blob" else {
            throw DecodingError.dataCorruptedError(forKey: .type, in: container, debugDescription: "not a blob")
        }
        let length = try container.decode(Int.self, forKey: .length)
        guard BlobReference.lengths.contains(length) else {
            throw DecodingError.dataCorruptedError(
                forKey: .length, in: container, debugDescription: "the length is beyond the limit of a content")
        }
        let reference = BlobReference(
            digest: try container.decode(String.self, forKey: .digest), length: length,
            contentType: try container.decodeIfPresent(String.self, forKey: .contentType))
        let blob = (decoder.userInfo[BlobCoding.key] as? BlobCoding)?.resolve(reference)
        self.init(contentType: reference.contentType, backing: blob?.backing ?? DetachedContent(reference))
    }

    /// Writes what a document says of a blob; saving the value to a database saves the content, too.
    public func encode(to encoder: any Encoder) throws {
        try (encoder.userInfo[BlobCoding.key] as? BlobCoding)?.prepare(self)
        guard let reference else {
            throw EncodingError.invalidValue(
                self, .init(codingPath: encoder.codingPath, debugDescription: "the blob's content was not saved"))
        }
        var container = encoder.container(keyedBy: Key.self)
        try container.encode("blob", forKey: .type)
        try container.encode(reference.digest, forKey: .digest)
        try container.encode(reference.length, forKey: .length)
        try container.encodeIfPresent(reference.contentType, forKey: .contentType)
    }
}

/// The content of a blob that was read from somewhere else than a database: only its description is known.
private final class DetachedContent: BlobContent {
    let digest: String?
    let length: Int?

    init(_ reference: BlobReference) {
        digest = reference.digest
        length = reference.length
    }
}
