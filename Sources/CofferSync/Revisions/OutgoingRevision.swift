internal import Foundation
package import Coffer
package import CofferModel

/// A revision as another database is notified of it: its JSON, and the contents that belong to it.
///
/// Blobs stand among its attachments as `blob_1`, `blob_2`, … in the order in which the body names them, each content once.
/// Those that came without an attachment, and whose content never was here, go without one.
package struct OutgoingRevision: Sendable {
    /// One content of the revision.
    package struct Content: Sendable {
        package let name: String
        package let contentType: String?
        package let digest: String
        package let length: Int
        /// The generation in which it came.
        package let generation: Int
        /// Whether it is a blob's, and stands in the body too.
        package let isBlob: Bool

        /// What `_attachments` says of it, without what says where it is.
        fileprivate var entry: JSONObject {
            var entry: JSONObject = [:]
            entry["content_type"] = .string(contentType ?? "application/octet-stream")
            entry["digest"] = .string(digest)
            entry["length"] = .number(JSONNumber(Int64(length)))
            entry["revpos"] = .number(JSONNumber(Int64(generation)))
            return entry
        }
    }

    /// How contents are reported.
    package enum Form: Sendable {
        /// It is where it was.
        case stub
        /// It follows as a part of the message.
        case follows
        /// It stands in the JSON.
        case inline([UInt8])
        /// Not at all.
        case omitted
    }

    package let revision: SavedRevision
    package let contents: [Content]
    /// Of the revision as it is kept.
    let bodyByteCount: Int
    private let properties: JSONObject

    /// - Throws: `revisionNotFound` (404) where its properties were compacted away, `damaged` (500).
    package init(_ revision: SavedRevision) throws(CofferError) {
        self.revision = revision
        let text = try revision.json
        bodyByteCount = text.count
        var body: JSONObject
        do throws(CofferError) {
            guard let object = try JSONValue(json: Array(text)).objectValue else {
                throw CofferError(.invalidJSON, "it is not an object")
            }
            body = object
        } catch {
            throw CofferError(
                .damaged, of: "document \(revision.documentID)", "its body is not what was written",
                cause: error)
        }
        var contents: [Content] = []
        for (name, entry) in body["_attachments"]?.objectValue ?? [:] {
            guard let length: Int = entry["length"], BlobReference.lengths.contains(length) else {
                throw CofferError(
                    .damaged, of: "document \(revision.documentID)", "an attachment of it has a length that none has")
            }
            contents.append(
                Content(
                    name: name, contentType: entry["content_type"]?.stringValue,
                    digest: entry["digest"]?.stringValue ?? "", length: length,
                    generation: entry["revpos"] ?? revision.revisionID.generation, isBlob: false))
        }
        body["_attachments"] = nil
        let blobs = BlobNames(body, taken: Set(contents.map { ByteKey($0.name) }))
        if !blobs.all.isEmpty {
            var generations = try BlobGenerations(revision)
            let database = revision.document.database
            for blob in blobs.all {
                let digest = blob.reference.digest
                if !database.hasContent(withDigest: digest), try UnattachedBlobs.contains(digest, in: database) {
                    continue
                }
                contents.append(
                    Content(
                        name: blob.name, contentType: blob.reference.contentType, digest: digest,
                        length: blob.reference.length, generation: try generations.generation(of: blob), isBlob: true))
            }
        }
        self.contents = contents
        properties = body
    }

    /// The revision as JSON with `_id`, `_rev` and, where asked for, `_revisions`.
    ///
    /// - Parameters:
    ///   - history: the ids of the revision and its ancestors, the newest first; nil leaves `_revisions` out.
    ///   - form: how each content is notified of.
    package func json(history: [RevisionID]?, _ form: (Content) throws -> Form) rethrows -> JSONObject {
        var json = properties
        json["_id"] = .string(revision.documentID)
        json["_rev"] = .string(revision.revisionID.description)
        if revision.isDeletion { json["_deleted"] = true }
        json["_revisions"] = history.map(Self.revisions)
        var attachments: JSONObject = [:]
        for content in contents {
            var entry = content.entry
            switch try form(content) {
            case .omitted: continue
            case .stub: entry["stub"] = true
            case .follows: entry["follows"] = true
            case .inline(let bytes):
                entry["length"] = nil
                entry["data"] = .string(Data(bytes).base64EncodedString())
            }
            attachments[content.name] = .object(entry)
        }
        if !attachments.isEmpty { json["_attachments"] = .object(attachments) }
        return json
    }

    /// As CouchDB has it: `{"start": 3, "ids": ["c…", "b…", "a…"]}`. Stops where a generation is left out.
    package static func revisions(_ history: [RevisionID]) -> JSONValue {
        guard let newest = history.first else { return ["start": 0, "ids": []] }
        var ids: [JSONValue] = []
        for (distance, id) in history.enumerated() {
            guard id.generation == newest.generation - distance else { break }
            ids.append(.string(id.suffix.text))
        }
        return ["start": .number(JSONNumber(Int64(newest.generation))), "ids": .array(ids)]
    }

    /// The content's bytes as they are read; nil if they are not here.
    ///
    /// - Throws: `damaged` (500), `attachmentNotFound` (404).
    package func open(_ content: Content) throws -> ByteStream? {
        let blob = Blob(BlobReference(digest: content.digest, length: content.length, contentType: nil), in: revision)
        return try blob.chunks.map { chunks in ByteStream(ChunkSource(chunks)) }
    }

    /// Whether the content is here.
    package func isAvailable(_ content: Content) -> Bool {
        revision.document.database.hasContent(withDigest: content.digest)
    }

    /// The bytes of a content between two offsets; nil if they are not here.
    package func read(_ content: Content, in range: Range<Int>) throws -> [UInt8]? {
        let blob = Blob(BlobReference(digest: content.digest, length: content.length, contentType: nil), in: revision)
        return try blob.content(in: range).map { Array($0) }
    }
}

extension OutgoingRevision {
    /// A revision as JSON with `_id`, `_rev` and, where asked for, `_revisions`, made of the text that it is kept as.
    ///
    /// It says what ``json(history:_:)`` says.
    ///
    /// - Returns: nil for a revision that may have contents, or is not what was written.
    static func text(of revision: borrowing LentRevision, withHistory: Bool) -> [UInt8]? {
        let body = revision.json
        guard !CanonicalBody.mayHoldAttachments(body), !CanonicalBody.mayHoldBlobs(body),
            // Among many, one that is damaged would have all of them refused.
            CanonicalBody.isObject(body)
        else { return nil }
        return ReplicatedText(
            body, documentID: revision.documentID, revision.revisionID, isDeletion: revision.isDeletion,
            history: withHistory ? revision.history : nil
        ).bytes
    }
}

/// The pieces of a content, read as they are asked for.
private actor ChunkSource {
    private var iterator: AttachmentChunks.AsyncIterator

    init(_ chunks: AttachmentChunks) { iterator = chunks.makeAsyncIterator() }

    func next() async throws -> [UInt8]? {
        var iterator = iterator
        defer { self.iterator = iterator }
        return try await iterator.next().map { Array($0) }
    }
}

extension ByteStream {
    fileprivate init(_ source: ChunkSource) { self.init { try await source.next() } }
}
