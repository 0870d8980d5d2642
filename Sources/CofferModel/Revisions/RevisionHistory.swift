package import CofferSealing

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
