internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// How a query's documents are found.
struct PlannedQuery: Sendable {
    let plan: QueryPlan
    /// The entries to read of the index, in this direction; none where all documents are read.
    let ranges: [EntryRange]
    let isDescending: Bool
    /// Whether one document may have several of these entries.
    let repeatsDocuments: Bool
}

/// Finds the index that serves a query best.
struct QueryPlanner {
    private let query: DocumentQuery
    private let constraints: [PropertyConstraint]
    private let conjunctCount: Int

    /// - Throws: `invalidJSON` (400) for a value in the predicate that JSON can't say, `invalidArgument` (400) for a pattern that
    ///   is too long.
    init(_ query: DocumentQuery) throws(CofferError) {
        self.query = query
        (constraints, conjunctCount) = try query.predicate?.constraints() ?? ([], 0)
    }

    func plan(_ indexes: [PropertyIndex]) -> PlannedQuery {
        var best: (use: Use, score: Int)?
        for index in indexes {
            guard let use = use(of: index) else { continue }
            let score = 4 * use.equalCount + 2 * use.rangeCount + (use.isSorted ? 1 : 0)
            if score > best?.score ?? 0 { best = (use, score) }
        }
        guard let use = best?.use else {
            return PlannedQuery(
                plan: QueryPlan(
                    index: nil, narrowingCount: 0, checksDocuments: query.predicate != nil,
                    sortsInMemory: !query.order.isEmpty),
                ranges: [], isDescending: false, repeatsDocuments: false)
        }
        return PlannedQuery(
            plan: QueryPlan(
                index: use.index, narrowingCount: use.equalCount + use.rangeCount,
                checksDocuments: use.usedConjuncts.count < conjunctCount,
                sortsInMemory: !query.order.isEmpty && !use.isSorted),
            ranges: use.isDescending ? use.ranges.reversed() : use.ranges, isDescending: use.isDescending,
            repeatsDocuments: use.repeatsDocuments)
    }

    /// What an index could do for the query.
    private struct Use {
        var index: PropertyIndex
        var equalCount = 0
        var rangeCount = 0
        var isSorted = false
        var isDescending = false
        var repeatsDocuments = false
        var ranges: [EntryRange] = []
        /// The places of the predicate's parts that hold for all these entries.
        var usedConjuncts: Set<Int> = []
    }

    /// - Returns: nil for an index that neither narrows nor sorts, or doesn't have all documents that may be meant.
    private func use(of index: PropertyIndex) -> Use? {
        var use = Use(index: index)
        var prefix: [UInt8] = []
        var paths = index.paths[...]
        while let path = paths.first, let constraint = constraints.first(where: { $0.path == path && $0.isEquality }) {
            prefix += constraint.keys[0]
            if constraint.isComplete { use.usedConjuncts.insert(constraint.conjunct) }
            use.equalCount += 1
            paths.removeFirst()
        }
        use.ranges = [
            EntryRange(lower: EntryPosition(key: prefix), upper: EntryPosition(key: prefix + [CollationKey.aboveAll]))
        ]
        if let path = paths.first {
            let limits = constraints.filter { $0.path == path && !$0.isEquality }
            if let choice = limits.first(where: { $0.bounds == nil }) {
                use.ranges = choice.keys.map { key in
                    EntryRange(
                        lower: EntryPosition(key: prefix + key),
                        upper: EntryPosition(key: prefix + key + [CollationKey.aboveAll]))
                }
                if choice.isComplete { use.usedConjuncts.insert(choice.conjunct) }
                use.rangeCount = 1
            } else if !limits.isEmpty {
                // Two that speak of elements may speak of different ones.
                for limit in path.isOverElements ? limits.prefix(1) : limits[...] {
                    guard let bounds = limit.bounds else { continue }
                    use.ranges[0].lower = max(use.ranges[0].lower, EntryPosition(key: prefix + bounds.lower))
                    use.ranges[0].upper = min(use.ranges[0].upper, EntryPosition(key: prefix + bounds.upper))
                    if limit.isComplete { use.usedConjuncts.insert(limit.conjunct) }
                }
                use.rangeCount = 1
            }
        }
        // Documents without elements have no entry, and those with several have as many.
        if let place = paths.firstIndex(where: \.isOverElements) {
            guard place == paths.startIndex, use.rangeCount > 0 else { return nil }
            use.repeatsDocuments = true
            return use
        }
        // What is equal everywhere doesn't sort.
        let equal = index.paths.prefix(use.equalCount)
        let order = query.order.filter { !equal.contains($0.path) }
        if let isDescending = query.order.last?.isDescending {
            use.isDescending = isDescending
            use.isSorted =
                order.allSatisfy { $0.isDescending == isDescending } && order.count <= paths.count
                && zip(order, paths).allSatisfy { $0.path == $1 }
                // Among documents that are equal in all that was asked for, ids decide, and nothing else that is indexed.
                && order.count == paths.count
            if !use.isSorted { use.isDescending = false }
        }
        return use.equalCount + use.rangeCount > 0 || use.isSorted ? use : nil
    }
}

extension QueryPlan {
    /// How documents are found, without names and values of the app's.
    var logDetails: [String: String] {
        [
            "index": index == nil ? "none" : "used", "checksDocuments": checksDocuments ? "yes" : "no",
            "sortsInMemory": sortsInMemory ? "yes" : "no",
        ]
    }
}
