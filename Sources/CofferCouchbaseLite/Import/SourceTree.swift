internal import CofferSealing

/// The links between a source's revisions: they tell which revisions are leaves, and which were left over.
struct SourceTree {
    private var parents: Set<Int64> = []
    /// Documents in which the source marks no revision as current. There, the revisions without a child are leaves.
    private var unledDocuments: Set<Int64> = []
    private(set) var revisionCount = 0
    /// The highest generation of a revision.
    private(set) var generation = 0

    /// Reads all links, and with them every revision's page once.
    init(_ database: SourceDatabase) throws(CofferError) {
        var replaced: [(sequence: Int64, document: Int64)] = []
        var parents: Set<Int64> = []
        var (count, generation) = (0, 0)
        try database.forEachLink { link in
            count += 1
            generation = max(generation, link.generation)
            // A revision that names itself as its parent has none.
            if let parent = link.parent, parent != link.sequence { parents.insert(parent) }
            if !link.isCurrent { replaced.append((link.sequence, link.document)) }
        }
        (self.parents, revisionCount, self.generation) = (parents, count, generation)
        var documents = Set(replaced.lazy.filter { !parents.contains($0.sequence) }.map(\.document))
        guard !documents.isEmpty else { return }
        try database.forEachLink { if $0.isCurrent { documents.remove($0.document) } }
        unledDocuments = documents
    }

    /// Whether the revision has no child.
    func isLeaf(_ sequence: Int64) -> Bool { !parents.contains(sequence) }

    /// Whether this is an old revision that has lost its children. As a leaf, it would make a conflict that never
    /// existed.
    func isLeftOver(_ revision: SourceRevision) -> Bool {
        !revision.isCurrent && isLeaf(revision.sequence) && !unledDocuments.contains(revision.document)
    }
}
