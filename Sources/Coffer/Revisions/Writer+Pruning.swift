internal import CofferModel
internal import CofferSealing
internal import CofferRecords

// Old revisions are forgotten as new ones are added: each that is as many generations before every leaf after it as the
// tree's depth says. Their children keep the numbers of parents that are not there any more.

extension Writer {
    /// How many revisions of one line are kept.
    func revisionTreeDepth() throws(CofferError) -> Int {
        if let depth = state.knownDepth { return depth }
        let depth = try tables.revisionTreeDepth()
        state.knownDepth = depth
        return depth
    }

    /// Prunes what is too old in a document that is one line, whose leaf is of this generation.
    ///
    /// What a peer had last stays with all that came after it, beyond the depth: see ``PeerKnowledge``.
    func pruneLine(_ number: DocumentNumber, upTo generation: Int) throws(CofferError) {
        var last = try generation - revisionTreeDepth()
        guard last >= 1 else { return }
        if let known = try generationOfPeers(number) {
            last = min(last, max(known - 1, generation - PeerKnowledge.generationLimit))
        }
        guard last >= 1 else { return }
        for sequence in try tables.trees.sequences(ofDocument: number, upToGeneration: last) {
            try records.trees.deleteRevision(sequence)
        }
    }

    /// More leaves than that are not looked at to find out whether an ancestor is still needed by one of them.
    static let leafLimit = 64

    /// Prunes what is too old since a leaf of a branched document took the place of another.
    ///
    /// Only ancestors of both can be: everything else is as far from a leaf as it was. What has very many leaves near by may
    /// be kept longer than it has to, until the database is compacted: so this takes about the same time however many there
    /// are.
    func pruneBranch(
        _ number: DocumentNumber, of leaf: RevisionID, after replaced: RevisionReference
    ) throws(CofferError) {
        let depth = try revisionTreeDepth()
        let newest = min(leaf.generation - depth, replaced.id.generation)
        let oldest = max(1, replaced.id.generation - depth + 1)
        guard newest >= oldest else { return }
        guard newest < replaced.id.generation else {
            // Too far back even to be linked to: nothing follows it any more, and it goes like a purged one.
            var tree = try tree(number)
            for revision in tree.purge([replaced.id]) + tree.prune(to: depth) {
                try records.trees.deleteRevision(revision.sequence)
            }
            return
        }
        // Most often there is one generation to look at, and one revision in it. Read before any of it goes.
        var line = newest > oldest ? try line(from: replaced, number, downTo: oldest) : []
        for generation in stride(from: newest, through: oldest, by: -1) {
            let there = try tables.trees.sequences(ofDocument: number, generation: generation, limit: 2)
            guard var candidate = there.first else { continue }
            if there.count > 1 {
                if line.isEmpty { line = try self.line(from: replaced, number, downTo: oldest) }
                let distance = replaced.id.generation - generation
                guard distance < line.count else { return }
                candidate = line[distance].sequence
            }
            try pruneUnneeded(candidate, number, depth: depth)
        }
    }

    /// Prunes a revision, and ancestors of it that were kept longer than they had to be, unless it is needed.
    ///
    /// What stays without being needed must not lose its child: it would look like a leaf.
    private func pruneUnneeded(_ sequence: SequenceNumber, _ number: DocumentNumber, depth: Int) throws(CofferError) {
        var unneeded: [SequenceNumber] = []
        var next = try tables.trees.revision(sequence: sequence, inDocument: number)
        while let revision = next {
            let need = try need(
                for: revision.sequence, generation: revision.id.generation, number, depth: depth)
            if need == .unknown { return }
            if need == .needed { break }
            unneeded.append(revision.sequence)
            next = try tables.trees.parent(of: revision)
        }
        for sequence in unneeded { try records.trees.deleteRevision(sequence) }
    }

    private func line(
        from revision: RevisionReference, _ number: DocumentNumber, downTo generation: Int
    ) throws(CofferError) -> [RevisionRow] {
        try tables.trees.history(
            from: revision.sequence, inDocument: number, limit: revision.id.generation - generation + 1)
    }

    private enum Need {
        case needed, unneeded
        /// There are too many leaves to look at.
        case unknown
    }

    /// Whether the revision is a leaf, or fewer than `depth` generations before one that comes after it.
    private func need(
        for sequence: SequenceNumber, generation: Int, _ number: DocumentNumber, depth: Int
    ) throws(CofferError) -> Need {
        let leaves = try tables.trees.leaves(
            ofDocument: number, generations: generation..<(generation + depth), limit: Self.leafLimit + 1)
        for leaf in leaves.prefix(Self.leafLimit) {
            if leaf == sequence { return .needed }
            guard let id = try tables.trees.revision(sequence: leaf, inDocument: number)?.id else { continue }
            let line = try line(from: RevisionReference(sequence: leaf, id: id), number, downTo: generation)
            if line.last?.sequence == sequence { return .needed }
        }
        return leaves.count > Self.leafLimit ? .unknown : .unneeded
    }

    /// Prunes what is too old in a document, whatever its tree.
    ///
    /// Takes time in proportion to its revisions.
    func pruneTree(_ number: DocumentNumber) throws(CofferError) {
        var tree = try tree(number)
        for revision in tree.prune(to: try revisionTreeDepth()) { try records.trees.deleteRevision(revision.sequence) }
    }

    /// A document's whole tree. The tags of its revisions are their sequences.
    func tree(_ number: DocumentNumber) throws(CofferError) -> RevisionTree {
        var tree = RevisionTree()
        var ids: [SequenceNumber: RevisionID] = [:]
        do throws(CofferError) {
            for revision in try tables.trees.revisions(ofDocument: number) {
                ids[revision.sequence] = revision.id
                try tree.add(
                    revision.id, parent: revision.parent.flatMap { ids[$0] }, isDeletion: revision.isDeletion,
                    tag: revision.sequence.rawValue)
            }
        } catch  where error.code == .invalidArgument {
            throw CofferError(
                .damaged, of: records.subject, "the revisions of document \(number) form no tree", cause: error)
        }
        return tree
    }

    // MARK: Depth

    /// Makes this the depth, and prunes what is too old then in all documents.
    func setRevisionTreeDepth(_ depth: Int) throws(CofferError) {
        try change { () throws(CofferError) in
            let known = state.knownDepth
            // One that can't be is mended so.
            let before = (try? revisionTreeDepth()) ?? .max
            try records.trees.note(depth: depth)
            state.knownDepth = depth
            whenRolledBack { [unowned state] in state.knownDepth = known }
            guard depth < before else { return }
            for (number, generation) in try tables.latestGenerations() where generation > depth {
                try pruneLine(number, upTo: generation)
            }
            try pruneBranchedDocuments()
        }
    }

    /// Prunes exactly what is too old in documents with more than one leaf.
    func pruneBranchedDocuments() throws(CofferError) {
        for number in try tables.branchedDocuments() { try pruneTree(number) }
    }
}

extension RevisionTree.Revision {
    /// The sequence that the tree's revision was read with.
    var sequence: SequenceNumber { SequenceNumber(tag) }
}
