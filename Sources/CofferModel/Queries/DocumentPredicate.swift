internal import CofferSealing

/// What a document's properties must be like.
///
/// ```swift
/// let predicate = Property("address.city") == "Berlin" && Property("age") >= 18
/// let same = try DocumentPredicate("address.city = 'Berlin' and age >= 18")
/// ```
///
/// A comparison holds only for a property that is there and of the same type as the value: `Property("age") < 30` says
/// nothing of documents without an age, or with one that is a string; `!=` says of a property that is there that it is
/// another value. Strings are compared by their code points, everything else as in ``CollationKey``'s order: `false` before
/// `true`, lists element by element, objects member by member.
public struct DocumentPredicate: Sendable {
    package indirect enum Node: Sendable {
        case all([Node])
        case any([Node])
        case not(Node)
        case comparison(PropertyPath, Comparison, JSONValue)
        case isOneOf(PropertyPath, [JSONValue])
        case hasPrefix(PropertyPath, String)
        case exists(PropertyPath)
    }

    package enum Comparison: Sendable {
        case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
    }

    package let node: Node

    package init(_ node: Node) { self.node = node }

    /// Whether a document is like this.
    ///
    /// - Parameter id: the document's.
    package func matches(_ properties: JSONObject, id: String) -> Bool { node.matches(properties, id) }
}

extension DocumentPredicate.Node {
    /// What must hold, each by itself.
    package var conjuncts: [Self] {
        if case .all(let nodes) = self { nodes } else { [self] }
    }

    /// Of which one must hold.
    package var disjuncts: [Self] {
        if case .any(let nodes) = self { nodes } else { [self] }
    }

    fileprivate func matches(_ properties: JSONObject, _ id: String) -> Bool {
        switch self {
        case .all(let nodes): return nodes.allSatisfy { $0.matches(properties, id) }
        case .any(let nodes): return nodes.contains { $0.matches(properties, id) }
        case .not(let node): return !node.matches(properties, id)
        case .exists(let path): return path.value(in: properties, id: id) != nil
        case .isOneOf(let path, let values):
            guard let value = path.value(in: properties, id: id) else { return false }
            return values.contains { value.isSame(as: $0) }
        case .hasPrefix(let path, let prefix):
            guard case .string(let text)? = path.value(in: properties, id: id) else { return false }
            return text.utf8.starts(with: prefix.utf8)
        case .comparison(let path, let comparison, let operand):
            guard let value = path.value(in: properties, id: id) else { return false }
            switch comparison {
            case .equal: return value.isSame(as: operand)
            case .notEqual: return !value.isSame(as: operand)
            case .less: return value.order(to: operand).map { $0 < 0 } ?? false
            case .lessOrEqual: return value.order(to: operand).map { $0 <= 0 } ?? false
            case .greater: return value.order(to: operand).map { $0 > 0 } ?? false
            case .greaterOrEqual: return value.order(to: operand).map { $0 >= 0 } ?? false
            }
        }
    }
}

extension JSONValue {
    /// Whether both are the same value, as an index has them: a blob is the object that stands for it in JSON.
    fileprivate func isSame(as other: JSONValue) -> Bool {
        switch (self, other) {
        case (.array, .array), (.object, .object), (.object, .blob), (.blob, .object), (.blob, .blob):
            order(to: other) == 0
        default: self == other
        }
    }

    /// Less than, equal to or more than zero, as this comes before, with or after a value of the same type; nil for one of
    /// another.
    fileprivate func order(to other: JSONValue) -> Int? {
        switch (self, other) {
        case (.null, .null): return 0
        case (.bool(let left), .bool(let right)): return (left ? 1 : 0) - (right ? 1 : 0)
        case (.string(let left), .string(let right)):
            return left.withBytes { left in right.withBytes { compareBytes(left, $0) } }
        case (.number, .number), (.array, .array), (.object, .object), (.object, .blob), (.blob, .object),
            (.blob, .blob):
            guard let left = try? CollationKey(self), let right = try? CollationKey(other) else { return nil }
            return compareBytes(left.bytes.span, right.bytes.span)
        default: return nil
        }
    }
}
