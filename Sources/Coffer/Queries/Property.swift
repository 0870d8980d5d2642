public import CofferModel

// Operators are found in the module that a client imports, and not in those it passes on: so they stand here.

/// A property of documents, to be compared with a value: see ``DocumentPredicate``.
public struct Property: Sendable {
    /// Where it stands.
    public let path: PropertyPath

    /// The property that a path such as `address.city` says: see ``PropertyPath``.
    public init(_ path: PropertyPath) { self.path = path }

    /// It is that value.
    public static func == (property: Property, value: some JSONConvertible) -> DocumentPredicate {
        property.compare(.equal, value)
    }

    /// It is there, and another value.
    public static func != (property: Property, value: some JSONConvertible) -> DocumentPredicate {
        property.compare(.notEqual, value)
    }

    /// It comes before that value, of the same type.
    public static func < (property: Property, value: some JSONConvertible) -> DocumentPredicate {
        property.compare(.less, value)
    }

    /// It comes before that value, of the same type, or is it.
    public static func <= (property: Property, value: some JSONConvertible) -> DocumentPredicate {
        property.compare(.lessOrEqual, value)
    }

    /// It comes after that value, of the same type.
    public static func > (property: Property, value: some JSONConvertible) -> DocumentPredicate {
        property.compare(.greater, value)
    }

    /// It comes after that value, of the same type, or is it.
    public static func >= (property: Property, value: some JSONConvertible) -> DocumentPredicate {
        property.compare(.greaterOrEqual, value)
    }

    /// It is one of these values.
    public func isOne(of values: [some JSONConvertible]) -> DocumentPredicate {
        DocumentPredicate(.isOneOf(path, values.map(\.jsonValue)))
    }

    /// It is a string that begins with this, byte for byte.
    public func hasPrefix(_ prefix: String) -> DocumentPredicate { DocumentPredicate(.hasPrefix(path, prefix)) }

    /// It is there, `null` or not.
    public var exists: DocumentPredicate { DocumentPredicate(.exists(path)) }

    private func compare(
        _ comparison: DocumentPredicate.Comparison, _ value: some JSONConvertible
    ) -> DocumentPredicate {
        DocumentPredicate(.comparison(path, comparison, value.jsonValue))
    }
}

extension DocumentPredicate {
    /// Both hold.
    public static func && (left: DocumentPredicate, right: DocumentPredicate) -> DocumentPredicate {
        DocumentPredicate(.all(left.node.conjuncts + right.node.conjuncts))
    }

    /// At least one of them holds.
    public static func || (left: DocumentPredicate, right: DocumentPredicate) -> DocumentPredicate {
        DocumentPredicate(.any(left.node.disjuncts + right.node.disjuncts))
    }

    /// It does not hold.
    public static prefix func ! (predicate: DocumentPredicate) -> DocumentPredicate {
        DocumentPredicate(.not(predicate.node))
    }
}
