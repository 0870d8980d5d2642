internal import CofferSealing

/// What the links between a source's revisions say: which are leaves, and which are left over.
struct SourceTree {
    private var parents: Set<Int64> = []
    /// Documents in which no revision is said to be a leaf: those that nobody follows are, then.
    private var unledDocuments: Set<Int64> = []

    /// Reads all links.
    init(_ database: SourceDatabase) throws(CofferError) {
        var replaced: [(sequence: Int64, document: Int64)] = []
        var parents: Set<Int64> = []
        try database.forEachLink { sequence, document, parent, isCurrent in
            // A revision that follows itself follows nothing.
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

    /// Whether nothing follows the revision.
    func isLeaf(_ sequence: Int64) -> Bool { !parents.contains(sequence) }

    /// Whether the revision is an old one that lost what followed it: as a leaf it would be a conflict that never was.
    func isLeftOver(_ revision: SourceRevision) -> Bool {
        !revision.isCurrent && isLeaf(revision.sequence) && !unledDocuments.contains(revision.document)
    }
}
