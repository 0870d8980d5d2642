internal import Coffer
internal import CofferModel
internal import Synchronization

extension DatabaseService {
    /// Answers `_revs_diff`.
    func revisionsDifference(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        let question = try RevisionsQuestion(
            members: try await request.members(upTo: service.options.documentByteLimit))
        try RequestLimits.check(question.revisionCount, "revisions")
        var rest = question.documents[...]
        var ahead: ArraySlice<[UInt8]> = []
        let rows = RowWriter(head: [UInt8(ascii: "{")], tail: Array("}\n".utf8))
        return .json(
            200,
            stream: rows.streamTexts { [database] () throws -> [UInt8]? in
                while ahead.isEmpty {
                    guard !rest.isEmpty else { return nil }
                    ahead = try Self.differences(
                        rest.prefix(Self.countLookedUpTogether), question.foreign, in: database)[...]
                    rest = rest.dropFirst(Self.countLookedUpTogether)
                }
                return ahead.removeFirst()
            })
    }

    /// So many documents' revisions are looked up at one moment.
    private static let countLookedUpTogether = 256

    /// The members of the answer, for each document that misses any of the revisions.
    ///
    /// What can't be here is missing: it is refused alone when it is sent, where a refusal now would keep all else away.
    ///
    /// - Parameter foreign: revisions that can't be here, by the ids of documents.
    private static func differences(
        _ documents: ArraySlice<(id: String, revisions: [RevisionID])>, _ foreign: [ByteKey: [String]],
        in database: Database
    ) throws -> [[UInt8]] {
        var members: [[UInt8]] = []
        for (question, found) in zip(documents, try database.missingRevisions(of: documents, findsLeaves: true)) {
            let missing = (try? found.get()) ?? MissingRevisions(revisions: question.revisions)
            var difference = RevisionsDifference(missing: missing.revisions)
            if let newest = missing.revisions.map(\.generation).max() {
                difference.possibleAncestors = missing.leaves.filter { $0.generation < newest }
            }
            difference.foreign = foreign[ByteKey(question.id)] ?? []
            guard !difference.missing.isEmpty || !difference.foreign.isEmpty else { continue }
            let id = try JSONValue.string(question.id).canonicalJSON()
            members.append(id + [UInt8(ascii: ":")] + (try difference.json.canonicalJSON()))
        }
        return members
    }

    /// Answers `_bulk_docs`. Each document is saved separately: one that is refused keeps no other from being saved.
    func bulkDocuments(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        let (documents, isReplicated) = try await request.documents(upTo: service.options.documentByteLimit)
        try RequestLimits.check(documents.count, "documents")
        let results = try await database.inTransactionUntilCancelled { cancellation in
            // As text, which takes a tenth of what values do.
            var results = [UInt8(ascii: "[")]
            for document in documents {
                try cancellation.check()
                guard let result = try saveOne(document, isReplicated: isReplicated) else { continue }
                if results.count > 1 { results.append(UInt8(ascii: ",")) }
                results += try result.canonicalJSON()
            }
            return results + Array("]\n".utf8)
        }
        return .json(201, results)
    }

    /// Saves one of many documents; says what became of it, which is nothing where another database's was taken over.
    private func saveOne(_ sent: Result<JSONValue, UnholdableJSON>, isReplicated: Bool) throws -> JSONValue? {
        var (id, stated): (JSONValue, JSONValue?)
        switch sent {
        case .success(let json): (id, stated) = (json["_id"] ?? nil, json["_rev"])
        case .failure(let error):
            id = error.outline["_id"]?.stringValue.map { .string($0) } ?? nil
            stated = error.outline["_rev"]?.stringValue.map { .string($0) }
        }
        do {
            let json = try sent.get()
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
            result["rev"] = stated
            result["status"] = .number(JSONNumber(Int64(status)))
            return .object(result)
        }
    }

    /// Answers `_bulk_get`: as JSON, or in parts with the contents of attachments.
    func bulkGet(_ request: HTTPRequest, _ target: RequestTarget) async throws -> HTTPResponse {
        try request.expect("POST")
        let requests = try RevisionRequest.all(in: try await request.json(upTo: service.options.documentByteLimit))
        try RequestLimits.check(requests.count, "revisions")
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
        let writer = RowWriter(head: Array("{\"results\":[\n".utf8), tail: Array("\n]}\n".utf8))
        var rows = BulkRevisionRows(of: self, requests, query)
        return .json(200, stream: writer.streamPieces { try rows.next() })
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
        try RequestLimits.check(lists.reduce(0) { $0 + max(1, $1.revisions.count) }, "revisions")
        let (database, asked) = (database, lists)
        let purged = try await database.inTransactionUntilCancelled { cancellation in
            var purged: JSONObject = [:]
            for (id, revisions) in asked {
                try cancellation.check()
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

    func answers(to request: RevisionRequest, _ query: RevisionQuery) throws -> [RevisionOrMissing] {
        let document = database.document(withID: request.id)
        do {
            guard let revision = request.revision else {
                let leaves = try document.leafRevisions
                return leaves.isEmpty ? [.missing("undefined")] : leaves.map { .found($0) }
            }
            return try found([revision], of: document, latest: query.wantsLatest)
        } catch let error as CofferError where error.isAboutOneDocument {
            return [.failed(request.revision, error)]
        }
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

/// Tells work on another thread that the task that waits for it was cancelled: its client has gone, or the server stops.
final class Cancellation: Sendable {
    private let isRequested = Atomic(false)

    func request() { isRequested.store(true, ordering: .relaxed) }

    /// - Throws: `CancellationError` once it was requested.
    func check() throws {
        if isRequested.load(ordering: .relaxed) { throw CancellationError() }
    }
}

extension Database {
    /// Runs `body` as one transaction: see `inTransaction`. It can look whether the task was cancelled, and throw, which takes
    /// back what it has done.
    func inTransactionUntilCancelled<Value: Sendable>(
        _ body: @escaping @Sendable (Cancellation) throws -> Value
    ) async throws -> Value {
        let cancellation = Cancellation()
        return try await withTaskCancellationHandler {
            try await inTransaction { try body(cancellation) }
        } onCancel: {
            cancellation.request()
        }
    }
}
