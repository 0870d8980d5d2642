internal import Coffer
internal import CofferModel

extension OutgoingRevision {
    /// A revision as JSON with `_id`, `_rev` and, where asked for, `_revisions`, made of the text that it is kept as.
    ///
    /// What has no contents need not be taken apart and put together again. It says what ``json(history:_:)`` says.
    ///
    /// - Parameter history: the ids of the revision and its ancestors, the newest first; nil leaves `_revisions` out.
    /// - Returns: nil for a revision that may have contents, or is not what was written.
    /// - Throws: `revisionNotFound` (404) where its properties were compacted away, `damaged` (500).
    static func text(of revision: SavedRevision, history: [RevisionID]?) throws -> [UInt8]? {
        let body = Array(try revision.json)
        guard !CanonicalBody.mayHoldAttachments(body), !CanonicalBody.mayHoldBlobs(body),
            // Among many, one that is damaged would have all of them refused.
            body.first == UInt8(ascii: "{"), (try? CheckedJSON(body, valueLimit: .max)) != nil
        else { return nil }
        var text = Array("{\"_id\":".utf8)
        text.reserveCapacity(body.count + 256)
        text += try JSONValue.string(revision.documentID).canonicalJSON()
        text += Array(",\"_rev\":\"\(revision.revisionID)\"".utf8)
        if revision.isDeletion { text += Array(",\"_deleted\":true".utf8) }
        if let history {
            text += Array(",\"_revisions\":".utf8)
            text += try revisions(history).canonicalJSON()
        }
        // Its own members follow, or the end.
        if body.count > 2 { text.append(UInt8(ascii: ",")) }
        text += body.dropFirst()
        return text
    }
}
