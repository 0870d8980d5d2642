package import CofferModel

/// A revision as another database says it.
package struct ReceivedRevision: Sendable {
    /// Its members; beside ``content`` those that say something of it alone, which begin with an underscore.
    package let members: JSONObject

    /// All its other members. Nil where they are among ``members``, since somebody has to look into them: it has attachments or
    /// blobs, or says something that no revision here can have.
    package let content: CanonicalBody?

    package init(_ members: JSONObject) { self.init(members, content: nil) }

    private init(_ members: JSONObject, content: CanonicalBody?) {
        self.members = members
        self.content = content
    }

    /// The revision that an object says. Content that nobody has to look into becomes what is stored without being read.
    ///
    /// - Throws: `damaged` (500), which text that was checked is not; ``SyncError`` 502 for anything but an object.
    package init(_ part: CheckedJSON.Part) throws {
        let text = part.bytes
        guard !CanonicalBody.mayHoldAttachments(text), !CanonicalBody.mayHoldBlobs(text), part.isObject,
            let parsed = try? DocumentBody(json: text, isForeign: true), parsed.attachments == nil
        else {
            guard let members = try part.value().objectValue else {
                throw SyncError.garbage("a revision that is not an object")
            }
            self.init(members)
            return
        }
        var members: JSONObject = [:]
        members["_id"] = parsed.id.map { .string($0) }
        members["_rev"] = parsed.revision.map { .string($0) }
        members["_deleted"] = parsed.statedDeletion.map { .bool($0) }
        members["_revisions"] = parsed.revisions.map { .object($0) }
        self.init(members, content: parsed.body)
    }
}
