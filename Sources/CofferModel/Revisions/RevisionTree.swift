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

/// A revision's id and those of its ancestors, the newest first, as another database tells them: checked.
///
/// Generations go down by one from each id to the next, so that no id comes twice. The oldest need not be of generation 1:
/// databases prune old ancestors.
package struct RevisionHistory: Sendable, Equatable {
    /// The ids, the newest first. Never empty.
    package let ids: [RevisionID]

    /// More ids than that are refused. CouchDB keeps 1,000 by default.
    package static let limit = 100_000

    /// - Throws: `invalidArgument` (400) where there are no ids, too many, or where generations don't go down by one.
    package init(newestFirst ids: [RevisionID]) throws(CofferError) {
        guard !ids.isEmpty else { throw CofferError(.invalidArgument, "a history without revisions") }
        guard ids.count <= Self.limit else {
            throw CofferError(.invalidArgument, "a history of \(ids.count) revisions, more than \(Self.limit)")
        }
        for (child, parent) in zip(ids, ids.dropFirst()) where parent.generation != child.generation - 1 {
            throw CofferError(
                .invalidArgument,
                "a history in which generation \(parent.generation) comes before \(child.generation)")
        }
        self.ids = ids
    }

    /// The history of a revision of which no ancestor is known.
    package init(of revision: RevisionID) { ids = [revision] }

    /// The history that `_revisions` says, as CouchDB writes it: `{"start": 3, "ids": ["c…", "b…", "a…"]}`.
    ///
    /// - Throws: `invalidJSON` (400) for anything else, and for what is not a revision id.
    package init(json: JSONObject) throws(CofferError) {
        let start: Int? = json["start"]
        guard let start, let suffixes = json["ids"]?.arrayValue, suffixes.count <= Self.limit else {
            throw CofferError(.invalidJSON, "_revisions is not a history")
        }
        var ids: [RevisionID] = []
        ids.reserveCapacity(suffixes.count)
        for (distance, suffix) in suffixes.enumerated() {
            // One that would be of generation 0 or less is not an id.
            guard start >= 1, let text = suffix.stringValue, let id = RevisionID("\(start - distance)-\(text)") else {
                throw CofferError(.invalidJSON, "_revisions holds a value that is not a revision id")
            }
            ids.append(id)
        }
        guard !ids.isEmpty else { throw CofferError(.invalidJSON, "_revisions holds no revision") }
        self.ids = ids
    }

    /// The revision that this is the history of.
    package var newest: RevisionID { ids[0] }

    /// How many generations `newest` is after its nearest known ancestor; 0 when it is known itself, nil when no ancestor is.
    package func distance<Failure: Error>(
        toKnown isKnown: (RevisionID) throws(Failure) -> Bool
    ) throws(Failure) -> Int? {
        for (distance, id) in ids.enumerated() where try isKnown(id) { return distance }
        return nil
    }

    /// The ancestors to be added without content, the oldest first, where the nearest known one is at `distance`.
    ///
    /// - Parameter depth: how many revisions of one line are kept. Older ancestors aren't added: they would go at once.
    package func missingAncestors(toKnown distance: Int?, depth: Int) -> [RevisionID] {
        ids.prefix(min(distance ?? ids.count, depth)).dropFirst().reversed()
    }
}

/// Where a leaf stands among those of its document: bytes that sort as leaves win.
///
/// One byte, 1 for a live leaf and 0 for a deletion; the generation as 8 bytes, big-endian; the bytes after the hyphen of the
/// revision id. At most 207 bytes.
package struct LeafRank: Sendable, Hashable {
    package let bytes: [UInt8]

    package init(_ id: RevisionID, isDeletion: Bool) {
        var bytes = Self.prefix(isDeletion: isDeletion, generation: id.generation)
        switch id.suffix {
        case .digest(let digest): digest.appendHex(to: &bytes)
        case .text(let text): text.withBytes { bytes.append(copying: $0) }
        }
        self.bytes = bytes
    }

    /// The rank that these bytes are, or nil if they are not a rank.
    package init?(bytes: [UInt8]) {
        guard let leaf = Self.leaf(bytes), LeafRank(leaf.id, isDeletion: leaf.isDeletion).bytes == bytes else {
            return nil
        }
        self.bytes = bytes
    }

    /// What sorts before all leaves of that generation, and after those of the one before.
    package static func lowest(isDeletion: Bool, generation: Int) -> [UInt8] {
        prefix(isDeletion: isDeletion, generation: generation)
    }

    /// The leaf's revision id.
    package var id: RevisionID {
        guard let leaf = Self.leaf(bytes) else { preconditionFailure("an invalid rank") }
        return leaf.id
    }

    /// Whether the leaf is a deletion.
    package var isDeletion: Bool { bytes[0] == 0 }

    private static func prefix(isDeletion: Bool, generation: Int) -> [UInt8] {
        var bytes: [UInt8] = [isDeletion ? 0 : 1]
        bytes.reserveCapacity(48)
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: UInt64(generation) >> shift))
        }
        return bytes
    }

    private static func leaf(_ bytes: [UInt8]) -> (id: RevisionID, isDeletion: Bool)? {
        guard bytes.count > 9, bytes[0] <= 1, bytes[1] < 0x80 else { return nil }
        var generation: UInt64 = 0
        for byte in bytes[1..<9] { generation = generation << 8 | UInt64(byte) }
        guard let suffix = String(validating: bytes[9...], as: UTF8.self),
            let id = RevisionID("\(generation)-\(suffix)")
        else { return nil }
        return (id, bytes[0] == 0)
    }
}
