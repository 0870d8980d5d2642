internal import Coffer
internal import CofferModel

extension DatabaseService {
    /// Answers requests for an attachment. Blobs are there too, as `blob_1` and so on.
    func attachment(
        _ request: HTTPRequest, _ target: RequestTarget, _ id: String, _ name: String
    ) async throws -> HTTPResponse {
        try request.expect("GET", "HEAD", "PUT", "DELETE")
        switch request.method {
        case "PUT": return try await putAttachment(request, target, id, name)
        case "DELETE":
            let (database, parent) = (database, try parent(request, target))
            return try changed(
                200,
                try await database.inTransaction {
                    let draft = try Self.draft(id, parent, in: database)
                    guard draft.attachment(named: name) != nil else { throw SyncError(404, "no such attachment") }
                    draft.removeAttachment(named: name)
                    return try draft.save()
                })
        default: return try get(request, target, id, name)
        }
    }

    private func get(
        _ request: HTTPRequest, _ target: RequestTarget, _ id: String, _ name: String
    ) throws -> HTTPResponse {
        let revision = try OutgoingRevision(try revision(of: database.document(withID: id), target["rev"]))
        guard let content = revision.contents.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
            throw SyncError(404, "no such attachment")
        }
        let tag = "\"\(HTTPFields.safe(content.digest))\""
        var fields: HTTPFields = ["ETag": tag, "Accept-Ranges": "bytes"]
        if request.knows(tag) { return HTTPResponse(304, fields: fields) }
        guard revision.isAvailable(content) else { throw SyncError(404, "the attachment's content is not here") }
        fields["Content-Type"] = HTTPFields.safe(content.contentType ?? "application/octet-stream")
        // A page among attachments must not act in the name of who looks at it.
        fields["Content-Security-Policy"] = "sandbox"
        fields["X-Content-Type-Options"] = "nosniff"
        let matches = request.fields["If-Range"].map { $0 == fields["ETag"] } ?? true
        if matches, let text = request.fields["Range"], let asked = ByteRange(text) {
            guard let range = asked.range(of: content.length) else {
                fields["Content-Range"] = "bytes */\(content.length)"
                return HTTPResponse(416, fields: fields)
            }
            fields["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.length)"
            return HTTPResponse(
                206, fields: fields, body: .stream(Self.pieces(content, of: revision, range), length: range.count))
        }
        if request.method == "HEAD" {
            return HTTPResponse(200, fields: fields, body: .stream(.empty, length: content.length))
        }
        guard let stream = try revision.open(content) else {
            throw SyncError(404, "the attachment's content is not here")
        }
        return HTTPResponse(200, fields: fields, body: .stream(stream, length: content.length))
    }

    /// The bytes of a range, as they are taken.
    private static func pieces(
        _ content: OutgoingRevision.Content, of revision: OutgoingRevision, _ range: Range<Int>
    ) -> ByteStream {
        let source = RangeSource(revision: revision, content: content, range: range)
        return ByteStream { try await source.next() }
    }

    private func putAttachment(
        _ request: HTTPRequest, _ target: RequestTarget, _ id: String, _ name: String
    ) async throws -> HTTPResponse {
        try Self.checkName(name)
        let parent = try parent(request, target)
        // A client that is too late should know before it has sent everything.
        _ = try Self.draft(id, parent, in: database)
        let limit = service.options.attachmentByteLimit
        if let limit, let length = request.body.length, length > limit {
            throw SyncError(413, "the attachment is too large")
        }
        let download = ContentDownload(
            subject: "attachment \(name)", digest: nil,
            length: request.fields["Content-Encoding"] == nil ? request.body.length : nil,
            isPacked: false)
        let content = try await download.receive(try request.unpackedBody(), into: database, upTo: limit)
        let (database, type) = (database, request.fields["Content-Type"])
        let revision = try await database.inTransaction {
            let draft = try Self.draft(id, parent, in: database)
            draft.setAttachment(named: name, contentType: type, content)
            return try draft.save()
        }
        return try changed(201, revision, at: "\(RemoteDatabase.path(of: id))/\(name.percentEncoded)", request)
    }

    /// A draft of what follows the revision, or of a first one.
    ///
    /// - Throws: ``SyncError`` 409.
    private static func draft(_ id: String, _ parent: RevisionID?, in database: Database) throws -> UnsavedRevision {
        let document = database.document(withID: id)
        guard let parent else {
            guard try document.currentRevision == nil else { throw SyncError(409, "the document exists") }
            return try document.newRevision()
        }
        guard let revision = try document.leafRevisions.first(where: { $0.revisionID == parent }) else {
            throw SyncError(409, "there is no such revision, or it was replaced")
        }
        return try revision.createRevision()
    }

    private func changed(
        _ status: Int, _ revision: SavedRevision, at path: String? = nil, _ request: HTTPRequest? = nil
    ) throws -> HTTPResponse {
        var fields: HTTPFields = ["ETag": Self.tag(revision.revisionID)]
        if let path, let request {
            fields["Location"] = service.root(request) + "/\(database.name.percentEncoded)/\(path)"
        }
        return try .json(
            status,
            [
                "ok": true, "id": .string(revision.documentID),
                "rev": .string(revision.revisionID.description),
            ], fields: fields)
    }
}

private actor RangeSource {
    private static let pieceByteCount = 256 << 10

    private let revision: OutgoingRevision
    private let content: OutgoingRevision.Content
    private var range: Range<Int>

    init(revision: OutgoingRevision, content: OutgoingRevision.Content, range: Range<Int>) {
        self.revision = revision
        self.content = content
        self.range = range
    }

    func next() throws -> [UInt8]? {
        guard !range.isEmpty else { return nil }
        let end = min(range.lowerBound + Self.pieceByteCount, range.upperBound)
        guard let piece = try revision.read(content, in: range.lowerBound..<end) else {
            throw SyncError(404, "the attachment's content is not here")
        }
        range = end..<range.upperBound
        return piece
    }
}

/// What a Range field asks for: one range of bytes.
struct ByteRange {
    private let first: Int?
    private let last: Int?

    /// Nil if the range is invalid, or for several: then the whole is sent, as RFC 9110 says.
    init?(_ text: String) {
        let sides = text.split(separator: "=", maxSplits: 1)
        guard sides.count == 2, sides[0].trimmed.lowercased() == "bytes", !sides[1].contains(",") else { return nil }
        let ends = sides[1].trimmed.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        let (first, last) = (Int(ends[0]), Int(ends[1]))
        guard (first != nil) != ends[0].isEmpty, (last != nil) != ends[1].isEmpty, first != nil || last != nil,
            (first ?? 0) >= 0, (last ?? 0) >= 0
        else { return nil }
        if let first, let last, first > last { return nil }
        self.first = first
        self.last = last
    }

    /// Where that is in `length` bytes; nil if there is nothing of it.
    func range(of length: Int) -> Range<Int>? {
        guard let first else {
            guard let last, last > 0, length > 0 else { return nil }
            return max(0, length - last)..<length
        }
        guard first < length else { return nil }
        return first..<min((last ?? length - 1), length - 1) + 1
    }
}
