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

    /// What its key is not below, and not above; nil if ``keys`` says it.
    package let bounds: (lower: [UInt8], upper: [UInt8])?

    /// Whether the part says nothing else, so that it holds for whatever is so.
    package let isComplete: Bool

    fileprivate init(_ path: PropertyPath, _ conjunct: Int, key: [UInt8]) {
        self.init(path: path, conjunct: conjunct, keys: [key], isEquality: true, bounds: nil, isComplete: true)
    }

    fileprivate init(_ path: PropertyPath, _ conjunct: Int, keys: Set<[UInt8]>) {
        self.init(
            path: path, conjunct: conjunct, keys: keys.sorted { $0.lexicographicallyPrecedes($1) }, isEquality: false,
            bounds: nil, isComplete: true)
    }

    fileprivate init(
        _ path: PropertyPath, _ conjunct: Int, within bounds: (lower: [UInt8], upper: [UInt8]), isComplete: Bool = true
    ) {
        self.init(
            path: path, conjunct: conjunct, keys: [], isEquality: false, bounds: bounds, isComplete: isComplete)
    }

    private init(
        path: PropertyPath, conjunct: Int, keys: [[UInt8]], isEquality: Bool,
        bounds: (lower: [UInt8], upper: [UInt8])?, isComplete: Bool
    ) {
        self.path = path
        self.conjunct = conjunct
        self.keys = keys
        self.isEquality = isEquality
        self.bounds = bounds
        self.isComplete = isComplete
    }

    /// What it says of the elements of a list.
    fileprivate func ofElements(_ list: PropertyPath, isComplete: Bool) -> PropertyConstraint {
        PropertyConstraint(
            path: list.ofEachElement(path), conjunct: conjunct, keys: keys, isEquality: isEquality, bounds: bounds,
            isComplete: isComplete && self.isComplete)
    }

    /// What both say of one property; nil if that isn't one stretch of keys.
    fileprivate func and(_ other: PropertyConstraint) -> PropertyConstraint? {
        guard path == other.path, !path.isOverElements, let bounds, let others = other.bounds else { return nil }
        return PropertyConstraint(
            path, conjunct,
            within: (
                bounds.lower.lexicographicallyPrecedes(others.lower) ? others.lower : bounds.lower,
                bounds.upper.lexicographicallyPrecedes(others.upper) ? bounds.upper : others.upper
            ), isComplete: isComplete && other.isComplete)
    }
}

extension DocumentPredicate {
    /// What each part of the predicate that must hold says of a property, where an index could tell, and how many parts
    /// there are.
    ///
    /// - Throws: `invalidJSON` (400) for a value that JSON can't say, `invalidArgument` (400) for a pattern that is too long.
    package func constraints() throws(CofferError) -> ([PropertyConstraint], conjunctCount: Int) {
        try node.checkValues()
        var constraints: [PropertyConstraint] = []
        for (place, node) in node.conjuncts.enumerated() { constraints += try node.constraints(conjunct: place) }
        return (constraints, node.conjuncts.count)
    }
}

extension DocumentPredicate.Node {
    /// What the node says of properties, where an index could tell: of each at most once.
    fileprivate func constraints(conjunct: Int) throws(CofferError) -> [PropertyConstraint] {
        // Nothing is there in any document, whatever an index of that path has.
        if path?.isOverElements == true { return [] }
        switch self {
        case .comparison(let path, .equal, let value):
            return [PropertyConstraint(path, conjunct, key: try CollationKey(value).bytes)]
        case .not(.exists(let path)):
            return [PropertyConstraint(path, conjunct, key: [CollationKey.Tag.absent.rawValue])]
        case .exists(let path):
            let bounds = ([CollationKey.Tag.null.rawValue], [CollationKey.aboveAll])
            return [PropertyConstraint(path, conjunct, within: bounds)]
        case .isType(let path, let type):
            let (first, last) = type.tags
            return [PropertyConstraint(path, conjunct, within: ([first], [last + 1]))]
        case .isOneOf(let path, let values):
            var keys: Set<[UInt8]> = []
            for value in values { keys.insert(try CollationKey(value).bytes) }
            return [PropertyConstraint(path, conjunct, keys: keys)]
        case .hasPrefix(let path, let prefix):
            return [PropertyConstraint(path, conjunct, within: try Self.bounds(ofPrefix: prefix))]
        case .text(let path, let pattern):
            guard let prefix = pattern.literalPrefix else { return [] }
            let bounds = try Self.bounds(ofPrefix: prefix)
            return [PropertyConstraint(path, conjunct, within: bounds, isComplete: false)]
        case .comparison(let path, let comparison, let value):
            guard let bounds = try comparison.bounds(value) else { return [] }
            return [PropertyConstraint(path, conjunct, within: bounds)]
        case .any(let nodes): return try Self.alternatives(nodes, conjunct: conjunct)
        case .anyElement(let path, let node): return try node.constraintsOfElements(of: path, conjunct: conjunct)
        case .all, .not, .everyElement: return []
        }
    }

    /// The path of what the node speaks of; nil if that is for its parts to say.
    private var path: PropertyPath? {
        switch self {
        case .comparison(let path, _, _), .isOneOf(let path, _), .hasPrefix(let path, _), .text(let path, _),
            .exists(let path), .isType(let path, _), .anyElement(let path, _), .everyElement(let path, _),
            .not(.exists(let path)):
            path
        case .all, .any, .not: nil
        }
    }

    /// Strings that begin with that, without what ends a string.
    private static func bounds(ofPrefix prefix: String) throws(CofferError) -> (lower: [UInt8], upper: [UInt8]) {
        let key = Array(try CollationKey(.string(prefix)).bytes.dropLast())
        return (key, key + [CollationKey.aboveAll])
    }

    /// Values of one property of which it must have one, if that is all that is said.
    private static func alternatives(
        _ nodes: [Self], conjunct: Int
    ) throws(CofferError) -> [PropertyConstraint] {
        var path: PropertyPath?
        var keys: Set<[UInt8]> = []
        for node in nodes {
            let found = try node.constraints(conjunct: conjunct)
            guard found.count == 1, let one = found.first, one.bounds == nil, one.isComplete,
                path == nil || path == one.path
            else { return [] }
            path = one.path
            keys.formUnion(one.keys)
        }
        return path.map { [PropertyConstraint($0, conjunct, keys: keys)] } ?? []
    }

    /// What is said of the elements of a list, of which one must be so.
    private func constraintsOfElements(
        of list: PropertyPath, conjunct: Int
    ) throws(CofferError) -> [PropertyConstraint] {
        var merged: [(constraint: PropertyConstraint, partCount: Int)] = []
        for part in conjuncts {
            for constraint in try part.constraints(conjunct: conjunct) {
                guard let place = merged.firstIndex(where: { $0.constraint.path == constraint.path }) else {
                    merged.append((constraint, 1))
                    continue
                }
                // All parts speak of one element, and so of one entry.
                guard let both = merged[place].constraint.and(constraint) else { continue }
                merged[place] = (both, merged[place].partCount + 1)
            }
        }
        let partCount = conjuncts.count
        return merged.map { $0.constraint.ofElements(list, isComplete: $0.partCount == partCount) }
    }
}

extension DocumentPredicate.Comparison {
    /// The keys, of an index over one or more properties, whose first is in this relation to `value`: none is below the first
    /// bound, or above the second. Nil where they aren't one stretch.
    fileprivate func bounds(_ value: JSONValue) throws(CofferError) -> (lower: [UInt8], upper: [UInt8])? {
        let key = try CollationKey(value).bytes
        let (first, last) = value.type.tags
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
        case .not(let node), .anyElement(_, let node), .everyElement(_, let node): try node.checkValues()
        case .comparison(_, _, let value): _ = try CollationKey(value)
        case .isOneOf(_, let values): for value in values { _ = try CollationKey(value) }
        case .text(_, let pattern):
            guard !pattern.isTooLong else {
                throw CofferError(
                    .invalidArgument,
                    "a pattern has at most \(TextPattern.lengthLimit) code points beside its wildcards")
            }
        case .hasPrefix, .exists, .isType: break
        }
    }
}

extension DocumentPredicate.ValueType {
    /// What the keys of values of this type begin with: the least and the greatest.
    fileprivate var tags: (UInt8, UInt8) {
        let (first, last): (CollationKey.Tag, CollationKey.Tag) =
            switch self {
            case .null: (.null, .null)
            case .boolean: (.false, .true)
            case .number: (.number, .number)
            case .string: (.string, .string)
            case .list: (.array, .array)
            case .object: (.object, .object)
            }
        return (first.rawValue, last.rawValue)
    }
}
