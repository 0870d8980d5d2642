package import CofferSealing

/// What a part of a predicate says of one property, as far as an index over it can tell.
package struct PropertyConstraint: Sendable {
    package let path: PropertyPath

    /// The place of the part in the predicate.
    package let conjunct: Int

    /// The keys of the values that it may have, sorted; none where ``bounds`` says it.
    package let keys: [[UInt8]]

    /// Whether it must be the one value of ``keys``.
    package let isEquality: Bool

    /// What its key is not below, and not above; nil where ``keys`` says it.
    package let bounds: (lower: [UInt8], upper: [UInt8])?
}

extension DocumentPredicate {
    /// What each part of the predicate that must hold says of a property, where an index could tell, and how many parts
    /// there are.
    ///
    /// - Throws: `invalidJSON` (400) for a value that JSON can't say.
    package func constraints() throws(CofferError) -> ([PropertyConstraint], conjunctCount: Int) {
        try node.checkValues()
        var constraints: [PropertyConstraint] = []
        for (place, node) in node.conjuncts.enumerated() {
            switch node {
            case .comparison(let path, .equal, let value):
                constraints.append(
                    PropertyConstraint(
                        path: path, conjunct: place, keys: [try CollationKey(value).bytes], isEquality: true,
                        bounds: nil))
            case .isOneOf(let path, let values):
                var keys: Set<[UInt8]> = []
                for value in values { keys.insert(try CollationKey(value).bytes) }
                constraints.append(
                    PropertyConstraint(
                        path: path, conjunct: place, keys: keys.sorted { $0.lexicographicallyPrecedes($1) },
                        isEquality: false, bounds: nil))
            case .hasPrefix(let path, let prefix):
                // Without what ends a string.
                let key = try CollationKey(.string(prefix)).bytes.dropLast()
                constraints.append(
                    PropertyConstraint(
                        path: path, conjunct: place, keys: [], isEquality: false,
                        bounds: (Array(key), key + [CollationKey.aboveAll])))
            case .comparison(let path, let comparison, let value):
                guard let bounds = try comparison.bounds(value) else { continue }
                constraints.append(
                    PropertyConstraint(path: path, conjunct: place, keys: [], isEquality: false, bounds: bounds))
            case .all, .any, .not, .exists: break
            }
        }
        return (constraints, node.conjuncts.count)
    }
}

extension DocumentPredicate.Comparison {
    /// The keys, of an index over one or more properties, whose first is in this relation to `value`: none is below the first
    /// bound, or above the second. Nil where they aren't one stretch.
    fileprivate func bounds(_ value: JSONValue) throws(CofferError) -> (lower: [UInt8], upper: [UInt8])? {
        let key = try CollationKey(value).bytes
        let (first, last) = value.tagsOfType
        switch self {
        case .equal, .notEqual: return nil
        case .less: return ([first], key)
        case .lessOrEqual: return ([first], key + [CollationKey.aboveAll])
        // No value's bytes begin with what comes right after a tag.
        case .greater: return (key + [CollationKey.aboveAll], [last + 1])
        case .greaterOrEqual: return (key, [last + 1])
        }
    }
}

extension DocumentPredicate.Node {
    fileprivate func checkValues() throws(CofferError) {
        switch self {
        case .all(let nodes), .any(let nodes): for node in nodes { try node.checkValues() }
        case .not(let node): try node.checkValues()
        case .comparison(_, _, let value): _ = try CollationKey(value)
        case .isOneOf(_, let values): for value in values { _ = try CollationKey(value) }
        case .hasPrefix, .exists: break
        }
    }
}

extension JSONValue {
    /// What the keys of values of this type begin with: the least and the greatest.
    fileprivate var tagsOfType: (UInt8, UInt8) {
        let (first, last): (CollationKey.Tag, CollationKey.Tag) =
            switch self {
            case .null: (.null, .null)
            case .bool: (.false, .true)
            case .number: (.number, .number)
            case .string: (.string, .string)
            case .array: (.array, .array)
            case .object, .blob: (.object, .object)
            }
        return (first.rawValue, last.rawValue)
    }
}
