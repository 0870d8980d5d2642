internal import Coffer
internal import CofferModel

extension DatabaseService {
    /// Answers `_all_docs` and `_all_docs/queries`.
    ///
    /// - Parameter rest: the path behind `_all_docs`.
    func allDocuments(_ request: HTTPRequest, _ target: RequestTarget, _ rest: [String]) async throws -> HTTPResponse {
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
            return try (isFirst ? [] : Array(",\n".utf8)) + row.canonicalJSON()
        }
    }

    private func head(_ query: AllDocumentsQuery) throws -> [UInt8] {
        let total = try database.documentCount
        var offset = "null"
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
        var documents = database.allDocuments(options).makeIterator()
        return { try documents.next().map { try row($0, query) } }
    }

    private func row(_ key: JSONValue, _ query: AllDocumentsQuery) throws -> JSONValue {
        let missing: JSONValue = ["key": key, "error": "not_found"]
        // What can't be an id is no document's.
        guard let id = key.stringValue, (try? DocumentID(id)) != nil else { return missing }
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

    /// A value as it was sent.
    enum Value {
        case text(String)
        case json(JSONValue)
    }

    /// - Throws: ``SyncError`` 400 for a parameter that `_all_docs` doesn't have, and for a value that it can't have.
    mutating func set(_ name: String, _ value: Value) throws {
        switch name {
        case "keys":
            guard let list = try json(name, value).arrayValue else { throw SyncError(400, "keys is not a list") }
            keys = list
        case "key": key = try id(name, value)
        case "startkey", "start_key": start = try id(name, value)
        case "endkey", "end_key": end = try id(name, value)
        case "limit": limit = try count(name, value)
        case "skip": skip = try count(name, value)
        case "descending": isDescending = try isTrue(name, value)
        case "include_docs": includesDocuments = try isTrue(name, value)
        case "inclusive_end": includesEnd = try isTrue(name, value)
        case "update_seq": wantsSequence = try isTrue(name, value)
        case "attachments": revision.wantsContents = try isTrue(name, value)
        case "conflicts": revision.wantsConflicts = try isTrue(name, value)
        // Contents are never packed here, and rows are always sorted and as new as can be.
        case "att_encoding_info", "sorted", "stable": _ = try isTrue(name, value)
        case "reduce":
            guard try !isTrue(name, value) else { throw SyncError(400, "documents are not reduced") }
        case "update": try check(name, value, ["true", "false", "lazy"])
        case "stale": try check(name, value, ["ok", "update_after"])
        // No two rows have the same key.
        case "startkey_docid", "start_key_doc_id", "endkey_docid", "end_key_doc_id": break
        default: throw SyncError(400, "\(name) is not a parameter of _all_docs")
        }
    }

    private func json(_ name: String, _ value: Value) throws -> JSONValue {
        switch value {
        case .json(let json): return json
        case .text(let text):
            guard let json = try? JSONValue(json: text.utf8) else { throw SyncError(400, "\(name) is not JSON") }
            return json
        }
    }

    private func id(_ name: String, _ value: Value) throws -> String {
        guard let id = try json(name, value).stringValue else {
            throw SyncError(400, "\(name) is not a string in JSON")
        }
        return id
    }

    private func count(_ name: String, _ value: Value) throws -> Int {
        let count: Int? =
            switch value {
            case .text(let text): Int(text)
            case .json(let json): Int(jsonValue: json)
            }
        guard let count, count >= 0 else { throw SyncError(400, "\(name) is not a count") }
        return count
    }

    /// In bodies, too, CouchDB takes the words.
    private func text(_ value: Value) -> String? {
        switch value {
        case .text(let text): text
        case .json(let json): json.stringValue ?? json.boolValue.map { String($0) }
        }
    }

    private func isTrue(_ name: String, _ value: Value) throws -> Bool {
        guard let flag = text(value).flatMap(Bool.init) else {
            throw SyncError(400, "\(name) is neither true nor false")
        }
        return flag
    }

    private func check(_ name: String, _ value: Value, _ words: [String]) throws {
        guard let text = text(value), words.contains(text) else {
            throw SyncError(400, "\(name) must be one of \(words.joined(separator: ", "))")
        }
    }
}
