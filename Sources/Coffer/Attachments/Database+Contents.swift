internal import CofferModel
internal import CofferRecords
internal import CofferSealing
public import Foundation

/// A document's reference to the content of an attachment or blob, as its JSON states it.
public struct ContentReference: Sendable, Hashable {
    /// The SHA-1 of the content, as `sha1-` and base64.
    public let digest: String

    /// The length of the content in bytes.
    public let length: Int
}

extension Database {
    // MARK: JSON with contents

    /// Saves JSON as a document's next revision, together with the contents that it names by their digests.
    ///
    /// This is how a document comes back out of an export: `_attachments` and blobs stand in its JSON as
    /// ``SavedRevision/json`` has them, and their contents are elsewhere.
    ///
    /// - Parameters:
    ///   - json: one object in UTF-8: see `save(json:withID:replacing:)`.
    ///   - id: the document's id. Default: the JSON's `_id`, or one that nobody else has.
    ///   - revisionID: the revision that this one replaces. Default: the JSON's `_rev`; with neither, there must be no such
    ///     document.
    ///   - content: asked once for each content that the JSON names and that is not in this database, and given back as a
    ///     blob, which is read then. Nil where there isn't one. It is called before the database is locked, on this
    ///     thread.
    /// - Returns: the revision that it became.
    /// - Throws: what `content` throws; `invalidAttachment` (400) for a content that has another digest or length than the
    ///   JSON says; `attachmentNotFound` (404) for one that is nowhere; and as `save(json:withID:replacing:)`. Nothing is
    ///   changed then.
    @discardableResult
    public func save(
        json: Data, withID id: String? = nil, replacing revisionID: RevisionID? = nil,
        contents content: (ContentReference) throws -> Blob?
    ) throws -> SavedRevision {
        try draft(ofJSON: json, id, revisionID, contents: content).save()
    }
}

extension Database {
    func draft(
        ofJSON json: Data, _ id: String?, _ revisionID: RevisionID?, contents: (ContentReference) throws -> Blob?
    ) throws -> PreparedRevision {
        let draft = try draft(ofJSON: json, id, revisionID)
        let subject = draft.document.subject
        var staged: [StagedContent] = []
        for reference in try missingContents(of: draft) {
            guard let blob = try contents(reference), let content = blob.stored else { continue }
            if let file = try StagedContent(content, in: storage) { staged.append(file) }
            guard let digest = content.digest, digest.utf8.elementsEqual(reference.digest.utf8) else {
                throw CofferError(
                    .invalidAttachment, of: subject,
                    "the bytes given as content \(reference.digest) have another digest")
            }
            guard content.length == reference.length else {
                throw CofferError(
                    .invalidAttachment, of: subject,
                    "content \(reference.digest) has \(content.length ?? 0) bytes, not \(reference.length)")
            }
        }
        return draft.bringing(staged)
    }

    /// The contents that a draft names and that are not in this database, each once.
    private func missingContents(of draft: PreparedRevision) throws(CofferError) -> [ContentReference] {
        let references = draft.content.references
        guard !references.isEmpty else { return [] }
        let known = try storage.read { (tables) throws(CofferError) in
            try references.map { (reference) throws(CofferError) in
                try storage.attachment(reference.key, tables)?.proof != nil
            }
        }
        var missing: [ContentReference] = []
        var seen: Set<ContentReference> = []
        for (reference, isKnown) in zip(references, known) where !isKnown {
            let reference = ContentReference(digest: reference.digest, length: reference.byteCount)
            if seen.insert(reference).inserted { missing.append(reference) }
        }
        return missing
    }
}
