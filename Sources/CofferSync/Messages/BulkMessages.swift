package import CofferModel

/// What `_bulk_get` is asked for: one revision of a document, or all that count.
package struct RevisionRequest: Sendable, Equatable {
    package var id: String
    /// Nil for all that nothing has replaced.
    package var revision: RevisionID?
    /// Revisions whose attachments need not come again.
    package var attachmentsSince: [RevisionID]

    package init(id: String, revision: RevisionID?, attachmentsSince: [RevisionID] = []) {
        self.id = id
        self.revision = revision
        self.attachmentsSince = attachmentsSince
    }

    /// - Throws: ``SyncError`` 400.
    package init(_ json: JSONValue) throws(SyncError) {
        guard let id = json["id"]?.stringValue else {
            throw SyncError(400, "_bulk_get asks for a document without an id")
        }
        let text = json["rev"]?.stringValue
        let revision = text.flatMap(RevisionID.init)
        guard text == nil || revision != nil else {
            throw SyncError(400, of: "document \(id)", "_bulk_get asks for what is not a revision id")
        }
        let since = json["atts_since"]?.arrayValue ?? []
        self.init(
            id: id, revision: revision,
            attachmentsSince: since.compactMap { $0.stringValue.flatMap(RevisionID.init) })
    }

    package var json: JSONValue {
        var object: JSONObject = ["id": .string(id)]
        object["rev"] = revision.map { .string($0.description) }
        if !attachmentsSince.isEmpty {
            object["atts_since"] = .array(attachmentsSince.map { .string($0.description) })
        }
        return .object(object)
    }

    /// What is asked of `_bulk_get`.
    package static func question(_ requests: [RevisionRequest]) -> JSONValue { ["docs": .array(requests.map(\.json))] }

    /// - Throws: ``SyncError`` 400.
    package static func all(in question: JSONValue) throws(SyncError) -> [RevisionRequest] {
        guard let documents = question["docs"]?.arrayValue else { throw SyncError(400, "_bulk_get asks for no docs") }
        var requests: [RevisionRequest] = []
        for document in documents { requests.append(try RevisionRequest(document)) }
        return requests
    }
}

/// One revision that `_bulk_get` or `open_revs` brought.
package enum RevisionAnswer: Sendable {
    /// The revision as JSON, with `_id`, `_rev`, `_revisions` and what else the server says.
    case revision(JSONObject)
    /// Why it didn't come.
    case failure(id: String, revision: String?, SyncError)

    /// The document that it is about; empty where it doesn't say.
    package var id: String {
        switch self {
        case .revision(let json): json["_id"]?.stringValue ?? ""
        case .failure(let id, _, _): id
        }
    }

    /// Whether it says what became of what was asked for of its document: the revision itself, a later one that has it among
    /// its ancestors, or may have, where it doesn't know that far back, or why it didn't come.
    package func settles(_ request: RevisionRequest) -> Bool {
        switch self {
        case .failure(_, let revision, _):
            return revision == nil || revision == request.revision?.description
        case .revision(let json):
            if json["_removed"] == true { return true }
            guard let revision = request.revision, let text = json["_rev"]?.stringValue,
                let found = RevisionID(text), found != revision
            else { return true }
            let start: Int = json["_revisions"]?["start"] ?? found.generation
            let ids = json["_revisions"]?["ids"]?.arrayValue ?? []
            guard start == found.generation, start >= revision.generation else { return false }
            let distance = start - revision.generation
            return distance >= ids.count || ids[distance].stringValue == revision.suffix.text
        }
    }

    /// The failure that an object says.
    package static func failure(_ json: JSONObject) -> RevisionAnswer {
        let id = json["id"]?.stringValue ?? ""
        return .failure(
            id: id, revision: json["rev"]?.stringValue, BulkFailure.error(.object(json), of: "document \(id)"))
    }

    /// All that an answer of `_bulk_get` as JSON brings.
    ///
    /// - Throws: ``SyncError`` 502.
    package static func all(inBulkAnswer json: JSONValue) throws(SyncError) -> [RevisionAnswer] {
        guard let results = json["results"]?.arrayValue else {
            throw .garbage("an answer of _bulk_get without results")
        }
        var answers: [RevisionAnswer] = []
        for result in results {
            guard let id = result["id"]?.stringValue, let documents = result["docs"]?.arrayValue else {
                throw .garbage("a result of _bulk_get without id or docs")
            }
            for document in documents { answers.append(try RevisionAnswer(document, id: id)) }
        }
        return answers
    }

    /// The same of an answer in which something can't be held: each revision is looked at separately.
    ///
    /// - Throws: ``SyncError`` 502; 413 for more values than an answer may have.
    static func all(inBulkAnswer outline: JSONOutline) throws -> [RevisionAnswer] {
        guard let results = try outline["results"]?.elements(upTo: RequestLimits.itemCount) else {
            throw SyncError.garbage("an answer of _bulk_get without results")
        }
        var answers: [RevisionAnswer] = []
        var valueCount = 0
        for result in results {
            guard let id = result["id"]?.stringValue,
                let documents = try result["docs"]?.elements(upTo: RequestLimits.itemCount)
            else { throw SyncError.garbage("a result of _bulk_get without id or docs") }
            for document in documents {
                do {
                    let limit = JSONLimits.valueCount - valueCount
                    // A revision may be as deep as any, and is one less deep than what is around it.
                    let revision = document["ok"]
                    let bytes = (revision ?? document).bytes
                    guard let checked = try CheckedJSON(received: bytes, valueLimit: limit) else {
                        throw SyncError(413, "an answer with more than \(JSONLimits.valueCount) values")
                    }
                    valueCount += checked.valueCount
                    let value = try checked.value()
                    answers.append(try RevisionAnswer(revision == nil ? value : ["ok": value], id: id))
                } catch let error as UnholdableJSON {
                    answers.append(.failure(error, id: id))
                }
            }
        }
        return answers
    }

    /// A revision that came, and that no document here can hold.
    ///
    /// - Parameter id: of its document. Default: what the revision says.
    static func failure(_ error: UnholdableJSON, id: String? = nil) -> RevisionAnswer {
        let revision = error.outline["ok"] ?? error.outline
        let id = id ?? revision["_id"]?.stringValue ?? ""
        return .failure(
            id: id, revision: revision["_rev"]?.stringValue, SyncError(400, of: "document \(id)", error.reason))
    }

    private init(_ json: JSONValue, id: String) throws(SyncError) {
        if let revision = json["ok"]?.objectValue {
            self = .revision(revision)
        } else if let error = json["error"] {
            let revision = error["rev"]?.stringValue
            self = .failure(id: id, revision: revision, BulkFailure.error(error, of: "document \(id)"))
        } else {
            throw .garbage("a result of _bulk_get that is neither ok nor error", of: "document \(id)")
        }
    }
}

/// What `_bulk_docs` says of a revision that it didn't take.
package struct BulkFailure: Sendable, Equatable {
    package let id: String
    /// Nil where the server doesn't say which.
    package let revision: RevisionID?
    package let error: SyncError

    /// All failures that an answer of `_bulk_docs` says; the rest went well.
    ///
    /// - Throws: ``SyncError`` 502.
    package static func all(in answer: JSONValue) throws(SyncError) -> [BulkFailure] {
        guard let results = answer.arrayValue else { throw .garbage("an answer of _bulk_docs that is not a list") }
        var failures: [BulkFailure] = []
        for result in results {
            let status: Int? = result["status"]
            guard result["error"] != nil || (status ?? 0) >= 400 else { continue }
            guard let id = result["id"]?.stringValue else {
                throw .garbage("a failure of _bulk_docs without an id")
            }
            failures.append(
                BulkFailure(
                    id: id, revision: result["rev"]?.stringValue.flatMap(RevisionID.init),
                    error: error(result, of: "document \(id)")))
        }
        return failures
    }

    /// The error that an object says by `status`, or by the name that CouchDB has for it.
    static func error(_ json: JSONValue, of subject: String) -> SyncError {
        let name = json["error"]?.stringValue ?? "refused"
        let stated: Int? = json["status"]
        let status = stated ?? Self.statuses.first { $0.name == name }?.status ?? 500
        // The client is known by then: this is what a validation function says of one document.
        return SyncError(status == 401 ? 403 : status, of: subject, name)
    }

    /// The names that CouchDB and Sync Gateway give what went wrong.
    package static let statuses: [(name: String, status: Int)] = [
        ("bad_request", 400), ("unauthorized", 401), ("forbidden", 403), ("not_found", 404), ("missing", 404),
        ("method_not_allowed", 405), ("not_acceptable", 406), ("conflict", 409), ("missing_stub", 412),
        ("file_exists", 412), ("document_too_large", 413), ("attachment_too_large", 413), ("too_large", 413),
        ("unsupported_media_type", 415), ("doc_validation", 400), ("illegal_docid", 400), ("service_unavailable", 503),
    ]
}
