public import CofferModel

// Operators are found in the module that a client imports, and not in those it passes on: so they stand here.

/// A property of documents, to be compared with a value: see ``DocumentPredicate``.
public struct Property: Sendable {
    /// Its path.
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

    /// The meaning of `nil` in a comparison with a property: no value.
    public struct Nothing: Sendable, ExpressibleByNilLiteral {
        /// No value.
        public init(nilLiteral: ()) {}
    }

    /// It is missing or `null`.
    public static func == (property: Property, nothing: Nothing) -> DocumentPredicate {
        property.isMissing || property.compare(.equal, JSONValue.null)
    }

    /// It is there, and not `null`.
    public static func != (property: Property, nothing: Nothing) -> DocumentPredicate {
        property.compare(.notEqual, JSONValue.null)
    }

    /// It is of the same type as both values, and neither below the first nor above the second.
    public func isBetween(_ low: some JSONConvertible, and high: some JSONConvertible) -> DocumentPredicate {
        self >= low && self <= high
    }

    /// It is one of these values.
    public func isOne(of values: [some JSONConvertible]) -> DocumentPredicate {
        DocumentPredicate(.isOneOf(path, values.map(\.jsonValue)))
    }

    /// It is there, `null` or not.
    public var exists: DocumentPredicate { DocumentPredicate(.exists(path)) }

    /// It is not there.
    public var isMissing: DocumentPredicate { !exists }

    /// It is of that type.
    public func `is`(_ type: DocumentPredicate.ValueType) -> DocumentPredicate {
        DocumentPredicate(.isType(path, type))
    }

    // MARK: Texts

    /// It is a string that begins with this: byte for byte, unless differences are ignored.
    public func hasPrefix(
        _ prefix: String, ignoring differences: DocumentPredicate.TextDifferences = []
    ) -> DocumentPredicate {
        DocumentPredicate(.hasPrefix(path, prefix, ignoring: differences))
    }

    /// It is a string that ends with this.
    public func hasSuffix(
        _ suffix: String, ignoring differences: DocumentPredicate.TextDifferences = []
    ) -> DocumentPredicate {
        DocumentPredicate(.hasSuffix(path, suffix, ignoring: differences))
    }

    /// It is a string in which this stands. Lists are asked by ``hasElement(_:)``.
    public func contains(
        _ text: String, ignoring differences: DocumentPredicate.TextDifferences = []
    ) -> DocumentPredicate {
        DocumentPredicate(.contains(path, text, ignoring: differences))
    }

    /// It is a string like the pattern, in which `%` stands for any text, `_` for one code point, and a backslash before what
    /// stands for itself.
    ///
    /// Takes time in proportion to the text, whatever the pattern. One with `_` and more than 1,000 code points is
    /// `invalidArgument` (400) when the query is planned.
    public func isLike(
        _ pattern: String, ignoring differences: DocumentPredicate.TextDifferences = []
    ) -> DocumentPredicate {
        DocumentPredicate(TextPattern.like(path, pattern, ignoring: differences))
    }

    // MARK: Lists

    /// It is a list that has this element.
    public func hasElement(_ value: some JSONConvertible) -> DocumentPredicate { anyElement { $0 == value } }

    /// It is a list with an element that is like this.
    ///
    /// ```swift
    /// Property("items").anyElement { $0["price"] > 100 && $0["sold"] == false }
    /// ```
    ///
    /// - Parameter condition: given the element as a property, says what must hold for it.
    public func anyElement(_ condition: (_ element: Property) -> DocumentPredicate) -> DocumentPredicate {
        DocumentPredicate(.anyElement(path, condition(Property(.itself)).node))
    }

    /// It is a list of nothing but elements that are like this; an empty one, too.
    ///
    /// - Parameter condition: as for ``anyElement(_:)``.
    public func everyElement(_ condition: (_ element: Property) -> DocumentPredicate) -> DocumentPredicate {
        DocumentPredicate(.everyElement(path, condition(Property(.itself)).node))
    }

    /// A property of this one's value.
    public subscript(path: PropertyPath) -> Property { Property(self.path.appending(path)) }

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
