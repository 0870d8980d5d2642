internal import Coffer
internal import CofferModel
internal import Foundation

/// What a request wants to be told of revisions.
struct RevisionQuery: Sendable {
    var wantsHistory: Bool
    var wantsContents: Bool
    /// Leaves that follow the revisions asked for, in place of these.
    var wantsLatest: Bool
    var wantsConflicts: Bool
    var wantsHistoryInfo: Bool
    var wantsSequence = false
    /// Contents that one of these revisions has need not come again.
    var attachmentsSince: [RevisionID]

    /// What stands beside the properties where nothing asks for more.
    init(wantsContents: Bool = false, wantsConflicts: Bool = false) {
        self.wantsContents = wantsContents
        self.wantsConflicts = wantsConflicts
        (wantsHistory, wantsLatest, wantsHistoryInfo, attachmentsSince) = (false, false, false, [])
    }

    /// Whether the text that a revision is kept as says all that is asked of it, where it has no contents.
    var isAnsweredByText: Bool { !wantsHistoryInfo && !wantsSequence && !wantsConflicts }

    init(_ target: RequestTarget) {
        wantsHistory = target.isTrue("revs")
        wantsContents = target.isTrue("attachments")
        wantsLatest = target.isTrue("latest")
        let isAll = target.isTrue("meta")
        wantsConflicts = isAll || target.isTrue("conflicts")
        wantsHistoryInfo = isAll || target.isTrue("revs_info")
        wantsSequence = target.isTrue("local_seq")
        let since = target["atts_since"].flatMap { try? JSONValue(json: Array($0.utf8)).arrayValue } ?? []
        attachmentsSince = since.compactMap { $0.stringValue.flatMap(RevisionID.init) }
        if !attachmentsSince.isEmpty { wantsContents = true }
    }
}

/// A revision that was asked for.
enum RevisionOrMissing: Sendable {
    case found(SavedRevision)
    /// By its id, as it was asked for.
    case missing(String)
    /// It can't be read; nil for all of a document.
    case failed(RevisionID?, CofferError)
}

extension DatabaseService {
    /// The revisions that are asked for.
    func found(_ ids: [RevisionID], of document: Document, latest: Bool) throws -> [RevisionOrMissing] {
        var answers: [RevisionOrMissing] = []
        var given: Set<RevisionID> = []
        let leaves = latest ? try document.leafRevisions : []
        for id in ids {
            var found: [SavedRevision] = []
            if latest {
                found = try leaves.filter { leaf in
                    try leaf.revisionID == id || leaf.history.contains { $0.revisionID == id }
                }
            } else if let revision = try document.revision(withID: id), try revision.propertiesAvailable {
                found = [revision]
            }
            if found.isEmpty { answers.append(.missing(id.description)) }
            for revision in found where given.insert(revision.revisionID).inserted {
                answers.append(.found(revision))
            }
        }
        return answers
    }

    // MARK: As JSON

    /// The revision as a document.
    func json(_ revision: SavedRevision, _ query: RevisionQuery) throws -> JSONObject {
        let outgoing = try OutgoingRevision(revision)
        let history = try revision.history.reversed()
        let since = Self.commonGeneration(query.attachmentsSince, history.map(\.revisionID))
        if query.wantsContents {
            let byteCount = outgoing.contents.filter { $0.generation > since }.reduce(0) {
                $0.addingSaturated($1.length)
            }
            guard byteCount <= service.options.documentByteLimit else {
                throw SyncError(
                    413, of: "document \(revision.documentID)",
                    "its attachments are too large to stand in JSON: they are to be had as multipart")
            }
        }
        var json = try outgoing.json(history: query.wantsHistory ? history.map(\.revisionID) : nil) { content in
            guard query.wantsContents, content.generation > since,
                let bytes = try outgoing.read(content, in: 0..<content.length)
            else { return .stub }
            return .inline(bytes)
        }
        if query.wantsHistoryInfo {
            json["_revs_info"] = .array(
                try history.map { ancestor in
                    [
                        "rev": .string(ancestor.revisionID.description),
                        "status": try ancestor.propertiesAvailable ? "available" : "missing",
                    ]
                })
        }
        if query.wantsSequence { json["_local_seq"] = .number(revision.sequence) }
        if query.wantsConflicts {
            let others = try revision.document.conflictingRevisions.filter { $0 != revision }
            if !others.isEmpty { json["_conflicts"] = .array(others.map { .string($0.revisionID.description) }) }
        }
        return json
    }

    /// The same with `ok` around it, or why it isn't there.
    ///
    /// - Parameter id: of the document, where the answer has the reason in detail as `_bulk_get` does; nil as
    ///   `open_revs` does.
    func json(_ answer: RevisionOrMissing, _ query: RevisionQuery, errorsInDetail id: String?) throws -> JSONValue {
        switch answer {
        case .found(let revision):
            let text = revision.revisionID.description
            do {
                if query.wantsContents, try isWithoutContents(revision, query) {
                    return contentsMissing(revision, errorsInDetail: id)
                }
                return ["ok": .object(try json(revision, query))]
            } catch let error as SyncError where error.status == 413 {
                guard let id else { throw error }
                return Self.errorRow(id, .string(text), "attachment_too_large", error.detail)
            } catch let error as CofferError where error.isAboutOneDocument {
                guard let id else { throw error }
                return Self.errorRow(id, .string(text), error)
            }
        case .failed(let revision, let error):
            guard let id else { throw error }
            return Self.errorRow(id, revision.map { .string($0.description) } ?? .null, error)
        case .missing(let revision):
            guard let id else { return ["missing": .string(revision)] }
            return Self.errorRow(id, .string(revision), "not_found", "missing")
        }
    }

    /// What `_bulk_get` says of a revision that it doesn't give.
    private static func errorRow(_ id: String, _ revision: JSONValue, _ name: String, _ reason: String) -> JSONValue {
        ["error": ["id": .string(id), "rev": revision, "error": .string(name), "reason": .string(reason)]]
    }

    private static func errorRow(_ id: String, _ revision: JSONValue, _ error: CofferError) -> JSONValue {
        let (_, name, reason) = ServerFailure.parts(of: error)
        return errorRow(id, revision, name, reason)
    }

    /// Whether a content of the revision that is to come with it isn't here.
    private func isWithoutContents(_ revision: SavedRevision, _ query: RevisionQuery) throws -> Bool {
        let outgoing = try OutgoingRevision(revision)
        guard !outgoing.contents.allSatisfy(outgoing.isAvailable) else { return false }
        let since = Self.commonGeneration(query.attachmentsSince, try revision.history.reversed().map(\.revisionID))
        return !outgoing.contents.allSatisfy { $0.generation <= since || outgoing.isAvailable($0) }
    }

    /// What is said of a revision whose contents are asked for and are elsewhere.
    private func contentsMissing(_ revision: SavedRevision, errorsInDetail id: String?) -> JSONValue {
        let revision = JSONValue.string(revision.revisionID.description)
        guard let id else { return ["missing": revision] }
        return Self.errorRow(id, revision, "not_found", "the content of an attachment is not here")
    }

    /// The latest generation of the history that is among `since`; 0 where none is.
    static func commonGeneration(_ since: [RevisionID], _ history: [RevisionID]) -> Int {
        history.first { since.contains($0) }?.generation ?? 0
    }

    // MARK: In parts

    /// The revision as a part of a message: JSON, or where contents follow a message of its own.
    ///
    /// - Parameter id: of the document, where the answer says in detail what is missing, as `_bulk_get` does; nil as
    ///   `open_revs` does.
    /// - Returns: nil for a revision of `open_revs` whose contents are not here: CouchDB's replicator skips what has no
    ///   part beside others. It is notified of none that has no content here: see ``ChangesFeed``.
    func part(_ answer: RevisionOrMissing, _ query: RevisionQuery, errorsInDetail id: String?) throws
        -> MultipartBody.Part?
    {
        func failure(_ json: JSONValue) throws -> MultipartBody.Part {
            MultipartBody.Part(
                ["Content-Type": "application/json; error=\"true\""], try (json["error"] ?? json).messageJSON())
        }
        guard case .found(let revision) = answer else {
            return try failure(try json(answer, query, errorsInDetail: id))
        }
        // As CouchDB has it: in parts contents follow, whether they were asked for or not.
        var query = query
        query.wantsContents = true
        do {
            if try isWithoutContents(revision, query) {
                return try id.map { try failure(contentsMissing(revision, errorsInDetail: $0)) }
            }
            guard let message = try message(revision, query) else {
                return MultipartBody.Part(
                    ["Content-Type": "application/json"],
                    try JSONValue.object(try json(revision, query)).canonicalJSON())
            }
            return MultipartBody.Part(
                ["Content-Type": "multipart/related; boundary=\"\(message.boundary)\""], length: message.length
            ) { message.stream }
        } catch let error as CofferError where error.isAboutOneDocument {
            guard let id else { throw error }
            return try failure(Self.errorRow(id, .string(revision.revisionID.description), error))
        }
    }

    /// The revision and the contents that follow it, in the order in which the JSON names them; nil if none does.
    ///
    /// A content without bytes stands in the JSON. Nobody reads such a part in CouchDB's replicator, which waits five minutes for
    /// it to be read (its `attachment_writer_timeout`) where the revision has no other part.
    func message(_ revision: SavedRevision, _ query: RevisionQuery) throws -> MultipartBody? {
        let outgoing = try OutgoingRevision(revision)
        guard query.wantsContents else { return nil }
        let history = try revision.history.reversed().map(\.revisionID)
        let since = Self.commonGeneration(query.attachmentsSince, history)
        return try RelatedMessage(outgoing, history: query.wantsHistory ? history : nil) { content in
            guard content.generation > since else { return .stub }
            return content.length == 0 ? .inline([]) : .follows
        }?.body
    }

    /// - Parameter next: makes the next part when its turn comes; nil after the last one.
    func multipart(_ next: sending @escaping () throws -> MultipartBody.Part?) -> HTTPResponse {
        let boundary = MultipartBody.randomBoundary()
        return HTTPResponse(
            200, fields: ["Content-Type": "multipart/mixed; boundary=\"\(boundary)\""],
            body: .stream(MultipartBody.stream(boundary: boundary, next), length: nil))
    }
}
