internal import Foundation
package import Coffer
package import CofferModel

/// A revision that another database tells of, on its way into this one.
package struct IncomingRevision: Sendable {
    /// A content that it has.
    package struct Content: Sendable, Equatable {
        package let name: String
        package let contentType: String?
        /// As the other database has it.
        package let digest: String?
        package let length: Int?
        package let generation: Int?
        /// Whether it follows as a part of the message that the revision came in.
        package let follows: Bool
        /// Whether it is sent packed, and its digest is that of the packed bytes.
        package let isPacked: Bool
        /// Where it stands for a blob.
        package let blob: BlobReference?
        /// The content as it stands in the JSON, in base64: a blob's, or a packed one.
        package var inline: String?
    }

    package let id: String
    package let revisionID: RevisionID
    /// The revision's id and its ancestors', as far as it tells.
    package let history: RevisionHistory
    package let isDeletion: Bool

    /// Contents that are not in the JSON, in the order in which it names them.
    package private(set) var contents: [Content]

    /// Without what begins with an underscore and is said above.
    private var properties: JSONObject
    /// What `_attachments` is to say, of attachments only.
    private var attachments: JSONObject

    /// - Throws: ``SyncError`` 502 for what is not a revision.
    package init(_ json: JSONObject) throws(SyncError) {
        guard let id = json["_id"]?.stringValue, !id.isEmpty else { throw .garbage("a revision without a document") }
        let subject = "document \(id)"
        self.id = id
        guard let revisionID = json["_rev"]?.stringValue.flatMap(RevisionID.init) else {
            if json["_rev"]?.stringValue.map(RevisionID.isForeign) == true { throw .foreignRevision(subject) }
            throw .garbage("a revision without an id", of: subject)
        }
        self.revisionID = revisionID
        guard json["_deleted"] == nil || json["_deleted"]?.boolValue != nil else {
            throw .garbage("a revision whose _deleted is neither true nor false", of: subject)
        }
        isDeletion = json["_deleted"] == true
        history = try Self.history(json["_revisions"], revisionID, subject)
        properties = json
        for key in ["_id", "_rev", "_revisions", "_deleted", "_attachments"] { properties[key] = nil }
        attachments = [:]
        contents = []
        guard let entries = json["_attachments"] else { return }
        guard let entries = entries.objectValue else { throw .garbage("_attachments is not an object", of: subject) }
        var order = properties
        // Blobs are numbered in canonical order.
        if !entries.isEmpty, !properties.blobReferences.isEmpty {
            order = (try? Self.canonical(properties)) ?? properties
        }
        let blobs = BlobNames.references(in: order, among: entries)
        for (name, entry) in entries {
            guard let entry = entry.objectValue else { throw .garbage("an invalid attachment", of: subject) }
            let digest = entry["digest"]?.stringValue
            let blob = blobs[ByteKey(name)]
            let isPacked = entry["encoding"]?.stringValue == "gzip"
            if entry["data"] != nil, blob == nil, !isPacked {
                var entry = entry
                if InlineContent.mayBeKeptPacked(entry["content_type"]?.stringValue) { entry["digest"] = nil }
                attachments[name] = .object(entry)
                continue
            }
            contents.append(
                Content(
                    name: name, contentType: entry["content_type"]?.stringValue, digest: digest,
                    length: (entry["length"] as Int?).flatMap { BlobReference.lengths.contains($0) ? $0 : nil },
                    generation: entry["revpos"], follows: entry["follows"] == true,
                    isPacked: isPacked, blob: blob,
                    inline: entry["data"]?.stringValue))
        }
    }

    private static func canonical(_ object: JSONObject) throws -> JSONObject {
        try JSONValue(json: JSONValue.object(object).canonicalJSON()).objectValue ?? object
    }

    /// - Throws: ``SyncError`` 502 for what is not the revision's history, or holds an id that Coffer can't hold.
    private static func history(
        _ json: JSONValue?, _ revisionID: RevisionID, _ subject: String
    ) throws(SyncError) -> RevisionHistory {
        guard let json else { return RevisionHistory(of: revisionID) }
        guard let object = json.objectValue, let history = try? RevisionHistory(json: object) else {
            if holdsForeignID(json) { throw .foreignRevision(subject) }
            throw .garbage("_revisions is not a history of the revision", of: subject)
        }
        guard history.newest == revisionID else { throw .garbage("_revisions is another revision's", of: subject) }
        return history
    }

    /// Whether it has an id that CouchDB may have and Coffer can't.
    private static func holdsForeignID(_ revisions: JSONValue) -> Bool {
        guard let start: Int = revisions["start"], let suffixes = revisions["ids"]?.arrayValue,
            suffixes.count <= min(start, RevisionHistory.limit)
        else { return false }
        return suffixes.enumerated().contains { RevisionID.isForeign("\(start - $0)-\($1.stringValue ?? "")") }
    }

    // MARK: Contents

    /// Settles the contents that this database has: those of the same digest, and those that an ancestor here has too.
    ///
    /// - Returns: the others, which have to be brought or awaited.
    /// - Throws: `damaged` and `closed` (500).
    package func missingContents(in database: Database) throws(CofferError) -> [Content] {
        var missing: [Content] = []
        var ancestor: SavedRevision??
        for content in contents where content.inline == nil {
            if let digest = content.blob?.digest ?? content.digest, database.hasContent(withDigest: digest) { continue }
            if content.blob == nil {
                if ancestor == nil { ancestor = .some(try knownAncestor(in: database)) }
                if try ancestor.flatMap({ $0 }).map({ (known) throws(CofferError) in
                    try same(content, in: known)?.contentAvailable ?? false
                }) ?? false {
                    continue
                }
            }
            missing.append(content)
        }
        return missing
    }

    /// Saves the revision in `database`, in a transaction of its own or in the one that the calling thread is in.
    ///
    /// One that is refused has changed nothing, so that among many it needs no nested transaction, which would have each page
    /// that it changes encrypted once more.
    ///
    /// - Parameters:
    ///   - brought: contents by the names of their attachments. Those that are neither here nor brought are awaited.
    ///   - source: the database that a pull brings it from. Default: nil, a peer pushed it.
    /// - Throws: as `putExistingRevision`; ``SyncError`` 502 where a content is not the blob that it should be.
    @discardableResult
    package func save(
        in database: Database, contents brought: [ByteKey: Blob], from source: String? = nil
    ) throws -> ExistingRevisionResult {
        var json = properties
        var attachments = attachments
        var names: [ByteKey: Blob] = [:]
        var blobs: [Blob] = []
        var ancestor: SavedRevision??
        var inlineByteLimit = InlineContent.byteLimit
        for content in contents {
            var bytes = brought[ByteKey(content.name)]
            if let text = content.inline {
                let inline = InlineContent(
                    text: text, isPacked: content.isPacked, digest: content.digest, length: content.length,
                    subject: "attachment \(content.name) of \(subject)")
                let data = try inline.data(upTo: inlineByteLimit)
                inlineByteLimit -= data.count
                bytes = Blob(data: data)
            }
            if let blob = content.blob {
                guard let bytes else { continue }
                if bytes.digest == blob.digest {
                    blobs.append(bytes)
                    continue
                }
                // Known by its name and length alone it may be an attachment of its own, after all.
                guard let digest = content.digest, !digest.hasPrefix("sha1-"), content.inline == nil else {
                    throw SyncError.garbage(
                        "blob \(content.name) has another digest than its document says", of: subject)
                }
            }
            var entry: JSONObject = [:]
            entry["content_type"] = content.contentType.map { .string($0) }
            entry["digest"] = content.digest.map { .string($0) }
            entry["length"] = content.length.map { .number(JSONNumber(Int64($0))) }
            entry["revpos"] = content.generation.map { .number(JSONNumber(Int64($0))) }
            entry["stub"] = true
            if let bytes {
                names[ByteKey(content.name)] = bytes
                // What came was checked: the length that is said of it may be that of its packed form.
                if content.isPacked || content.inline == nil { entry["length"] = nil }
            } else if content.digest.map(database.hasContent) != true {
                if ancestor == nil { ancestor = .some(try knownAncestor(in: database)) }
                if let known = ancestor.flatMap({ $0 }), let same = try same(content, in: known) {
                    entry["digest"] = .string(same.digest)
                    entry["length"] = .number(JSONNumber(Int64(same.length)))
                }
            }
            attachments[content.name] = .object(entry)
        }
        if !attachments.isEmpty { json["_attachments"] = .object(attachments) }
        let attached = contents.compactMap { $0.blob.map { ByteKey($0.digest) } }
        let unattached = try UnattachedBlobs(properties.blobReferences, attached: Set(attached), in: database)
        let result = try database.putExistingRevision(
            json, withID: id, history: history, isDeletion: isDeletion, attachments: names, contents: blobs,
            from: source)
        if !result.wasKnown {
            try unattached.note(in: database)
            try database.notePeer()
        }
        return result
    }

    private var subject: String { "document \(id)" }

    /// The nearest ancestor that is here with its properties.
    private func knownAncestor(in database: Database) throws(CofferError) -> SavedRevision? {
        let document = database.document(withID: id)
        for ancestor in history.ids.dropFirst() {
            if let known = try document.revision(withID: ancestor), try known.propertiesAvailable { return known }
        }
        return nil
    }

    /// The attachment of an ancestor that a content still is: nobody has changed it since.
    private func same(_ content: Content, in ancestor: SavedRevision) throws(CofferError) -> Attachment? {
        guard !content.follows, let generation = content.generation, generation > 0,
            generation <= ancestor.revisionID.generation,
            let attachment = try ancestor.attachment(named: content.name),
            attachment.changedInGeneration == generation,
            content.length == nil || content.length == attachment.length
        else { return nil }
        return attachment
    }
}
