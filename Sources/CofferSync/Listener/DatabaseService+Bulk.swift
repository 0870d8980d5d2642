internal import Coffer
internal import CofferModel

extension DatabaseService {
    /// Answers `_revs_diff`.
    func revisionsDifference(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        let question = try RevisionsQuestion(try await request.json(upTo: service.options.documentByteLimit))
        var answer: JSONObject = [:]
        for (id, revisions) in question.documents {
            let missing = try database.missingRevisions(of: revisions, ofDocumentWithID: id)
            guard let newest = missing.map(\.generation).max() else { continue }
            let ancestors = try database.document(withID: id).leafRevisions.map(\.revisionID)
                .filter { $0.generation < newest }
            answer[id] = RevisionsDifference(missing: missing, possibleAncestors: ancestors).json
        }
        return try .json(200, .object(answer))
    }

    /// Answers `_bulk_docs`. Each document is saved by itself: one that is refused keeps no other from being saved.
    func bulkDocuments(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        let question = try await request.json(upTo: service.options.documentByteLimit)
        guard let documents = question["docs"]?.arrayValue else { throw SyncError(400, "there are no docs") }
        let isReplicated = question["new_edits"] == false
        let results = try await database.inTransaction {
            try documents.compactMap { try saveOne($0, isReplicated: isReplicated) }
        }
        return try .json(201, .array(results))
    }

    /// Saves one of many documents; says what became of it, which is nothing where another database's was taken over.
    private func saveOne(_ json: JSONValue, isReplicated: Bool) throws -> JSONValue? {
        var id: JSONValue = json["_id"] ?? nil
        do {
            guard let object = json.objectValue else { throw SyncError(400, "a document is an object") }
            if isReplicated {
                try saveReplicated(object, contents: [:])
                return nil
            }
            return try database.inTransaction {
                let revision = try saveEdit(object, id: object["_id"]?.stringValue, replacing: nil, contents: [:])
                id = .string(revision.documentID)
                return ["ok": true, "id": id, "rev": .string(revision.revisionID.description)]
            }
        } catch {
            let (status, name, reason) = ServerFailure.parts(of: error)
            // What is wrong with the store itself is so for all of them.
            if status >= 500 { throw error }
            var result: JSONObject = ["id": id, "error": .string(name), "reason": .string(reason)]
            result["rev"] = json["_rev"]
            result["status"] = .number(JSONNumber(Int64(status)))
            return .object(result)
        }
    }

    /// Answers `_bulk_get`: as JSON, or in parts with the contents of attachments.
    func bulkGet(_ request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        try request.expect("POST")
        let requests = try RevisionRequest.all(in: try await request.json(upTo: service.options.documentByteLimit))
        let wantsParts = request.accepts("multipart/mixed") || request.accepts("multipart/related")
        let query = RevisionQuery(target)
        if wantsParts {
            var (rest, waiting) = (requests[...], [RevisionOrMissing]()[...])
            var request: RevisionRequest?
            return multipart { [self] () throws -> MultipartBody.Part? in
                while waiting.isEmpty {
                    guard let next = rest.popFirst() else { return nil }
                    request = next
                    waiting = try answers(to: next, query)[...]
                }
                guard let request, let answer = waiting.popFirst() else { return nil }
                var query = query
                if !request.attachmentsSince.isEmpty { query.attachmentsSince = request.attachmentsSince }
                return try part(answer, query, errorsInDetail: request.id)
            }
        }
        let rows = RowWriter(head: Array("{\"results\":[\n".utf8), tail: Array("\n]}\n".utf8))
        var place = 0
        return .json(
            200,
            stream: rows.stream { [self] () throws -> JSONValue? in
                guard place < requests.count else { return nil }
                defer { place += 1 }
                var query = query
                let request = requests[place]
                if !request.attachmentsSince.isEmpty { query.attachmentsSince = request.attachmentsSince }
                let documents = try answers(to: request, query).map { try json($0, query, errorsInDetail: request.id) }
                return ["id": .string(request.id), "docs": .array(documents)]
            })
    }

    /// Answers `_purge`: removes revisions that nothing follows, as if they had never been there.
    func purge(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        guard let question = try await request.json(upTo: service.options.documentByteLimit).objectValue else {
            throw SyncError(400, "revisions are listed by the ids of documents")
        }
        var lists: [(id: String, revisions: [RevisionID])] = []
        for (id, list) in question {
            let revisions = list.arrayValue?.map { $0.stringValue.flatMap(RevisionID.init) }
            guard let revisions, !revisions.contains(nil) else {
                throw SyncError(400, of: "document \(id)", "not a list of revision ids")
            }
            lists.append((id, revisions.compactMap(\.self)))
        }
        let (database, asked) = (database, lists)
        let purged = try await database.inTransaction {
            var purged: JSONObject = [:]
            for (id, revisions) in asked {
                var gone: [RevisionID] = []
                do {
                    gone = try database.document(withID: id).purge(revisions)
                } catch let error as CofferError where error.code == .documentNotFound {}
                purged[id] = .array(revisions.filter(gone.contains).map { .string($0.description) })
            }
            return purged
        }
        return try .json(201, ["purge_seq": nil, "purged": .object(purged)])
    }

    private func answers(to request: RevisionRequest, _ query: RevisionQuery) throws -> [RevisionOrMissing] {
        let document = database.document(withID: request.id)
        guard let revision = request.revision else {
            let leaves = try document.leafRevisions
            return leaves.isEmpty ? [.missing("undefined")] : leaves.map { .found($0) }
        }
        return try found([revision], of: document, latest: query.wantsLatest)
    }
}

extension HTTPRequest {
    /// Whether the client has what has this ETag (If-None-Match: RFC 9110, section 13.1.2).
    func knows(_ tag: String) -> Bool {
        fields.values(of: "If-None-Match").contains { field in
            field.trimmed == "*"
                || field.split(separator: ",").contains { one in
                    let text = one.trimmed
                    return (text.hasPrefix("W/") ? String(text.dropFirst(2)) : text) == tag
                }
        }
    }

    /// Whether the client has named this type among those that it takes.
    func accepts(_ type: String) -> Bool {
        fields.values(of: "Accept").contains { field in
            field.split(separator: ",").contains { MediaType(String($0))?.name == type }
        }
    }
}
