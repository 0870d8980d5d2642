internal import Coffer
internal import CofferModel

extension DatabaseService {
    /// Answers `_design/NAME/_view/V`, and `queries` below it: rows of the view that the app has called `NAME/V`, or `V` where
    /// both are the same.
    ///
    /// - Parameter rest: the path behind `_view`.
    func view(
        _ request: HTTPRequest, _ target: RequestTarget, _ design: String, _ rest: [String]
    ) async throws -> HTTPResponse {
        guard let name = rest.first, rest.count == 1 || Array(rest.dropFirst()) == ["queries"] else {
            throw SyncError(404, "missing")
        }
        let hasQueries = rest.count == 2
        if hasQueries { try request.expect("POST") } else { try request.expect("GET", "HEAD", "POST") }
        guard let view = registeredView(design, name) else { throw SyncError(404, "missing_named_view") }
        var body: JSONObject = [:]
        if request.method == "POST" {
            guard
                let object = try await request.json(upTo: service.options.documentByteLimit, default: [:]).objectValue
            else { throw SyncError(400, "Request body must be a JSON object") }
            body = object
        }
        var query = ViewQuery()
        if !hasQueries { for (name, value) in body { try query.set(name, .json(value)) } }
        for (name, text) in target.query { try query.set(name, .text(text)) }
        try RequestLimits.check(query.options.keys?.count ?? 0, "keys")
        guard hasQueries else {
            return .json(200, stream: RowWriter(head: [], tail: []).streamPieces(try await pieces(view, query)))
        }
        guard let list = body["queries"]?.arrayValue else { throw SyncError(400, "`queries` is not a list") }
        var makers: [() throws -> [UInt8]?] = []
        for one in list {
            guard let one = one.objectValue else { throw SyncError(400, "a query is not an object") }
            var own = query
            for (name, value) in one { try own.set(name, .json(value)) }
            makers.append(try await pieces(view, own))
        }
        try RequestLimits.check(makers.count, "queries")
        return .json(200, stream: Self.results(of: makers))
    }

    private func registeredView(_ design: String, _ name: String) -> DatabaseView? {
        let view = database.view(named: "\(design)/\(name)")
        if view.hasMap { return view }
        guard design == name else { return nil }
        let alone = database.view(named: name)
        return alone.hasMap ? alone : nil
    }

    private static func results(of makers: sending [() throws -> [UInt8]?]) -> ByteStream {
        var place = 0
        let writer = RowWriter(head: Array("{\"results\":[\n".utf8), tail: Array("]}\n".utf8))
        return writer.streamPieces { () throws -> [UInt8]? in
            while place < makers.count {
                if let piece = try makers[place]() { return piece }
                place += 1
                if place < makers.count { return [UInt8(ascii: ",")] }
            }
            return nil
        }
    }

    /// The pieces of one listing's text, each when it is asked for; nil after the last one.
    private func pieces(_ view: DatabaseView, _ query: ViewQuery) async throws -> () throws -> [UInt8]? {
        let isReduced = try query.isReduced(view.hasReduction)
        if case .before = query.options.update { try bringUpToDate(view) }
        var nextRow: () throws -> JSONValue?
        var text = "{"
        if isReduced {
            var rows = view.reducedRows(query.options).makeIterator()
            nextRow = { try rows.next().map { ["key": $0.key, "value": $0.value] } }
        } else {
            let total = try view.totalRows
            var options = query.options
            // Values may name other documents, which are read then.
            options.loadsDocuments = query.options.loadsDocuments
            var rows = view.rows(options).makeIterator()
            nextRow = { [self] in try rows.next().map { try row($0, query) } }
            let offset = try offset(view, query.options, total)
            text += "\"total_rows\":\(total),\"offset\":\(offset.map(String.init) ?? "null"),"
        }
        if query.wantsSequence { text += "\"update_seq\":\(try view.lastSequenceIndexed)," }
        var head: [UInt8]? = Array((text + "\"rows\":[\n").utf8)
        var (isFirst, isOver) = (true, false)
        return {
            if let text = head.take() { return text }
            guard !isOver else { return nil }
            guard let row = try nextRow() else {
                isOver = true
                return Array("\n]}\n".utf8)
            }
            defer { isFirst = false }
            return try (isFirst ? [] : Array(",\n".utf8)) + row.messageJSON()
        }
    }

    /// Not the form that waits without its thread: a request has one of its own.
    private func bringUpToDate(_ view: DatabaseView) throws { try view.updateIndex() }

    private func row(_ row: ViewRow, _ query: ViewQuery) throws -> JSONValue {
        var json: JSONObject = ["id": .string(row.documentID), "key": row.key, "value": row.value]
        guard query.options.loadsDocuments else { return .object(json) }
        var revision = row.revision
        if let linked = row.value["_id"]?.stringValue {
            revision = try database.document(withID: linked).currentRevision
        }
        json["doc"] = .some(try revision.map { .object(try self.json($0, query.revision)) } ?? .null)
        return .object(json)
    }

    /// More rows are not counted to say how many come before the first one.
    private static let countedRowLimit = 10_000

    /// How many rows come before the first one; nil if that would take long to find out.
    private func offset(_ view: DatabaseView, _ options: ViewOptions, _ total: Int) throws -> Int? {
        guard options.keys == nil else { return nil }
        var before = 0
        if let start = options.startKey {
            var counting = ViewOptions()
            (counting.endKey, counting.endDocumentID) = (.some(start), options.startDocumentID)
            (counting.includesEnd, counting.isDescending) = (false, options.isDescending)
            (counting.update, counting.limit) = (.never, Self.countedRowLimit)
            for _ in try view.rows(counting).all { before += 1 }
            if before == Self.countedRowLimit { return nil }
        }
        return min(total, before.addingSaturated(options.skip))
    }
}

/// What is asked of a view, in a query's parameters or in a body's members.
struct ViewQuery: Sendable {
    private(set) var options = ViewOptions()
    private(set) var wantsSequence = false
    /// What the answer says about each document.
    private(set) var revision = RevisionQuery()
    /// Nil where nothing is said: what can be reduced is.
    private(set) var reduces: Bool?
    private(set) var groups = false

    /// - Throws: ``NamedRefusal`` 400 for a parameter that no view has, and for a value that it can't have.
    mutating func set(_ name: String, _ value: ParameterValue) throws(NamedRefusal) {
        do throws(SyncError) {
            try take(name, value)
        } catch {
            throw Self.refusal(error.detail)
        }
    }

    private static func refusal(_ reason: String) -> NamedRefusal {
        NamedRefusal(status: 400, name: "query_parse_error", reason: reason)
    }

    private mutating func take(_ name: String, _ value: ParameterValue) throws(SyncError) {
        switch name {
        case "keys": options.keys = try value.list(name)
        case "key":
            options.startKey = .some(try value.json(name))
            options.endKey = options.startKey
        case "startkey", "start_key": options.startKey = .some(try value.json(name))
        case "endkey", "end_key": options.endKey = .some(try value.json(name))
        case "startkey_docid", "start_key_doc_id": options.startDocumentID = value.plainText
        case "endkey_docid", "end_key_doc_id": options.endDocumentID = value.plainText
        case "limit": options.limit = try value.count(name)
        case "skip": options.skip = try value.count(name)
        case "descending": options.isDescending = try value.isTrue(name)
        case "inclusive_end": options.includesEnd = try value.isTrue(name)
        case "include_docs": options.loadsDocuments = try value.isTrue(name)
        case "reduce": reduces = try value.isTrue(name)
        case "group":
            groups = try value.isTrue(name)
            if groups { options.groupLevel = .max }
        case "group_level":
            let level = try value.count(name)
            options.groupLevel = level > 0 ? level : nil
            groups = level > 0
        case "update_seq": wantsSequence = try value.isTrue(name)
        case "attachments": revision.wantsContents = try value.isTrue(name)
        case "conflicts": revision.wantsConflicts = try value.isTrue(name)
        case "att_encoding_info", "sorted", "stable": _ = try value.isTrue(name)
        case "update":
            switch try value.word(name, among: ["true", "false", "lazy"]) {
            case "false": options.update = .never
            case "lazy": options.update = .after
            default: options.update = .before
            }
        case "stale":
            options.update = try value.word(name, among: ["ok", "update_after"]) == "ok" ? .never : .after
        default: throw SyncError(400, "\(name.shortened(to: 100)) is not a parameter of a view")
        }
    }

    /// Whether rows are reduced, for a view that can be or not.
    ///
    /// - Throws: ``NamedRefusal`` 400 for what doesn't go together.
    func isReduced(_ canReduce: Bool) throws(NamedRefusal) -> Bool {
        guard canReduce || reduces != true else { throw Self.refusal("Reduce is invalid for map-only views.") }
        let isReduced = canReduce && reduces != false
        guard isReduced || !groups else { throw Self.refusal("Invalid use of grouping on a map view.") }
        guard isReduced else { return false }
        guard !options.loadsDocuments else { throw Self.refusal("`include_docs` is invalid for reduce") }
        guard options.keys == nil || groups else {
            throw Self.refusal("Multi-key fetches for reduce views must use `group=true`")
        }
        return true
    }
}
