internal import CofferSealing

/// The links between a source's revisions: they tell which revisions are leaves, and which were left over.
struct SourceTree {
    private var parents: Set<Int64> = []
    /// Documents in which the source marks no revision as current. There, the revisions without a child are leaves.
    private var unledDocuments: Set<Int64> = []

    /// Reads all links.
    init(_ database: SourceDatabase) throws(CofferError) {
        var replaced: [(sequence: Int64, document: Int64)] = []
        var parents: Set<Int64> = []
        try database.forEachLink { sequence, document, parent, isCurrent in
            // A revision that names itself as its parent has none.
            if let parent, parent != sequence { parents.insert(parent) }
            if !isCurrent { replaced.append((sequence, document)) }
        }
        self.parents = parents
        var documents = Set(replaced.lazy.filter { !parents.contains($0.sequence) }.map(\.document))
        guard !documents.isEmpty else { return }
        try database.forEachLink { _, document, _, isCurrent in
            if isCurrent { documents.remove(document) }
        }
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
