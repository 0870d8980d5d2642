package import Coffer
package import CofferModel

/// What is listed of a server's changes.
package struct ChangesQuery: Sendable {
    package var limit: Int
    package var filter: String?
    package var parameters: JSONObject = [:]
    package var documentIDs: [String]?
    /// Whether the server waits until there is something.
    package var waits = false
    package var heartbeat: Duration = .seconds(30)

    package init(limit: Int) { self.limit = limit }
}

extension RemoteDatabase {
    // MARK: The database

    /// Whether there is such a database.
    ///
    /// - Throws: ``SyncError`` for all but a 404.
    package func exists() async throws -> Bool {
        do {
            _ = try await askJSON("GET", "")
            return true
        } catch let error as SyncError where error.status == 404 {
            return false
        }
    }

    package func create() async throws {
        do {
            _ = try await askJSON("PUT", "")
        } catch let error as SyncError where error.status == 412 {
            // Somebody else was faster, or an answer got lost.
        }
    }

    // MARK: Checkpoints

    /// The local document of that id, with `_rev`; empty where there isn't one.
    package func localDocument(_ id: String) async throws -> JSONObject {
        do {
            return try await askJSON("GET", "/_local/\(id.percentEncoded)").objectValue ?? [:]
        } catch let error as SyncError where error.status == 404 {
            return [:]
        }
    }

    /// - Returns: the document's new `_rev`.
    package func saveLocalDocument(_ json: JSONObject, id: String, replacing revision: String?) async throws -> String {
        var json = json
        json["_id"] = .string("_local/\(id)")
        json["_rev"] = revision.map { .string($0) }
        let answer = try await askJSON("PUT", "/_local/\(id.percentEncoded)", .object(json))
        guard let saved = answer["rev"]?.stringValue else { throw SyncError.garbage("a checkpoint without a revision") }
        return saved
    }

    // MARK: Pulling

    package func changes(since position: FeedPosition, _ query: ChangesQuery) async throws -> ChangesPage {
        var target = "/_changes?style=all_docs&limit=\(query.limit)&since=\(position.text.percentEncoded)"
        if query.waits { target += "&feed=longpoll&heartbeat=\(Int(query.heartbeat / .milliseconds(1)))" }
        for (name, value) in query.parameters {
            target += "&\(name.percentEncoded)=\((value.stringValue ?? value.description).percentEncoded)"
        }
        if let documentIDs = query.documentIDs {
            return try ChangesPage(
                try await askJSON(
                    "POST", target + "&filter=_doc_ids", ["doc_ids": .array(documentIDs.map { .string($0) })]))
        }
        if let filter = query.filter { target += "&filter=\(filter.percentEncoded)" }
        return try ChangesPage(try await askJSON("GET", target))
    }

    /// Many revisions at once, without contents.
    ///
    /// - Parameter limit: more bytes than that are not read.
    /// - Throws: ``SyncError`` 404, 405 or 501 from a server that doesn't know how, 413 where they are more bytes than any answer
    ///   may have; ``TooLong`` where they are more than a lower `limit`.
    package func revisions(
        _ requests: [RevisionRequest], upTo limit: Int = answerByteLimit
    ) async throws -> (answers: [RevisionAnswer], byteCount: Int) {
        let question = try RevisionRequest.question(requests).canonicalJSON()
        return try await ask(
            "POST", "/_bulk_get?revs=true&latest=true",
            fields: ["Accept": "application/json", "Content-Type": "application/json"], body: { .bytes(question) }
        ) { response in
            // Sync Gateway answers in parts, whatever it is asked for.
            if response.fields["Content-Type"].flatMap(MediaType.init)?.name == "multipart/mixed" {
                return try await Self.revisions(inPartsOf: response, upTo: limit)
            }
            do {
                let (json, byteCount) = try await Self.sizedJSON(response, upTo: limit)
                return (try RevisionAnswer.all(inBulkAnswer: json), byteCount)
            } catch let error as UnholdableJSON {
                return (try RevisionAnswer.all(inBulkAnswer: error.outline), error.outline.bytes.count)
            }
        }
    }

    /// Many revisions at once, with contents in base64 where the server gives them so.
    ///
    /// - Returns: nothing where it gives them in another way.
    func revisionsWithContentsInJSON(_ requests: [RevisionRequest]) async throws -> [RevisionAnswer] {
        let question = try RevisionRequest.question(requests).canonicalJSON()
        return try await ask(
            "POST", "/_bulk_get?attachments=true",
            fields: ["Accept": "application/json", "Content-Type": "application/json"], body: { .bytes(question) }
        ) { response in
            guard response.fields["Content-Type"].flatMap(MediaType.init)?.name == "application/json" else { return [] }
            do {
                return try RevisionAnswer.all(inBulkAnswer: try await Self.json(response))
            } catch let error as UnholdableJSON {
                return try RevisionAnswer.all(inBulkAnswer: error.outline)
            }
        }
    }

    private static func revisions(
        inPartsOf response: HTTPResponse, upTo limit: Int
    ) async throws -> (answers: [RevisionAnswer], byteCount: Int) {
        let reader = try MultipartReader(response.body.stream, fields: response.fields)
        var answers: [RevisionAnswer] = []
        var (byteCount, valueCount) = (0, 0)
        while let part = try await reader.nextPart() {
            let type = part.fields["Content-Type"].flatMap(MediaType.init)
            var body = part.body
            if type?.name == "multipart/related" {
                // Contents that come unasked are skipped: many would be in no bound of memory.
                guard let first = try await MultipartReader(body, fields: part.fields).nextPart() else { continue }
                body = first.body
            }
            let text = try await collect(body, upTo: limit - byteCount, isLowered: limit < answerByteLimit)
            byteCount += text.count
            let json: JSONObject
            do {
                // What can't be read answers nothing, which shows in the end.
                guard let object = try Self.json(text, &valueCount)?.objectValue else { continue }
                json = object
            } catch let error as UnholdableJSON {
                answers.append(.failure(error))
                continue
            }
            let isFailure = type?.parameters["error"] == "true"
            answers.append(isFailure ? .failure(json) : .revision(json))
        }
        return (answers, byteCount)
    }

    /// One revision without contents.
    package func revision(_ request: RevisionRequest) async throws -> JSONObject {
        var target = "/\(Self.path(of: request.id))?revs=true"
        if let revision = request.revision { target += "&rev=\(revision.description.percentEncoded)" }
        guard let json = try await askJSON("GET", target, subject: "document \(request.id)").objectValue else {
            throw SyncError.garbage("a revision that is not an object", of: "document \(request.id)")
        }
        return json
    }

    /// One revision with its contents, which are written into `database` as they arrive.
    ///
    /// - Returns: the revision, and contents by the names of their attachments.
    package func revisionWithContents(
        _ request: RevisionRequest, into database: Database
    ) async throws -> (revision: IncomingRevision, contents: [ByteKey: Blob]) {
        let subject = "document \(request.id)"
        var target = "/\(Self.path(of: request.id))?revs=true&attachments=true"
        if let revision = request.revision { target += "&rev=\(revision.description.percentEncoded)" }
        if !request.attachmentsSince.isEmpty {
            let list = JSONValue.array(request.attachmentsSince.map { .string($0.description) })
            target += "&atts_since=\(list.description.percentEncoded)"
        }
        return try await ask("GET", target, subject: subject, fields: ["Accept": "multipart/related"]) {
            response in
            guard response.fields["Content-Type"].flatMap(MediaType.init)?.name == "multipart/related" else {
                guard let json = try await Self.json(response).objectValue else {
                    throw SyncError.garbage("a revision that is not an object", of: subject)
                }
                return (try IncomingRevision(json), [:])
            }
            let reader = try MultipartReader(response.body.stream, fields: response.fields)
            guard let first = try await reader.nextPart() else {
                throw SyncError.garbage("a revision without JSON", of: subject)
            }
            let text = try await first.body.collect(upTo: Self.answerByteLimit)
            var valueCount = 0
            guard let json = try Self.json(text, &valueCount)?.objectValue else {
                throw SyncError.garbage("a revision that is not an object", of: subject)
            }
            let contents = try await RelatedContents(json).receive(
                from: reader, into: database, upTo: options.attachmentByteLimit, subject: subject)
            return (try IncomingRevision(json), contents)
        }
    }

    /// One content, which is written into `database` as it arrives.
    package func content(
        _ content: IncomingRevision.Content, of id: String, _ revision: RevisionID, into database: Database
    ) async throws -> Blob {
        let subject = "attachment \(content.name) of document \(id)"
        let target = Self.target(ofAttachment: content.name, of: id, revision)
        // Packed ones have the digest of the packed bytes, and come so only where that is taken.
        return try await ask("GET", target, subject: subject, fields: ["Accept-Encoding": "gzip"]) { response in
            let isPacked = response.fields["Content-Encoding"]?.lowercased() == "gzip"
            let download = ContentDownload(
                subject: subject, digest: content.digest, length: content.length, isPacked: isPacked)
            return try await download.receive(
                response.body.stream, into: database, upTo: options.attachmentByteLimit)
        }
    }

    // MARK: Pushing

    package func difference(_ question: RevisionsQuestion) async throws -> [(id: String, RevisionsDifference)] {
        try RevisionsDifference.answer(try await askJSON("POST", "/_revs_diff", question.json), to: question)
    }

    /// Sends revisions as they are.
    ///
    /// - Parameter documents: JSON, each.
    /// - Returns: those that were refused.
    package func save(_ documents: [[UInt8]]) async throws -> [BulkFailure] {
        var body = Array("{\"new_edits\":false,\"docs\":[".utf8)
        body.reserveCapacity(documents.reduce(64) { $0 + $1.count + 1 })
        for (place, document) in documents.enumerated() {
            if place > 0 { body.append(UInt8(ascii: ",")) }
            body += document
        }
        body += Array("]}".utf8)
        let bytes = body
        let fields: HTTPFields = ["Accept": "application/json", "Content-Type": "application/json"]
        return try await ask("POST", "/_bulk_docs", fields: fields, body: { .bytes(bytes) }) {
            try BulkFailure.all(in: try await Self.json($0))
        }
    }

    /// Sends one revision as it is, with the contents that follow it.
    ///
    /// - Parameter form: how each content is notified of. One that should follow and is not here is notified of as one
    ///   that the server has, which it refuses where that is not so.
    package func save(
        _ revision: OutgoingRevision, history: [RevisionID],
        _ form: @Sendable (OutgoingRevision.Content) -> OutgoingRevision.Form
    ) async throws {
        let id = revision.revision.document.documentID
        let target = "/\(Self.path(of: id))?new_edits=false"
        let message = try RelatedMessage(revision, history: history, form)
        let alone = revision.json(history: history) { content in
            let form = form(content)
            if case .follows = form { return .stub }
            return form
        }
        let json = message == nil ? try JSONValue.object(alone).canonicalJSON() : []
        let type = message?.contentType ?? "application/json"
        try await ask(
            "PUT", target, subject: "document \(id)", fields: ["Accept": "application/json", "Content-Type": type],
            body: { message?.body.body ?? .bytes(json) }
        ) { response in
            // A page of a hotel's network says 200 too.
            guard try await Self.json(response)["ok"] == true else {
                throw SyncError.garbage("an invalid answer to a document", of: "document \(id)")
            }
        }
    }

    /// Has the server write to its disk what it was sent. Servers of today do so anyway, and some don't know the request.
    package func commit() async throws {
        do {
            _ = try await askJSON("POST", "/_ensure_full_commit", [:])
        } catch let error as SyncError where [400, 404, 405, 501].contains(error.status) {}
    }

    static func target(ofAttachment name: String, of id: String, _ revision: RevisionID) -> String {
        "/\(path(of: id))/\(name.percentEncoded)?rev=\(revision.description.percentEncoded)"
    }

    static func path(of id: String) -> String {
        guard id.utf8.starts(with: "_design/".utf8) else { return id.percentEncoded }
        return "_design/" + id.dropFirst("_design/".count).percentEncoded
    }
}
