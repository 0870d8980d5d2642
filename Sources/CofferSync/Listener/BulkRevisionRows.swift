internal import Coffer
internal import CofferModel

/// The rows that `_bulk_get` answers with in JSON, one for each revision that was asked for, a piece of text at a time.
///
/// Most are asked for by a replicator, and have no contents: those are read together, and answered with the text that they are kept
/// as. Of the others one revision is read at a time, though a row may have many.
struct BulkRevisionRows {
    private let service: DatabaseService
    private let query: RevisionQuery
    private var rest: ArraySlice<RevisionRequest>
    /// The rows of the first of the rest, as far as they were read together; nil for one that is read alone.
    private var ahead: ArraySlice<[UInt8]?> = []
    /// The row that was begun, and what it still has to say.
    private var row: (request: RevisionRequest, answers: ArraySlice<RevisionOrMissing>)?
    private var (isFirstRow, isFirstDocument) = (true, true)

    init(of service: DatabaseService, _ requests: [RevisionRequest], _ query: RevisionQuery) {
        self.service = service
        self.query = query
        rest = requests[...]
    }

    /// The next piece of the answer; nil after the last row.
    mutating func next() throws -> [UInt8]? {
        guard let (request, answers) = row else { return try beginRow() }
        guard let answer = answers.first else {
            row = nil
            return try Self.end(of: request)
        }
        row = (request, answers.dropFirst())
        var query = query
        if !request.attachmentsSince.isEmpty { query.attachmentsSince = request.attachmentsSince }
        let text = try service.json(answer, query, errorsInDetail: request.id).messageJSON()
        defer { isFirstDocument = false }
        return isFirstDocument ? text : [UInt8(ascii: ",")] + text
    }

    private mutating func beginRow() throws -> [UInt8]? {
        if ahead.isEmpty { ahead = readAhead()[...] }
        guard let request = rest.popFirst() else { return nil }
        let text = ahead.popFirst() ?? nil
        let start = Array((isFirstRow ? "{\"docs\":[" : ",\n{\"docs\":[").utf8)
        isFirstRow = false
        if let text { return start + text + (try Self.end(of: request)) }
        row = (request, try service.answers(to: request, query)[...])
        isFirstDocument = true
        return start
    }

    private static func end(of request: RevisionRequest) throws -> [UInt8] {
        Array("],\"id\":".utf8) + (try JSONValue.string(request.id).canonicalJSON()) + [UInt8(ascii: "}")]
    }

    /// What the first of the rest are answered with; nil for those to be read alone, with what is wrong with them.
    private func readAhead() -> [[UInt8]?] {
        let wanted = rest.prefix { $0.revision != nil }.lazy.compactMap { request in
            request.revision.map { (id: request.id, revision: $0) }
        }
        guard query.isAnsweredByText, !wanted.isEmpty else { return [] }
        let texts = try? service.database.lendRevisions(wanted) { revision -> [UInt8]? in
            guard !query.wantsLatest || revision.isOnlyLeaf,
                let text = OutgoingRevision.text(of: revision, withHistory: query.wantsHistory)
            else { return nil }
            return Array("{\"ok\":".utf8) + text + [UInt8(ascii: "}")]
        }
        return texts.map { $0.map { $0 ?? nil } } ?? [nil]
    }
}
