internal import Coffer
internal import CofferModel
internal import Foundation

/// What a request to `_find` or `_explain` asks for.
struct FindRequest: Sendable {
    let selector: JSONValue
    private(set) var query: DocumentQuery
    /// The fields that each document is reported with; nil for all.
    private(set) var fields: [PropertyPath]?
    private(set) var limit = 25
    private(set) var skip = 0
    private(set) var wantsStatistics = false
    private(set) var wantsConflicts = false
    /// The index that the client names, as it does.
    private(set) var indexName: String?
    private(set) var bookmark = "nil"
    private(set) var sort: [(field: String, isDescending: Bool)] = []
    private(set) var fieldNames: [String] = []

    /// - Throws: ``NamedRefusal`` 400.
    init(_ json: JSONValue) throws {
        guard let object = json.objectValue else { throw SyncError(400, "Request body must be a JSON object") }
        guard let selector = object["selector"] else {
            throw NamedRefusal(
                status: 400, name: "missing_required_key", reason: "Missing required key: selector")
        }
        self.selector = selector
        query = DocumentQuery(where: try Selector(selector).predicate)
        var position = 0
        for (name, value) in object {
            switch name {
            case "selector": break
            case "limit": limit = try Self.count(value)
            case "skip": skip = try Self.count(value)
            case "fields": try set(fields: value)
            case "sort": try set(sort: value)
            case "use_index": try set(index: value)
            case "bookmark": position = try set(bookmark: value)
            case "execution_stats": wantsStatistics = try Self.flag(name, value)
            case "conflicts": wantsConflicts = try Self.flag(name, value)
            case "update", "stable", "allow_fallback", "stale": _ = value
            case "r", "w", "n", "q", "partition", "partitioned": _ = value
            default:
                throw NamedRefusal(
                    status: 400, name: "invalid_key",
                    reason: "Invalid key \(name.shortened(to: 100)) for this request.")
            }
        }
        query.skip = position.addingSaturated(skip)
        query.limit = limit
        query.order = sort.map { field, isDescending in
            let path = PropertyPath(ofField: field)
            return isDescending ? .descending(path) : .ascending(path)
        }
        // As CouchDB has it, sorted documents come from an index, which none is in that lacks a field of it.
        let present = query.order.filter { $0.path.description != "_id" }
            .map { DocumentPredicate.Node.exists($0.path) }
        if !present.isEmpty {
            query.predicate = DocumentPredicate(.all((query.predicate?.node.conjuncts ?? []) + present))
        }
    }

    private static func count(_ value: JSONValue) throws(NamedRefusal) -> Int {
        guard let count = Int(jsonValue: value), count >= 0 else {
            throw NamedRefusal(
                status: 400, name: "invalid_non_neg_integer",
                reason: "\(value.description.shortened(to: 100)) is not an integer greater than or equal to zero")
        }
        return count
    }

    private static func flag(_ name: String, _ value: JSONValue) throws(NamedRefusal) -> Bool {
        guard let flag = value.boolValue else {
            throw NamedRefusal(status: 400, name: "invalid_boolean", reason: "\(name) is neither true nor false")
        }
        return flag
    }

    private mutating func set(fields value: JSONValue) throws(NamedRefusal) {
        if value == "all_fields" { return }
        guard let list = value.arrayValue, case let names = list.compactMap(\.stringValue), names.count == list.count
        else {
            throw NamedRefusal(
                status: 400, name: "invalid_fields", reason: "Fields must be an array of strings")
        }
        fieldNames = names
        fields = names.isEmpty ? nil : names.map(PropertyPath.init(ofField:))
    }

    private mutating func set(sort value: JSONValue) throws(NamedRefusal) {
        sort = try FieldList(value).fields
        guard Set(sort.map(\.isDescending)).count < 2 else {
            throw NamedRefusal(
                status: 400, name: "unsupported_mixed_sort",
                reason: "Sorts currently only support a single direction for all fields.")
        }
    }

    private mutating func set(index value: JSONValue) throws(NamedRefusal) {
        let parts = value.arrayValue?.compactMap(\.stringValue) ?? value.stringValue.map { [$0] } ?? []
        guard let first = parts.first else {
            if value.arrayValue?.isEmpty == true { return }
            throw NamedRefusal(status: 400, name: "invalid_index_name", reason: "Invalid index name")
        }
        let design = first.hasPrefix("_design/") ? String(first.dropFirst(8)) : first
        indexName = parts.count > 1 ? "\(design)/\(parts[1])" : design
    }

    // MARK: Bookmarks

    /// How many documents came before.
    private mutating func set(bookmark value: JSONValue) throws(NamedRefusal) -> Int {
        guard let text = value.stringValue else { throw Self.invalidBookmark }
        if text == "nil" || text.isEmpty { return 0 }
        bookmark = text
        guard let data = Data(base64Encoded: text), let says = String(validating: data, as: UTF8.self),
            says.hasPrefix("after "), let count = Int(says.dropFirst(6)), count >= 0
        else { throw Self.invalidBookmark }
        return count
    }

    private static let invalidBookmark = NamedRefusal(
        status: 400, name: "invalid_bookmark", reason: "Invalid bookmark value")

    /// What a client asks with for the documents that follow, after so many.
    func bookmark(after count: Int) -> String {
        guard count > 0 else { return bookmark }
        return Data("after \(query.skip.addingSaturated(count))".utf8).base64EncodedString()
    }
}

/// Fields as `_find` sorts by them, and as an index is over them: `["a", {"b": "desc"}]`.
struct FieldList {
    let fields: [(field: String, isDescending: Bool)]

    /// - Throws: ``NamedRefusal`` 400.
    init(_ json: JSONValue) throws(NamedRefusal) {
        guard let list = json.arrayValue else {
            throw NamedRefusal(status: 400, name: "invalid_sort_json", reason: "Sort must be an array of fields")
        }
        var fields: [(field: String, isDescending: Bool)] = []
        for element in list {
            if let name = element.stringValue {
                fields.append((name, false))
            } else if let object = element.objectValue, object.count == 1, let (name, direction) = object.first,
                let word = direction.stringValue, ["asc", "desc"].contains(word)
            {
                fields.append((name, word == "desc"))
            } else {
                throw NamedRefusal(
                    status: 400, name: "invalid_sort_field",
                    reason: "A field is a name, or an object of a name and its direction")
            }
        }
        self.fields = fields
    }
}
