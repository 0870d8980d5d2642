internal import CofferRecords
public import CofferSealing

extension Database {
    // MARK: How far back histories go

    /// How many revisions of one line are kept: a document's current revision and the ones before it. Default: 20.
    ///
    /// Older ones are pruned automatically as revisions are added: their ids, and what compaction had left of them. In a
    /// document with branches a revision stays while it is near enough to the end of any branch. Kept with the database.
    ///
    /// - Throws: `damaged` (500), `closed` (500).
    public var maxRevTreeDepth: Int {
        get throws(CofferError) {
            try storage.read { (tables) throws(CofferError) in try tables.revisionTreeDepth() }
        }
    }

    /// Sets how many revisions of one line are kept, and prunes at once what is too old then.
    ///
    /// Two databases that exchange revisions find out by the histories whose revision follows whose. Where one has been
    /// changed so often since they last met that the histories have nothing in common any more, what was just a newer
    /// revision becomes a **conflict**. What a server had last, as far as replications of this database know, stays for up to
    /// 1,000 revisions with all that came since. A peer that pulls from a listener, and documents with branches, need a depth
    /// that is large enough. Lowering it takes time in proportion to the documents that were changed.
    ///
    /// - Parameter depth: from 1, with which only the ends of branches are kept.
    /// - Throws: `invalidArgument` (400) for less, `readOnly` (403), `closed` (500), `busy` (503).
    public func setMaxRevTreeDepth(_ depth: Int) throws(CofferError) {
        guard depth >= 1 else {
            throw CofferError(
                .invalidArgument, of: storage.subject, "the current revision is always kept, so the depth is at least 1"
            )
        }
        try storage.write { (writer) throws(CofferError) in try Pruning.setDepth(depth, in: writer) }
    }
}
