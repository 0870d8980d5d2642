internal import Coffer
internal import CofferModel

extension DatabaseService {
    /// Answers `_all_docs` and `_all_docs/queries`.
    ///
    /// - Parameters:
    ///   - rest: the path behind `_all_docs`.
    ///   - amongDesign: whether only documents are meant whose ids begin with `_design/`, as `_design_docs` has it.
    func allDocuments(
        _ request: HTTPRequest, _ target: RequestTarget, _ rest: [String], amongDesign: Bool = false
    ) async throws -> HTTPResponse {
        guard rest.isEmpty || rest == ["queries"] else { throw SyncError(404, "no such resource") }
        if rest.isEmpty { try request.expect("GET", "HEAD", "POST") } else { try request.expect("POST") }
        var body: JSONObject = [:]
        if request.method == "POST" {
            guard let object = try await request.json(upTo: service.options.documentByteLimit).objectValue else {
                throw SyncError(400, "the body is not an object")
            }
            body = object
        }
        var listing = AllDocumentsQuery()
        listing.idPrefix = amongDesign ? "_design/" : nil
        if rest.isEmpty {
            // As CouchDB has it, what the URL says counts.
            for (name, value) in body { try listing.set(name, .json(value)) }
            for (name, text) in target.query { try listing.set(name, .text(text)) }
            try RequestLimits.check(listing.keys?.count ?? 0, "keys")
            return .json(200, stream: RowWriter(head: [], tail: []).streamPieces(try pieces(listing)))
        }
        for (name, text) in target.query { try listing.set(name, .text(text)) }
        return .json(200, stream: try results(of: try Self.queries(body, listing)))
    }

    /// The listings that `_all_docs/queries` asks for.
    private static func queries(_ body: JSONObject, _ common: AllDocumentsQuery) throws -> [AllDocumentsQuery] {
        guard let queries = body["queries"]?.arrayValue, body.count == 1 else {
            throw SyncError(400, "the body is not an object with a list of queries and nothing else")
        }
        let all = try queries.map { query in
            guard let query = query.objectValue else { throw SyncError(400, "a query is not an object") }
            var listing = common
            for (name, value) in query { try listing.set(name, .json(value)) }
            return listing
        }
        try RequestLimits.check(all.reduce(0) { $0 + 1 + ($1.keys?.count ?? 0) }, "queries and keys")
        return all
    }

    private func results(of queries: [AllDocumentsQuery]) throws -> ByteStream {
        var rest = queries[...]
        var current: (() throws -> [UInt8]?)?
        let writer = RowWriter(head: Array("{\"results\":[\n".utf8), tail: Array("]}\n".utf8))
        return writer.streamPieces { [self] () throws -> [UInt8]? in
            while true {
                if let piece = try current?() { return piece }
                guard let next = rest.popFirst() else { return nil }
                let isFirst = current == nil
                current = try pieces(next)
                if !isFirst { return [UInt8(ascii: ",")] }
            }
        }
    }

    /// The pieces of one listing's text, each when it is asked for; nil after the last one.
    private func pieces(_ query: AllDocumentsQuery) throws -> () throws -> [UInt8]? {
        var nextRow = try rows(query)
        var head: [UInt8]? = try self.head(query)
        var (isFirst, isOver) = (true, false)
        return {
            if let text = head.take() { return text }
            guard !isOver else { return nil }
            guard let row = try nextRow() else {
                isOver = true
                nextRow = { nil }
                return Array("\n]}\n".utf8)
            }
            defer { isFirst = false }
            return try (isFirst ? [] : Array(",\n".utf8)) + row.messageJSON()
        }
    }

    private func head(_ query: AllDocumentsQuery) throws -> [UInt8] {
        var total = try database.documentCount
        var offset = "null"
        if let prefix = query.idPrefix {
            var counting = AllDocumentsOptions()
            (counting.idPrefix, counting.loadsProperties) = (prefix, false)
            total = try database.allDocuments(counting).all.count
        }
        if query.keys == nil {
            let before = try query.startID.map {
                try database.documentCount(before: $0, isDescending: query.isDescending)
            }
            offset = String(min(total, (before ?? 0).addingSaturated(query.skip)))
        }
        var head = "{\"total_rows\":\(total),\"offset\":\(offset),"
        if query.wantsSequence { head += "\"update_seq\":\(try database.lastSequenceNumber)," }
        return Array((head + "\"rows\":[\n").utf8)
    }

    private func rows(_ query: AllDocumentsQuery) throws -> () throws -> JSONValue? {
        if let keys = query.keys {
            let ordered = query.isDescending ? keys.reversed() : keys
            var rest = ordered.dropFirst(query.skip).prefix(query.limit ?? .max)
            return { try rest.popFirst().map { try row($0, query) } }
        }
        var options = AllDocumentsOptions()
        (options.limit, options.skip, options.isDescending) = (query.limit, query.skip, query.isDescending)
        (options.startID, options.endID, options.includesEnd) = (query.startID, query.endID, query.includesEnd)
        options.loadsProperties = query.includesDocuments
        options.idPrefix = query.idPrefix
        var documents = database.allDocuments(options).makeIterator()
        return { try documents.next().map { try row($0, query) } }
    }

    private func row(_ key: JSONValue, _ query: AllDocumentsQuery) throws -> JSONValue {
        let missing: JSONValue = ["key": key, "error": "not_found"]
        // What can't be an id is not a document's.
        guard let id = key.stringValue, (try? DocumentID(id)) != nil, id.hasPrefix(query.idPrefix ?? "") else {
            return missing
        }
        var options = AllDocumentsOptions()
        (options.ids, options.includesDeleted) = ([id], true)
        var found = database.allDocuments(options).makeIterator()
        return try found.next().map { try row($0, query) } ?? missing
    }

    private func row(_ revision: SavedRevision, _ query: AllDocumentsQuery) throws -> JSONValue {
        let id = JSONValue.string(revision.documentID)
        var value: JSONObject = ["rev": .string(revision.revisionID.description)]
        if revision.isDeletion { value["deleted"] = true }
        var row: JSONObject = ["id": id, "key": id, "value": .object(value)]
        guard query.includesDocuments else { return .object(row) }
        do {
            row["doc"] = revision.isDeletion ? .null : .object(try json(revision, query.revision))
        } catch let error as SyncError where error.status == 413 {
            row["error"] = "attachment_too_large"
            row["reason"] = .string(error.detail)
        }
        return .object(row)
    }
}

/// What a listing of all documents is asked for, in a query's parameters or in a body's members.
struct AllDocumentsQuery: Sendable {
    /// What ids begin with; nil for anything.
    var idPrefix: String?
    private(set) var keys: [JSONValue]?
    private(set) var isDescending = false
    private(set) var includesDocuments = false
    private(set) var includesEnd = true
    private(set) var wantsSequence = false
    private(set) var limit: Int?
    private(set) var skip = 0
    /// What the answer says about each document.
    private(set) var revision = RevisionQuery()
    private var key: String?
    private var start: String?
    private var end: String?

    var startID: String? { key ?? start }
    var endID: String? { key ?? end }

    /// - Throws: ``SyncError`` 400 for a parameter that `_all_docs` doesn't have, and for a value that it can't have.
    mutating func set(_ name: String, _ value: ParameterValue) throws {
        switch name {
        case "keys": keys = try value.list(name)
        case "key": key = try value.id(name)
        case "startkey", "start_key": start = try value.id(name)
        case "endkey", "end_key": end = try value.id(name)
        case "limit": limit = try value.count(name)
        case "skip": skip = try value.count(name)
        case "descending": isDescending = try value.isTrue(name)
        case "include_docs": includesDocuments = try value.isTrue(name)
        case "inclusive_end": includesEnd = try value.isTrue(name)
        case "update_seq": wantsSequence = try value.isTrue(name)
        case "attachments": revision.wantsContents = try value.isTrue(name)
        case "conflicts": revision.wantsConflicts = try value.isTrue(name)
        // Contents are never packed here, and rows are always sorted and as new as can be.
        case "att_encoding_info", "sorted", "stable": _ = try value.isTrue(name)
        case "reduce":
            guard try !value.isTrue(name) else { throw SyncError(400, "documents are not reduced") }
        case "update": _ = try value.word(name, among: ["true", "false", "lazy"])
        case "stale": _ = try value.word(name, among: ["ok", "update_after"])
        // No two rows have the same key.
        case "startkey_docid", "start_key_doc_id", "endkey_docid", "end_key_doc_id": break
        default: throw SyncError(400, "\(name) is not a parameter of _all_docs")
        }
    }
}
