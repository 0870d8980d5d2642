internal import CofferSealing

/// A condition on a document's properties.
///
/// ```swift
/// let predicate = Property("address.city") == "Berlin" && Property("age") >= 18
/// let same = try DocumentPredicate("address.city = 'Berlin' and age >= 18")
/// ```
///
/// A comparison holds only for a property that is there and of the same type as the value: `Property("age") < 30` says
/// nothing of documents without an age, or with one that is a string; `!=` says of a property that is there that it is
/// another value. Strings are compared by their code points, everything else as in `CollationKey`'s order: `false` before
/// `true`, lists element by element, objects member by member.
///
/// Texts are looked for in strings by their code points too, unless ``TextDifferences`` are ignored.
public struct DocumentPredicate: Sendable {
    /// Differences between texts that don't count.
    public struct TextDifferences: OptionSet, Sendable {
        /// The differences as bits.
        public let rawValue: Int

        /// The differences that these bits say.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Upper and lower case, as Unicode has them for no particular language: `STRASSE` is the same as `Straße`.
        public static let `case` = TextDifferences(rawValue: 1)

        /// Accents and other marks on letters: `Zoe` is the same as `Zoë`. A letter of its own, as `ø` is, stays one.
        public static let accents = TextDifferences(rawValue: 2)
    }

    /// A type of JSON values.
    public enum ValueType: String, Sendable, CaseIterable {
        /// JSON's null.
        case null
        /// `true` or `false`.
        case boolean
        /// A number, whether it is an integer or not.
        case number
        /// A text.
        case string
        /// A list.
        case list
        /// An object; a blob too.
        case object
    }

    package indirect enum Node: Sendable {
        case all([Node])
        case any([Node])
        case not(Node)
        case comparison(PropertyPath, Comparison, JSONValue)
        case isOneOf(PropertyPath, [JSONValue])
        case hasPrefix(PropertyPath, String)
        case text(PropertyPath, TextPattern)
        case exists(PropertyPath)
        case isType(PropertyPath, ValueType)
        /// A list with an element that is like this. Paths begin at the element.
        case anyElement(PropertyPath, Node)
        /// A list of nothing but elements that are like this.
        case everyElement(PropertyPath, Node)
    }

    package enum Comparison: Sendable {
        case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
    }

    package let node: Node

    package init(_ node: Node) { self.node = node }

    /// Whether a document is like this.
    ///
    /// - Parameter id: the document's.
    package func matches(_ properties: JSONObject, id: String) -> Bool {
        node.matches(.document(properties, id: id))
    }
}

extension DocumentPredicate.Node {
    /// The conditions that must all hold.
    package var conjuncts: [Self] {
        if case .all(let nodes) = self { nodes } else { [self] }
    }

    /// Of which one must hold.
    package var disjuncts: [Self] {
        if case .any(let nodes) = self { nodes } else { [self] }
    }

    fileprivate func matches(_ root: PathRoot) -> Bool {
        switch self {
        case .all(let nodes): return nodes.allSatisfy { $0.matches(root) }
        case .any(let nodes): return nodes.contains { $0.matches(root) }
        case .not(let node): return !node.matches(root)
        case .exists(let path): return path.value(from: root) != nil
        case .isType(let path, let type): return path.value(from: root)?.type == type
        case .isOneOf(let path, let values):
            guard let value = path.value(from: root) else { return false }
            return values.contains { value.isSame(as: $0) }
        case .hasPrefix(let path, let prefix):
            guard case .string(let text)? = path.value(from: root) else { return false }
            return text.utf8.starts(with: prefix.utf8)
        case .text(let path, let pattern):
            guard case .string(let text)? = path.value(from: root) else { return false }
            return pattern.matches(text)
        case .anyElement(let path, let node):
            guard case .array(let elements)? = path.value(from: root) else { return false }
            return elements.contains { node.matches(.element($0)) }
        case .everyElement(let path, let node):
            guard case .array(let elements)? = path.value(from: root) else { return false }
            return elements.allSatisfy { node.matches(.element($0)) }
        case .comparison(let path, let comparison, let operand):
            guard let value = path.value(from: root) else { return false }
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
    /// Of which type it is.
    var type: DocumentPredicate.ValueType {
        switch self {
        case .null: .null
        case .bool: .boolean
        case .number: .number
        case .string: .string
        case .array: .list
        case .object, .blob: .object
        }
    }

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
