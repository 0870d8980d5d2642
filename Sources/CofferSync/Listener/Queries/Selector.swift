internal import Coffer
internal import CofferModel

/// What CouchDB's `_find` calls a selector, as a predicate.
///
/// As CouchDB has it, a comparison is between values of any types, in the order null, false, true, numbers, strings, lists,
/// objects; nothing but `$exists` holds for a field that isn't there; and `$not` is about the operators behind it, so that it
/// doesn't either. Strings are compared by code points, where CouchDB asks ICU.
struct Selector {
    /// Nil where all documents are meant.
    let predicate: DocumentPredicate?

    private typealias Node = DocumentPredicate.Node

    /// - Throws: ``NamedRefusal`` 400.
    init(_ json: JSONValue) throws(NamedRefusal) {
        guard let object = json.objectValue else {
            throw NamedRefusal(status: 400, name: "invalid_selector_json", reason: "Selector must be a JSON object")
        }
        let node = try Self.selector(object, at: [], isNegated: false, depth: 0)
        if case .all(let nodes) = node, nodes.isEmpty { predicate = nil } else { predicate = DocumentPredicate(node) }
    }

    /// Deeper ones are refused, as each level takes a part of the stack.
    private static let depthLimit = 100

    // MARK: Objects

    /// All members of an object hold: fields below `path`, or operators on what is there.
    private static func selector(
        _ object: JSONObject, at path: [String], isNegated: Bool, depth: Int
    ) throws(NamedRefusal) -> Node {
        guard depth < depthLimit else { throw refusal("the selector is nested too deeply") }
        if object.contains(where: { $0.0.hasPrefix("$") }) {
            return try operators(object, at: path, isNegated: isNegated, depth: depth + 1)
        }
        // `{"a": {}}` asks for an empty object, and `{}` for all documents.
        if object.isEmpty, !path.isEmpty { return equal(path, .object(object), isNegated) }
        var nodes: [Node] = []
        for (name, value) in object {
            let below = path + components(name)
            if let member = value.objectValue {
                nodes.append(try selector(member, at: below, isNegated: isNegated, depth: depth + 1))
            } else {
                nodes.append(equal(below, value, isNegated))
            }
        }
        return combined(nodes, isNegated)
    }

    /// By De Morgan, what doesn't hold together is what one of doesn't hold.
    private static func combined(_ nodes: [Node], _ isNegated: Bool) -> Node {
        nodes.count == 1 ? nodes[0] : isNegated ? .any(nodes) : .all(nodes)
    }

    private static func operators(
        _ object: JSONObject, at path: [String], isNegated: Bool, depth: Int
    ) throws(NamedRefusal) -> Node {
        var nodes: [Node] = []
        // Two bounds of one type leave no other type between them: so an index can be narrowed by both.
        let bounds = object.filter { ["$gt", "$gte", "$lt", "$lte"].contains($0.0) }
        let isRange =
            !isNegated && bounds.count == 2 && bounds.first?.1.kind == bounds.last?.1.kind
            && bounds.contains { $0.0.hasPrefix("$g") } && bounds.contains { $0.0.hasPrefix("$l") }
        for (name, value) in object {
            guard name.hasPrefix("$") else {
                throw refusal("operators and fields stand in one object of the selector")
            }
            if isRange, let comparison = comparisons[name] {
                nodes.append(.comparison(Self.path(path), comparison, value))
            } else {
                nodes.append(try node(name, value, at: path, isNegated, depth))
            }
        }
        return combined(nodes, isNegated)
    }

    // MARK: Operators

    private static let comparisons: [String: DocumentPredicate.Comparison] = [
        "$gt": .greater, "$gte": .greaterOrEqual, "$lt": .less, "$lte": .lessOrEqual,
    ]
    private static let opposites = ["$gt": "$lte", "$gte": "$lt", "$lt": "$gte", "$lte": "$gt"]
    /// CouchDB's, that no predicate here has.
    private static let unsupported: Set = ["$regex", "$mod", "$size", "$text", "$keyMapMatch"]

    private static func node(
        _ name: String, _ value: JSONValue, at path: [String], _ isNegated: Bool, _ depth: Int
    ) throws(NamedRefusal) -> Node {
        switch name {
        case "$and", "$or", "$nor":
            let isNegated = isNegated != (name == "$nor")
            let isTogether = (name == "$and") != isNegated
            var nodes: [Node] = []
            for element in try list(name, value) {
                guard let object = element.objectValue else { throw bad(name) }
                nodes.append(try selector(object, at: path, isNegated: isNegated, depth: depth + 1))
            }
            // As CouchDB has it, what has nothing to choose from finds nothing.
            if nodes.isEmpty { return .any([]) }
            return isTogether ? .all(nodes) : .any(nodes)
        case "$not":
            guard let object = value.objectValue else { throw bad(name) }
            return try selector(object, at: path, isNegated: !isNegated, depth: depth + 1)
        default: break
        }
        guard !path.isEmpty else { throw invalid(name) }
        let place = Self.path(path)
        switch name {
        case "$eq": return equal(path, value, isNegated)
        case "$ne": return equal(path, value, !isNegated)
        case "$gt", "$gte", "$lt", "$lte":
            let name = isNegated ? opposites[name] ?? name : name
            guard let comparison = comparisons[name] else { throw invalid(name) }
            // Values of the types that come after that one are greater, those of the types before it are less.
            let others = name.hasPrefix("$g") ? value.kind.after : value.kind.before
            return .any([.comparison(place, comparison, value)] + others.map { .isType(place, $0) })
        case "$exists":
            guard let flag = value.boolValue else { throw bad(name) }
            return flag != isNegated ? .exists(place) : .not(.exists(place))
        case "$in", "$nin":
            let values = try list(name, value)
            // Of a list, one of its elements is meant.
            let single = values.filter { $0.arrayValue == nil }
            return present(
                place, .any([.isOneOf(place, single), .anyElement(place, .isOneOf(.itself, values))]),
                isNegated != (name == "$nin"))
        case "$all":
            let values = try list(name, value)
            guard !values.isEmpty else { return present(place, .any([]), isNegated) }
            let all = Node.all(values.map { .anyElement(place, .comparison(.itself, .equal, $0)) })
            // `[["a"]]` means the list itself, too.
            let isWhole = values.count == 1 && values[0].arrayValue != nil
            return present(place, isWhole ? .any([all, .comparison(place, .equal, values[0])]) : all, isNegated)
        case "$elemMatch", "$allMatch":
            guard let object = value.objectValue else { throw bad(name) }
            let element = try Self.element(object, depth)
            let some = Node.anyElement(place, name == "$elemMatch" ? element : .all([]))
            return present(
                place, name == "$elemMatch" ? some : .all([some, .everyElement(place, element)]), isNegated)
        case "$type":
            guard let word = value.stringValue else { throw bad(name) }
            // As CouchDB has it, nothing is of a type that there isn't.
            return present(place, types[word].map { .isType(place, $0) } ?? .any([]), isNegated)
        case "$beginsWith":
            guard let prefix = value.stringValue else { throw bad(name) }
            return present(place, .hasPrefix(place, prefix), isNegated)
        case _ where unsupported.contains(name):
            throw NamedRefusal(
                status: 400, name: "invalid_operator", reason: "Operator \(name) is not supported by this server")
        default: throw invalid(name)
        }
    }

    private static let types: [String: DocumentPredicate.ValueType] = [
        "null": .null, "boolean": .boolean, "number": .number, "string": .string, "array": .list, "object": .object,
    ]

    /// What must hold for an element of a list. Its paths begin there.
    private static func element(_ object: JSONObject, _ depth: Int) throws(NamedRefusal) -> Node {
        try selector(object, at: [elementMark], isNegated: false, depth: depth + 1)
    }

    /// Stands at the beginning of a path for the element that it begins at: no field is called so.
    private static let elementMark = "\u{0}"

    private static func equal(_ path: [String], _ value: JSONValue, _ isNegated: Bool) -> Node {
        .comparison(Self.path(path), isNegated ? .notEqual : .equal, value)
    }

    /// The node, or where it is negated, that there is something that is otherwise.
    private static func present(_ path: PropertyPath, _ node: Node, _ isNegated: Bool) -> Node {
        isNegated ? .all([.exists(path), .not(node)]) : node
    }

    private static func list(_ name: String, _ value: JSONValue) throws(NamedRefusal) -> [JSONValue] {
        guard let list = value.arrayValue else { throw bad(name) }
        return list
    }

    // MARK: Paths

    /// The parts of a field's name between dots that no backslash stands before.
    static func components(_ name: String) -> [String] {
        var (parts, isEscaped) = ([""], false)
        for character in name {
            if isEscaped {
                isEscaped = false
                if character != "." { parts[parts.count - 1].append("\\") }
            } else if character == "\\" {
                isEscaped = true
                continue
            } else if character == "." {
                parts.append("")
                continue
            }
            parts[parts.count - 1].append(character)
        }
        if isEscaped { parts[parts.count - 1].append("\\") }
        return parts
    }

    private static func path(_ components: [String]) -> PropertyPath {
        var rest = components[...]
        if rest.first == elementMark { rest.removeFirst() }
        return rest.isEmpty ? .itself : PropertyPath(ofMembers: Array(rest))
    }

    // MARK: Refusals

    private static func invalid(_ name: String) -> NamedRefusal {
        NamedRefusal(status: 400, name: "invalid_operator", reason: "Invalid operator: \(name.shortened(to: 100))")
    }

    private static func bad(_ name: String) -> NamedRefusal {
        NamedRefusal(status: 400, name: "bad_arg", reason: "Bad argument for operator \(name)")
    }

    private static func refusal(_ reason: String) -> NamedRefusal {
        NamedRefusal(status: 400, name: "invalid_selector", reason: reason)
    }
}

extension PropertyPath {
    /// The path of members in each other, whatever their names hold.
    init(ofMembers names: [String]) {
        self.init(
            names.map { name in
                name.map { ".[]\\".contains($0) ? "\\\($0)" : String($0) }.joined()
            }.joined(separator: "."))
    }

    /// The path that a field's name says to CouchDB.
    init(ofField name: String) { self.init(ofMembers: Selector.components(name)) }

    /// What CouchDB calls the field.
    var fieldName: String { description.replacing("\\[", with: "[").replacing("\\]", with: "]") }
}

extension JSONValue {
    /// Its type, as a predicate has it.
    fileprivate var kind: DocumentPredicate.ValueType {
        switch self {
        case .null: .null
        case .bool: .boolean
        case .number: .number
        case .string: .string
        case .array: .list
        case .object, .blob: .object
        }
    }
}

extension DocumentPredicate.ValueType {
    /// The types in the order of their values.
    private static let ordered: [Self] = [.null, .boolean, .number, .string, .list, .object]

    fileprivate var before: [Self] { Array(Self.ordered.prefix { $0 != self }) }
    fileprivate var after: [Self] { Array(Self.ordered.drop { $0 != self }.dropFirst()) }
}
