package import CofferModel
internal import CofferRecords
package import CofferSealing
public import Foundation
internal import CofferVault

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

/// A revision that has a content.
package struct ContentUse: Sendable, Hashable {
    package let documentID: String
    package let revisionID: RevisionID
    /// Whether nothing follows it.
    package let isLeaf: Bool
    fileprivate let sequence: SequenceNumber
}

/// A content that revisions have and that is not here.
package struct AwaitedContent: Sendable {
    /// Its digest, as the revisions have it.
    package let digest: String
    package let byteCount: Int
    /// Tells where to go on: see ``Database/awaitedContents(after:limit:)``.
    package let number: Int64
}

extension Database {
    /// How many contents of attachments and blobs revisions have that are not here, since a pull left them out.
    ///
    /// Contents of revisions that a compaction has emptied are not counted.
    ///
    /// - Throws: `damaged` and `closed` (500).
    public var missingContentCount: Int {
        get throws(CofferError) {
            try storage.read { (tables) throws(CofferError) in try tables.attachments.awaitedContentCount() }
        }
    }
}

// What a replicator asks of a database for contents that come later than their documents, and go earlier.
extension Database {
    /// Whether any revision has, or had, a content that is not here.
    ///
    /// - Throws: `damaged` and `closed` (500).
    package var awaitsContents: Bool {
        get throws(CofferError) {
            try storage.read { (tables) throws(CofferError) in
                try tables.attachments.areAnyAwaited()
            }
        }
    }

    /// The contents that revisions have and that are not here, in an order that stays.
    ///
    /// - Parameters:
    ///   - number: of the last one that is known already. Default: 0, from the first.
    ///   - limit: how many at most.
    /// - Throws: `damaged` and `closed` (500).
    package func awaitedContents(after number: Int64 = 0, limit: Int) throws(CofferError) -> [AwaitedContent] {
        try storage.read { (tables) throws(CofferError) in
            try tables.attachments.awaitedContents(after: ContentNumber(number), limit: limit).map { row in
                AwaitedContent(digest: row.key.text, byteCount: row.byteCount, number: row.number.rawValue)
            }
        }
    }

    /// The revisions that have the content of that digest, the latest first. Those that a compaction has emptied are not
    /// among them.
    ///
    /// - Parameter limit: so many at most. Default: nil, all.
    /// - Throws: `damaged` and `closed` (500).
    package func uses(ofContent digest: String, limit: Int? = nil) throws(CofferError) -> [ContentUse] {
        try storage.read { (tables) throws(CofferError) in
            guard let row = try storage.attachment(AttachmentKey(digest), tables) else { return [] }
            return try tables.contentUses(ofAttachment: row.number, limit: limit)
        }
    }

    /// Makes what has arrived the content of that digest, durably, for all revisions that have it.
    ///
    /// Where another database gave the digest, they say the SHA-1 from here on, as if the content had come with them. Nobody
    /// is notified, and no revision gets another id or sequence.
    ///
    /// - Parameter digest: of the content as the revisions have it. The caller has checked that it is this one's.
    /// - Throws: `attachmentNotFound` (404) if no revision uses it any more; `invalidAttachment` (400) for another length;
    ///   `digestCollision` (409); `readOnly` (403), `busy` (503), `closed` (500), `noSpace` (507). Nothing is changed then.
    package func install(_ content: Blob, as digest: String) async throws {
        guard let stored = content.stored else { throw CofferError(.invalidAttachment, "a blob without content") }
        try await storage.inBackground { [storage] () throws(CofferError) in
            guard let staged = try StagedContent(stored, in: storage) else { return }
            let renamed = try storage.alone { (writer) throws(CofferError) in
                try storage.durably(writer) { (writer) throws(CofferError) in
                    try ArrivedContent(file: staged.file, digest: digest)
                        .install(storage.renamedContents, in: writer)
                }
            }
            if let renamed { storage.renamedContents.note(digest, is: renamed) }
        }
    }

    /// Removes the content of that digest from this database, as if it had never come: the caller has made sure that it can
    /// be had again. The row goes first, durably, and then the file.
    ///
    /// - Parameter uses: the revisions that have it, as ``uses(ofContent:limit:)`` said.
    /// - Throws: `conflict` (409) where other revisions have it by now; `readOnly` (403), `busy` (503), `closed` (500).
    package func removeContent(_ digest: String, usedBy uses: [ContentUse]) async throws {
        try await storage.maintainInBackground { [storage] () throws(CofferError) in
            try storage.alone { (writer) throws(CofferError) in
                let removed = try storage.durably(writer) { (writer) throws(CofferError) in
                    guard let row = try storage.attachment(AttachmentKey(digest), writer.tables),
                        let content = row.content
                    else { return [UInt8]?.none }
                    guard try Set(writer.tables.contentUses(ofAttachment: row.number)) == Set(uses) else {
                        throw CofferError(
                            .conflict, of: "content \(digest)", "the revisions that use it have changed meanwhile")
                    }
                    try writer.change { () throws(CofferError) in try writer.records.attachments.forget(row.number) }
                    return content.sha1
                }
                // The row doesn't mean the file any more, on the disk either, and nobody writes before this is done. One that
                // is left over goes with the next compaction.
                if let removed { try storage.attachments.remove([removed]) }
            }
        }
    }
}

extension Snapshot {
    fileprivate func contentUses(ofAttachment number: ContentNumber, limit: Int? = nil) throws(CofferError)
        -> [ContentUse]
    {
        try uses(ofAttachment: number, limit: limit).map { (use) throws(CofferError) in
            var isLeaf = use.document.winner == use.sequence
            if !isLeaf, use.document.flags.contains(.isBranched) {
                let revision = RevisionReference(sequence: use.sequence, id: use.revisionID)
                isLeaf = try trees.isLeaf(revision, ofDocument: use.document.number)
            }
            return ContentUse(
                documentID: use.documentID, revisionID: use.revisionID, isLeaf: isLeaf, sequence: use.sequence)
        }
    }
}

/// A content that has arrived for revisions that are here already.
private struct ArrivedContent {
    let file: StagedAttachment
    /// What the revisions call it.
    let digest: String

    /// Makes the file the content that revisions await under this digest. Its place is given to it with the commit.
    ///
    /// - Parameter names: what contents that came before were called.
    /// - Returns: its SHA-1, where the revisions called it otherwise so far.
    func install(_ names: RenamedContents, in writer: borrowing Writer) throws(CofferError) -> [UInt8]? {
        let subject = "content \(digest)"
        let key = AttachmentKey(digest)
        guard let awaited = try writer.tables.attachments.attachment(key) else {
            // Somebody else was faster.
            if let sha1 = names.sha1(of: digest),
                try writer.tables.attachments.attachment(.sha1(sha1))?.proof != nil
            {
                return nil
            }
            throw CofferError(.attachmentNotFound, of: subject, "no revision uses it any more")
        }
        let uses = try writer.tables.contentUses(ofAttachment: awaited.number)
        guard !uses.isEmpty else {
            throw CofferError(.attachmentNotFound, of: subject, "no revision uses it any more")
        }
        guard file.digest.byteCount == awaited.byteCount else {
            throw CofferError(.invalidAttachment, of: subject, "its revisions state a wrong length for it")
        }
        let sha1 = file.digest.sha1
        if case .sha1(let known) = key, known != sha1 {
            throw CofferError(.invalidAttachment, of: subject, "the downloaded bytes have another digest")
        }
        let present = try writer.tables.attachments.attachment(.sha1(sha1))
        if let known = present?.content, known != file.digest {
            throw CofferError(
                .digestCollision, of: subject, "another content with the same SHA-1 is in this database")
        }
        try writer.files.stage(file)
        // One that was moved to another generation of the store is another file.
        guard let file = writer.files.staged(.sha1(sha1)) else { return nil }
        return try writer.change { () throws(CofferError) in
            let number = try file.install(over: present, in: writer)
            if number == awaited.number { return nil }
            try rename(awaited.number, to: SHA1Digest.text(of: sha1), number, uses, in: writer)
            return sha1
        }
    }

    /// Has revisions call the content by its SHA-1, and removes the row that they called it by, unless their blobs still do.
    private func rename(
        _ old: ContentNumber, to name: String, _ new: ContentNumber, _ uses: [ContentUse], in writer: borrowing Writer
    ) throws(CofferError) {
        let isOld = { (text: String) in text.utf8.elementsEqual(digest.utf8) }
        var isStillUsed = false
        for use in uses {
            let stored = try writer.tables.revision(sequence: use.sequence, of: DocumentID(use.documentID))
            guard let bytes = stored.body else { continue }
            var body = try DocumentBody(json: bytes, valueLimit: JSONLimits.storedValueCount).body
            if let renamed = try body.renamingContents({ isOld($0.digest) ? name : nil }) {
                body = renamed
                // Where the revision was made here, its id does not follow from its content any more.
                try writer.records.update(use.sequence, body: body.bytes, adding: .isForeign)
            }
            try writer.records.attachments.insertUse(of: new, by: use.sequence)
            let references = try RevisionBody(body, subject: writer.records.subject).references
            if references.contains(where: { isOld($0.digest) }) {
                isStillUsed = true
                continue
            }
            try writer.records.attachments.removeUse(of: old, by: use.sequence)
        }
        if !isStillUsed { try writer.records.attachments.remove(old) }
    }
}
