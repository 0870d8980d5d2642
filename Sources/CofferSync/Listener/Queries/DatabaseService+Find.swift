internal import Coffer
internal import CofferModel
internal import CofferSealing

extension DatabaseService {
    /// Answers `_find`: documents that a selector means, found by a declared index where one serves.
    func find(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        let find = try FindRequest(try await request.json(upTo: service.options.documentByteLimit))
        let plan = try await plan(find)
        let start = ContinuousClock.now
        var documents = database.documents(find.query).makeIterator()
        var (count, isOver) = (0, false)
        let writer = RowWriter(head: Array("{\"docs\":[\n".utf8), tail: [])
        return .json(
            200,
            stream: writer.streamPieces { [self] () throws -> [UInt8]? in
                guard !isOver else { return nil }
                if let revision = try documents.next() {
                    defer { count += 1 }
                    let text = try JSONValue.object(try document(revision, find)).canonicalJSON()
                    return count == 0 ? text : Array(",\n".utf8) + text
                }
                isOver = true
                var tail = "\n],\n\"bookmark\": \"\(find.bookmark(after: count))\""
                if find.wantsStatistics { tail += statistics(count, ContinuousClock.now - start) }
                if let warning = warning(find, plan) {
                    tail += ",\n\"warning\": \(JSONValue.string(warning).description)"
                }
                return Array((tail + "}\n").utf8)
            })
    }

    /// Answers `_explain`: which index `_find` would read for the same question.
    func explain(_ request: HTTPRequest) async throws -> HTTPResponse {
        try request.expect("POST")
        let find = try FindRequest(try await request.json(upTo: service.options.documentByteLimit))
        let plan = try await plan(find)
        let (limit, skip) = (JSONValue.number(find.limit), JSONValue.number(find.skip))
        let fields: JSONValue = find.fields == nil ? "all_fields" : .array(find.fieldNames.map { .string($0) })
        let order = find.sort.map { ($0.field, JSONValue.string($0.isDescending ? "desc" : "asc")) }
        let options: JSONObject = [
            "use_index": find.indexName.map { .string($0) } ?? [], "bookmark": .string(find.bookmark), "limit": limit,
            "skip": skip, "sort": .object(JSONObject(uniqueKeysWithValues: order)),
            "fields": fields, "conflicts": .bool(find.wantsConflicts),
            "execution_stats": .bool(find.wantsStatistics), "r": 1, "stable": false, "stale": false, "update": true,
            "partition": "", "allow_fallback": true,
        ]
        return try .json(
            200,
            [
                "dbname": .string(database.name), "index": IndexDescription(plan.index).json, "partitioned": false,
                "selector": find.selector, "opts": .object(options), "limit": limit, "skip": skip, "fields": fields,
                "covering": false, "index_candidates": [], "selector_hints": [],
                "plan": .string(plan.description),
            ])
    }

    /// - Throws: ``NamedRefusal`` 400 where CouchDB has no index to sort by.
    private func plan(_ find: FindRequest) async throws -> QueryPlan {
        let order = find.query.order.map(\.path)
        if !order.isEmpty, order.map(\.description) != ["_id"] {
            let isSorted = try database.indexes.contains { index in
                // Fields that the selector fixes may stand before those that are sorted by.
                (0...max(0, index.paths.count - order.count)).contains { start in
                    index.paths.dropFirst(start).prefix(order.count).elementsEqual(order)
                }
            }
            guard isSorted else {
                throw NamedRefusal(
                    status: 400, name: "no_usable_index",
                    reason: "No index exists for this sort, try indexing by the sort fields.")
            }
        }
        return try database.explain(find.query)
    }

    private func warning(_ find: FindRequest, _ plan: QueryPlan) -> String? {
        if let name = find.indexName, plan.index.map({ IndexDescription($0).isCalled(name) }) != true {
            return "\(name) was not used because it does not contain a valid index for this query."
        }
        guard plan.index == nil, find.query.predicate != nil else { return nil }
        return "No matching index found, create an index to optimize query time."
    }

    private func statistics(_ count: Int, _ duration: Duration) -> String {
        // Which entries were looked at is not counted here.
        ",\n\"execution_stats\": {\"total_keys_examined\":0,\"total_docs_examined\":\(count),"
            + "\"total_quorum_docs_examined\":0,\"results_returned\":\(count),"
            + "\"execution_time_ms\":\((duration / .microseconds(1)) / 1000)}"
    }

    private func document(_ revision: SavedRevision, _ find: FindRequest) throws -> JSONObject {
        let document = try json(revision, RevisionQuery(wantsConflicts: find.wantsConflicts))
        guard let fields = find.fields else { return document }
        var chosen: JSONObject = [:]
        for (path, name) in zip(fields, find.fieldNames) {
            guard let value = path.member(of: document) else { continue }
            chosen.set(value, at: Selector.components(name)[...])
        }
        return chosen
    }
}

extension JSONValue {
    static func number(_ count: Int) -> JSONValue { .number(JSONNumber(Int64(count))) }
}

extension PropertyPath {
    /// The value in the document as it is sent, with `_id` and `_rev` among its members.
    fileprivate func member(of document: JSONObject) -> JSONValue? {
        switch description {
        case "_id": document["_id"] ?? nil
        default: value(in: document, id: document["_id"]?.stringValue ?? "")
        }
    }
}

extension JSONObject {
    /// Sets a value in objects in each other, which are made where they are not there.
    fileprivate mutating func set(_ value: JSONValue, at path: ArraySlice<String>) {
        guard let name = path.first else { return }
        guard path.count > 1 else { return self[name] = value }
        var below = self[name]?.objectValue ?? [:]
        below.set(value, at: path.dropFirst())
        self[name] = .object(below)
    }
}
