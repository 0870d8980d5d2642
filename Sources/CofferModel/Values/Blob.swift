internal import CofferSealing
internal import Foundation

/// An attachment that is a property's value: bytes that are kept in a file of their own, beside the documents.
///
/// ```swift
/// task["avatar"] = Blob(contentType: "image/jpeg", data: imageData)
/// try database.saveDocument(task)
/// let avatar = try task.blob(forKey: "avatar")?.content
/// ```
///
/// It may stand anywhere in a document, in lists and objects too. In the document's JSON there is only what is known of
/// it: `{"@type":"blob","digest":"sha1-…","length":n,"content_type":"…"}`. Its content is written when the document is
/// saved, and read when it is asked for. Two blobs are equal when their contents are, as far as that is known, or when
/// they are one. Safe from any thread.
public final class Blob: Sendable {
    /// The content's type, by convention a MIME type; nil if it is unknown.
    public let contentType: String?

    /// Where the content is.
    package let backing: any BlobContent

    package init(contentType: String?, backing: any BlobContent) {
        self.contentType = contentType
        self.backing = backing
    }

    /// The SHA-1 of the content, as `sha1-` and base64; nil while the content was not read through, as of a stream that
    /// was not saved.
    public var digest: String? { backing.digest }

    /// The content's length in bytes; nil while it is not known.
    public var length: Int? { backing.length }
}

extension Blob: CustomStringConvertible, CustomReflectable {
    /// The blob's length, where it is known, and none of its content.
    public var description: String { length.map { "blob (\($0) bytes)" } ?? "blob" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Where a blob's content is. The layer above knows the places.
package protocol BlobContent: AnyObject, Sendable {
    var digest: String? { get }
    var length: Int? { get }
}

/// What a document's JSON says of a blob.
package struct BlobReference: Sendable, Equatable {
    package let digest: String
    package let length: Int
    package let contentType: String?

    /// The lengths in bytes that a content can have, blob or attachment.
    package static let lengths = 0..<Cobblestone.plaintextByteLimit

    package init(digest: String, length: Int, contentType: String?) {
        self.digest = digest
        self.length = length
        self.contentType = contentType
    }

    /// The reference that an object is, if it is one.
    package init?(_ object: JSONObject) {
        guard case .string(let type)? = object["@type"], haveSameBytes(type, "blob"),
            case .string(let digest)? = object["digest"], let length: Int = object["length"],
            Self.lengths.contains(length)
        else { return nil }
        self.init(digest: digest, length: length, contentType: object["content_type"]?.stringValue)
    }

    package var object: JSONObject {
        var object: JSONObject = [
            "@type": "blob", "digest": .string(digest), "length": .number(JSONNumber(Int64(length))),
        ]
        object["content_type"] = contentType.map { .string($0) }
        return object
    }
}

extension Blob {
    /// What is known of it, nil while its digest is not.
    package var reference: BlobReference? {
        guard let digest, let length else { return nil }
        return BlobReference(digest: digest, length: length, contentType: contentType)
    }
}

extension Blob: Hashable {
    /// Whether both have the same content, as far as their digests are known, or are one.
    public static func == (left: Blob, right: Blob) -> Bool {
        if left === right { return true }
        guard let digest = left.digest, let other = right.digest else { return false }
        return haveSameBytes(digest, other)
    }

    /// Hashes nothing: what `==` compares may become known later.
    public func hash(into hasher: inout Hasher) {}
}

extension JSONValue {
    /// The blob, or nil if the value is not a blob.
    public var blobValue: Blob? {
        if case .blob(let blob) = self { blob } else { nil }
    }
}

extension Blob: JSONConvertible {
    /// The blob, or nil if the value is not a blob.
    public convenience init?(jsonValue: JSONValue) {
        guard case .blob(let blob) = jsonValue else { return nil }
        self.init(contentType: blob.contentType, backing: blob.backing)
    }

    /// The blob as a value.
    public var jsonValue: JSONValue { .blob(self) }
}

extension JSONObject {
    /// All blobs in it, at any depth.
    package var blobs: [Blob] {
        var found: [Blob] = []
        for member in members { member.value.collectBlobs(into: &found) }
        return found
    }

    /// All references to blobs in it, at any depth.
    package var blobReferences: [BlobReference] {
        var found: [BlobReference] = []
        for member in members { member.value.collectReferences(into: &found) }
        return found
    }

    /// The same object with every reference to a blob replaced by a blob.
    package func replacingReferences(by blob: (BlobReference) -> Blob) -> JSONObject {
        var object = self
        for (key, value) in self {
            if let replaced = value.replacingReferences(by: blob) { object[key] = replaced }
        }
        return object
    }
}

extension JSONValue {
    fileprivate func collectBlobs(into found: inout [Blob]) {
        switch self {
        case .blob(let blob): found.append(blob)
        case .array(let elements): for element in elements { element.collectBlobs(into: &found) }
        case .object(let object): found += object.blobs
        case .null, .bool, .number, .string: break
        }
    }

    fileprivate func collectReferences(into found: inout [BlobReference]) {
        switch self {
        case .object(let object):
            if let reference = BlobReference(object) { found.append(reference) } else { found += object.blobReferences }
        case .array(let elements): for element in elements { element.collectReferences(into: &found) }
        case .null, .bool, .number, .string, .blob: break
        }
    }

    /// Nil where nothing is to be replaced.
    fileprivate func replacingReferences(by blob: (BlobReference) -> Blob) -> JSONValue? {
        switch self {
        case .object(let object):
            if let reference = BlobReference(object) { return .blob(blob(reference)) }
            return .object(object.replacingReferences(by: blob))
        case .array(let elements):
            return .array(elements.map { $0.replacingReferences(by: blob) ?? $0 })
        case .null, .bool, .number, .string, .blob:
            return nil
        }
    }
}

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

/// The digest property of an attachment, as Couchbase and CouchDB write it: `sha1-` and base64 of 20 bytes.
package enum SHA1Digest {
    package static func text(of bytes: [UInt8]) -> String { "sha1-" + Data(bytes).base64EncodedString() }

    /// The 20 bytes, or nil for another kind of digest.
    package static func bytes(of text: String) -> [UInt8]? {
        guard text.utf8.starts(with: "sha1-".utf8), let data = Data(base64Encoded: String(text.dropFirst(5))),
            data.count == 20
        else { return nil }
        // Base64 has several texts for the same bytes; only the usual one means them.
        return Self.text(of: Array(data)).utf8.elementsEqual(text.utf8) ? Array(data) : nil
    }
}
