package import CofferSealing

/// The revisions of one document that a database knows, and which follows which.
///
/// More than one may have no parent: where ancestors were pruned, or where two databases created the document independently.
/// Revisions are known by their ids; `tag` is whatever the caller finds them by.
package struct RevisionTree: Sendable {
    package struct Revision: Sendable, Equatable {
        package let id: RevisionID
        package let isDeletion: Bool
        package let tag: Int64
        /// The parent's id; nil if it is not known.
        package fileprivate(set) var parent: RevisionID?
        fileprivate var childCount = 0
    }

    private var revisions: [RevisionID: Revision] = [:]

    package init() {}

    // MARK: Building

    /// Adds a revision that has no children yet.
    ///
    /// - Parameter parent: its parent's id; nil, or one that isn't known, makes it a root.
    /// - Throws: `invalidArgument` (400) for one that is known already, and for a parent of another generation than the one
    ///   before.
    package mutating func add(
        _ id: RevisionID, parent: RevisionID?, isDeletion: Bool = false, tag: Int64 = 0
    ) throws(CofferError) {
        guard revisions[id] == nil else { throw CofferError(.invalidArgument, "revision \(id) comes twice") }
        var known = parent
        if let parent {
            guard parent.generation == id.generation - 1 else {
                throw CofferError(.invalidArgument, "revision \(id) does not follow \(parent)")
            }
            if revisions[parent] == nil { known = nil }
        }
        revisions[id] = Revision(id: id, isDeletion: isDeletion, tag: tag, parent: known)
        if let known { revisions[known]?.childCount += 1 }
    }

    /// What became of a revision from another database.
    package enum Insertion: Sendable, Equatable {
        /// It is there already; nothing was changed.
        case known
        /// It follows a leaf, or is the first of its document.
        case extended
        /// It follows a revision that others follow, or none that is known: there is a branch more.
        case branched
    }

    /// Adds a revision with its history: it joins the tree at its nearest ancestor that is known, and those in between are
    /// added without content. Then prunes what is more than `depth` revisions back from every leaf.
    package mutating func insert(
        _ history: RevisionHistory, isDeletion: Bool = false, tag: Int64 = 0, depth: Int = .max
    ) throws(CofferError) -> Insertion {
        let distance = history.distance { revisions[$0] != nil }
        if distance == 0 { return .known }
        let isBranch = !isEmpty && !(distance.map { isLeaf(history.ids[$0]) } ?? false)
        var parent = distance.map { history.ids[$0] }
        for id in history.ids.prefix(distance ?? history.ids.count).reversed() {
            try add(id, parent: parent, isDeletion: isDeletion && id == history.newest, tag: tag)
            parent = id
        }
        prune(to: depth)
        return isBranch ? .branched : .extended
    }

    // MARK: Reading

    package var count: Int { revisions.count }
    package var isEmpty: Bool { revisions.isEmpty }

    package subscript(id: RevisionID) -> Revision? { revisions[id] }

    /// Whether the revision is there and nothing follows it.
    package func isLeaf(_ id: RevisionID) -> Bool { revisions[id]?.childCount == 0 }

    /// The revisions that none follows, the winner first: live ones before deleted ones, then the highest generation, then
    /// the id that sorts last by its bytes.
    package var leaves: [Revision] {
        revisions.values.filter { $0.childCount == 0 }.sorted {
            RevisionID.isWinner(($0.id, $0.isDeletion), over: ($1.id, $1.isDeletion))
        }
    }

    /// The winning leaf.
    package var winner: Revision? {
        revisions.values.filter { $0.childCount == 0 }.max {
            RevisionID.isWinner(($1.id, $1.isDeletion), over: ($0.id, $0.isDeletion))
        }
    }

    /// The live leaves, the winner first: more than one is a conflict.
    package var conflicts: [Revision] { leaves.filter { !$0.isDeletion } }

    /// The revision and its ancestors as far as they are known, the newest first. Empty where it isn't known.
    package func history(of id: RevisionID) -> [Revision] {
        var history: [Revision] = []
        var next = revisions[id]
        while let revision = next {
            history.append(revision)
            next = revision.parent.flatMap { revisions[$0] }
        }
        return history
    }

    // MARK: Forgetting

    /// Forgets each revision that is `depth` or more generations before every leaf that comes after it.
    ///
    /// - Returns: those that were pruned.
    @discardableResult
    package mutating func prune(to depth: Int) -> [Revision] {
        precondition(depth > 0, "a leaf is always kept")
        // How many generations before it each revision keeps: the most that any leaf after it asks for.
        var reach: [RevisionID: Int] = [:]
        for leaf in leaves {
            var next: Revision? = leaf
            var remaining = depth
            while let revision = next, remaining > reach[revision.id] ?? 0 {
                reach[revision.id] = remaining
                remaining -= 1
                next = revision.parent.flatMap { revisions[$0] }
            }
        }
        return remove { reach[$0.id] == nil }
    }

    /// Removes leaves, and their ancestors that no other leaf has, as if they had never been there.
    ///
    /// - Parameter ids: which. Those that aren't leaves go only with all that come after them.
    /// - Returns: those that were removed.
    package mutating func purge(_ ids: some Sequence<RevisionID>) -> [Revision] {
        let given = Set(ids)
        var kept: Set<RevisionID> = []
        for leaf in leaves where !given.contains(leaf.id) {
            var next: Revision? = leaf
            while let revision = next, kept.insert(revision.id).inserted {
                next = revision.parent.flatMap { revisions[$0] }
            }
        }
        return remove { !kept.contains($0.id) }
    }

    private mutating func remove(where isRemoved: (Revision) -> Bool) -> [Revision] {
        let removed = revisions.values.filter(isRemoved)
        for revision in removed { revisions[revision.id] = nil }
        for revision in removed {
            if let parent = revision.parent { revisions[parent]?.childCount -= 1 }
        }
        guard !removed.isEmpty else { return [] }
        for (id, revision) in revisions {
            if let parent = revision.parent, revisions[parent] == nil { revisions[id]?.parent = nil }
        }
        return removed.sorted { $0.id > $1.id }
    }
}
