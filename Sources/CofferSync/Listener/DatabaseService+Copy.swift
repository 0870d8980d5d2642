internal import Coffer
internal import CofferModel

extension DatabaseService {
    /// Answers `COPY`: saves what a revision holds, its attachments too, as another document, which the field `Destination`
    /// names: `id`, or `id?rev=2-b` where it is there.
    func copy(_ request: HTTPRequest, _ target: RequestTarget, _ id: String) async throws -> HTTPResponse {
        guard let destination = request.fields["Destination"], !destination.isEmpty else {
            throw SyncError(400, "Destination header is mandatory for COPY.")
        }
        // A URL's path would begin with a slash, and name the database.
        guard let place = RequestTarget("/" + destination), !place.path.isEmpty else {
            throw SyncError(400, "Destination is not encoded")
        }
        let copyID = place.path.joined(separator: "/")
        guard !copyID.hasPrefix("_local/") else { throw SyncError(400, "a local document is not copied to") }
        let parent = try place["rev"].map { text in
            guard let id = RevisionID(text) else { throw SyncError(400, "Invalid rev format") }
            return id
        }
        let source = try OutgoingRevision(try revision(of: database.document(withID: id), target["rev"]))
        var json = source.json(history: nil) { $0.isBlob ? .omitted : .stub }
        json["_id"] = .string(copyID)
        json["_rev"] = nil
        var contents: [ByteKey: Blob] = [:]
        for content in source.contents where !content.isBlob {
            guard source.isAvailable(content) else { throw SyncError(404, "the attachment's content is not here") }
            contents[ByteKey(content.name)] = Blob(
                BlobReference(digest: content.digest, length: content.length, contentType: content.contentType),
                in: source.revision)
        }
        let (document, brought) = (json, contents)
        let revision = try await database.inTransaction {
            try saveEdit(document, id: copyID, replacing: parent, contents: brought)
        }
        return try saved(201, revision, request)
    }
}
