internal import Coffer
internal import CofferModel
internal import Foundation

extension DatabaseService {
    /// Answers requests for a document or one of its attachments.
    ///
    /// - Parameter rest: the path behind the document; empty for the document itself.
    func document(
        _ request: HTTPRequest, _ target: RequestTarget, _ id: String, _ rest: [String]
    ) async throws -> HTTPResponse {
        if !rest.isEmpty { return try await attachment(request, target, id, rest.joined(separator: "/")) }
        try request.expect("GET", "HEAD", "PUT", "DELETE", "COPY")
        switch request.method {
        case "COPY": return try await copy(request, target, id)
        case "PUT": return try await put(request, target, id)
        case "DELETE":
            let parent = try parent(request, target)
            let revision = try await database.inTransaction {
                try saveEdit(["_deleted": true], id: id, replacing: parent, contents: [:])
            }
            return try saved(200, revision, request)
        default: return try get(request, target, id)
        }
    }

    // MARK: Reading

    private func get(_ request: HTTPRequest, _ target: RequestTarget, _ id: String) throws -> HTTPResponse {
        let query = RevisionQuery(target)
        let document = database.document(withID: id)
        if let open = target["open_revs"] { return try openRevisions(open, of: document, request, query) }
        let revision = try revision(of: document, target["rev"])
        let fields: HTTPFields = ["ETag": Self.tag(revision.revisionID)]
        if request.knows(Self.tag(revision.revisionID)) { return HTTPResponse(304, fields: fields) }
        if request.accepts("multipart/related"), let message = try message(revision, query) {
            var fields = fields
            fields["Content-Type"] = "multipart/related; boundary=\"\(message.boundary)\""
            return HTTPResponse(200, fields: fields, body: message.body)
        }
        return try .json(200, .object(try json(revision, query)), fields: fields)
    }

    /// The revision of that id, or the current one.
    ///
    /// - Throws: ``SyncError`` 404.
    func revision(of document: Document, _ id: String?) throws -> SavedRevision {
        if let id {
            guard let revisionID = RevisionID(id) else { throw SyncError(400, "rev is not a revision id") }
            guard let revision = try document.revision(withID: revisionID), try revision.propertiesAvailable else {
                throw SyncError(404, "missing")
            }
            return revision
        }
        guard let revision = try document.currentRevision else {
            throw SyncError(404, try document.isDeleted ? "deleted" : "missing")
        }
        return revision
    }

    private func openRevisions(
        _ text: String, of document: Document, _ request: HTTPRequest, _ query: RevisionQuery
    ) throws -> HTTPResponse {
        let answers: [RevisionOrMissing]
        if text == "all" {
            answers = try document.leafRevisions.map { .found($0) }
        } else {
            guard let list = try JSONValue(json: Array(text.utf8)).arrayValue else {
                throw SyncError(400, "open_revs is not a list")
            }
            let ids = try list.map { element in
                guard let id = element.stringValue.flatMap(RevisionID.init) else {
                    throw SyncError(400, "open_revs holds what is not a revision id")
                }
                return id
            }
            answers = try found(ids, of: document, latest: query.wantsLatest)
        }
        // As CouchDB has it: JSON is for those who ask for it.
        guard request.accepts("application/json"), !request.accepts("multipart/mixed") else {
            var rest = answers[...]
            return multipart { [self] () throws -> MultipartBody.Part? in
                while let answer = rest.popFirst() {
                    if let part = try part(answer, query, errorsInDetail: nil) { return part }
                }
                return nil
            }
        }
        return try .json(200, list(of: answers, query))
    }

    /// Revisions as one text: the values of one at a time are in memory.
    private func list(of answers: [RevisionOrMissing], _ query: RevisionQuery) throws -> [UInt8] {
        var text = [UInt8(ascii: "[")]
        for (place, answer) in answers.enumerated() {
            try Task.checkCancellation()
            if place > 0 { text.append(UInt8(ascii: ",")) }
            text += try json(answer, query, errorsInDetail: nil).messageJSON()
            guard text.count <= service.options.documentByteLimit || answers.count == 1 else {
                throw SyncError(413, "the revisions are too large to stand in JSON: they are to be had as multipart")
            }
        }
        return text + Array("]\n".utf8)
    }

    // MARK: Writing

    func postDocument(_ request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        guard let json = try await request.json(upTo: service.options.documentByteLimit).objectValue else {
            throw SyncError(400, "a document is an object")
        }
        let revision = try await database.inTransaction {
            try saveEdit(json, id: json["_id"]?.stringValue, replacing: nil, contents: [:])
        }
        return try saved(201, revision, request, target)
    }

    private func put(_ request: HTTPRequest, _ target: RequestTarget, _ id: String) async throws -> HTTPResponse {
        let isReplicated = target["new_edits"] == "false"
        var json: JSONObject
        var contents: [ByteKey: Blob]
        do {
            (json, contents) = try await received(request, id)
        } catch let error as UnholdableJSON where isReplicated {
            throw NamedRefusal.unholdable(error.reason)
        }
        guard json["_id"] == nil || json["_id"]?.stringValue.map({ $0.utf8.elementsEqual(id.utf8) }) == true else {
            throw SyncError(400, "_id is another than the path says")
        }
        json["_id"] = .string(id)
        let (document, brought) = (json, contents)
        contents = [:]
        if isReplicated {
            do {
                let result = try await database.inTransaction { try saveReplicated(document, contents: brought) }
                return try saved(201, result.revision, request, target)
            } catch let error as CofferError where [.invalidDocumentID, .invalidJSON].contains(error.code) {
                throw NamedRefusal.unholdable(error.detail ?? error.code.description)
            }
        }
        let parent = try parent(request, target)
        let revision = try await database.inTransaction {
            try saveEdit(document, id: id, replacing: parent, contents: brought)
        }
        return try saved(201, revision, request, target)
    }

    func saved(
        _ status: Int, _ revision: SavedRevision, _ request: HTTPRequest, _ target: RequestTarget? = nil
    ) throws -> HTTPResponse {
        let id = revision.documentID
        // It is saved by now; a client that doesn't wait for that gets what CouchDB would know.
        if target?["batch"] == "ok" { return try .json(202, ["ok": true, "id": .string(id)]) }
        return try .json(
            status, ["ok": true, "id": .string(id), "rev": .string(revision.revisionID.description)],
            fields: [
                "ETag": Self.tag(revision.revisionID),
                "Location": service.root(request) + "/\(database.name.percentEncoded)/\(RemoteDatabase.path(of: id))",
            ])
    }

    /// The ETag of a revision, whose id another database may have chosen.
    static func tag(_ revision: RevisionID) -> String { "\"\(HTTPFields.safe(revision.description))\"" }

    /// The revision that the request says it replaces; nil if it says none.
    func parent(_ request: HTTPRequest, _ target: RequestTarget) throws -> RevisionID? {
        guard let text = target["rev"] ?? request.fields["If-Match"].map({ $0.filter { $0 != "\"" } }) else {
            return nil
        }
        guard let id = RevisionID(text) else { throw SyncError(400, "rev is not a revision id") }
        return id
    }

    /// The document that a request brings, with the contents that follow it.
    private func received(_ request: HTTPRequest, _ id: String) async throws -> (JSONObject, [ByteKey: Blob]) {
        guard request.fields["Content-Type"].flatMap(MediaType.init)?.name == "multipart/related" else {
            guard let json = try await request.json(upTo: service.options.documentByteLimit).objectValue else {
                throw SyncError(400, "a document is an object")
            }
            return (json, [:])
        }
        let reader = try MultipartReader(try request.unpackedBody(), fields: request.fields)
        guard let first = try await reader.nextPart() else { throw SyncError(400, "a message without a document") }
        let message = try await request.json(of: first.body, upTo: service.options.documentByteLimit)
        guard let json = message.objectValue else { throw SyncError(400, "a document is an object") }
        let contents = try await RelatedContents(json).receive(
            from: reader, into: database, upTo: service.options.attachmentByteLimit, subject: "document \(id)")
        return (json, contents)
    }

    /// Takes over a revision of another database, in the transaction under way.
    @discardableResult
    func saveReplicated(_ json: JSONObject, contents: [ByteKey: Blob]) throws -> ExistingRevisionResult {
        let incoming = try IncomingRevision(json)
        for content in try incoming.missingContents(in: database)
        where contents[ByteKey(content.name)] == nil {
            // Nobody would ever bring it.
            throw NamedRefusal.missingStub(content.name, of: "document \(incoming.id)")
        }
        return try incoming.save(in: database, contents: contents)
    }

    /// As in CouchDB, what begins with `_` is not a name for a new attachment.
    ///
    /// - Throws: ``SyncError`` 400.
    static func checkName(_ name: String, of subject: String? = nil) throws(SyncError) {
        guard !name.hasPrefix("_") else {
            throw SyncError(400, of: subject, "an attachment's name starts with the prohibited character '_'")
        }
    }

    /// Saves an edit, in the transaction under way.
    ///
    /// - Parameters:
    ///   - parent: the revision that it replaces. Default: what `_rev` says.
    ///   - contents: those that followed the JSON.
    func saveEdit(
        _ json: JSONObject, id: String?, replacing parent: RevisionID?, contents: [ByteKey: Blob]
    ) throws -> SavedRevision {
        let document = id.map { database.document(withID: $0) } ?? database.createDocument()
        let subject = "document \(document.documentID)"
        let stated = try json["_rev"].map { value in
            guard let id = value.stringValue.flatMap(RevisionID.init) else {
                throw SyncError(400, of: subject, "_rev is not a revision id")
            }
            return id
        }
        guard parent == nil || stated == nil || parent == stated else {
            throw SyncError(400, of: subject, "_rev is another revision than the request's rev")
        }
        guard json["_deleted"] == nil || json["_deleted"]?.boolValue != nil else {
            throw SyncError(400, of: subject, "_deleted is neither true nor false")
        }
        guard json["_id"] == nil || json["_id"]?.stringValue != nil else {
            throw SyncError(400, of: subject, "_id is not a string")
        }
        let parentID = parent ?? stated
        let draft: UnsavedRevision
        if let parentID {
            guard let revision = try document.revision(withID: parentID), try revision.propertiesAvailable else {
                throw SyncError(409, of: subject, "there is no such revision, or it was replaced")
            }
            draft = try revision.createRevision()
        } else {
            guard try document.currentRevision == nil else {
                throw SyncError(409, of: subject, "the document exists")
            }
            draft = try document.newRevision()
        }
        draft.isDeletion = json["_deleted"] == true
        draft.takeEmptyAttachmentNames()
        var properties = json
        for key in ["_id", "_rev", "_deleted", "_attachments", "_revisions"] { properties[key] = nil }
        draft.properties = properties
        let entries = json["_attachments"]?.objectValue ?? [:]
        for name in draft.attachmentNames where entries[name] == nil { draft.removeAttachment(named: name) }
        var inlineByteLimit = InlineContent.byteLimit
        for (name, entry) in entries {
            let type = entry["content_type"]?.stringValue
            if entry["stub"] != true { try Self.checkName(name, of: subject) }
            if let content = contents[ByteKey(name)] {
                draft.setAttachment(named: name, contentType: type, content)
            } else if let text = entry["data"]?.stringValue {
                let inline = InlineContent(
                    text: text, isPacked: entry["encoding"]?.stringValue == "gzip", digest: nil, length: nil,
                    subject: "attachment \(name) of \(subject)")
                let data = try inline.data(upTo: inlineByteLimit)
                inlineByteLimit -= data.count
                draft.setAttachment(named: name, contentType: type, content: data)
            } else if draft.attachment(named: name) == nil {
                throw NamedRefusal.missingStub(name, of: subject)
            }
        }
        return try draft.save()
    }

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
