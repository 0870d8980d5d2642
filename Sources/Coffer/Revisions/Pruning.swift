internal import CofferModel
internal import CofferSealing
internal import CofferRecords

/// Old revisions are pruned as new ones are added: each that is as many generations before every leaf after it as the
/// tree's depth says. Their children keep the numbers of parents that are not there any more.
struct Pruning {
    /// How many revisions of one line are kept.
    let depth: Int

    init(in writer: borrowing Writer) throws(CofferError) {
        depth = try writer.state.revisionTreeDepth(in: writer.tables)
    }

    private init(to depth: Int) { self.depth = depth }

    // MARK: Lines

    /// Prunes what is too old in a document that is one line, whose leaf is of this generation.
    ///
    /// What a peer had last stays with all that came after it, beyond the depth: see ``PeerKnowledge``.
    func pruneLine(_ number: DocumentNumber, upTo generation: Int, in writer: borrowing Writer) throws(CofferError) {
        var last = generation - depth
        guard last >= 1 else { return }
        let peers = try writer.state.peers(in: writer.tables)
        if let known = try peers.generationToKeep(ofDocument: number, in: writer.tables) {
            last = min(last, max(known - 1, generation - PeerKnowledge.generationLimit))
        }
        guard last >= 1 else { return }
        for sequence in try writer.tables.trees.sequences(ofDocument: number, upToGeneration: last) {
            try writer.records.trees.deleteRevision(sequence)
        }
    }

    // MARK: Branches

    /// More leaves than that are not looked at to find out whether an ancestor is still needed by one of them.
    static let leafLimit = 64

    /// Prunes what is too old since a leaf of a branched document took the place of another.
    ///
    /// Only ancestors of both can be: everything else is as far from a leaf as it was. What has very many leaves near by may
    /// be kept longer than it has to, until the database is compacted: so this takes about the same time however many there
    /// are.
    func pruneBranch(
        _ number: DocumentNumber, of leaf: RevisionID, after replaced: RevisionReference, in writer: borrowing Writer
    ) throws(CofferError) {
        let newest = min(leaf.generation - depth, replaced.id.generation)
        let oldest = max(1, replaced.id.generation - depth + 1)
        guard newest >= oldest else { return }
        guard newest < replaced.id.generation else {
            // Too far back even to be linked to: nothing follows it any more, and it goes like a purged one.
            var tree = try DocumentTree(number).load(from: writer.tables)
            for revision in tree.purge([replaced.id]) + tree.prune(to: depth) {
                try writer.records.trees.deleteRevision(revision.sequence)
            }
            return
        }
        // Most often there is one generation to look at, and one revision in it. Read before any of it goes.
        var line = newest > oldest ? try line(from: replaced, number, downTo: oldest, in: writer.tables) : []
        for generation in stride(from: newest, through: oldest, by: -1) {
            let there = try writer.tables.trees.sequences(ofDocument: number, generation: generation, limit: 2)
            guard var candidate = there.first else { continue }
            if there.count > 1 {
                if line.isEmpty { line = try self.line(from: replaced, number, downTo: oldest, in: writer.tables) }
                let distance = replaced.id.generation - generation
                guard distance < line.count else { return }
                candidate = line[distance].sequence
            }
            try pruneUnneeded(candidate, number, in: writer)
        }
    }

    /// Prunes a revision, and ancestors of it that were kept longer than they had to be, unless it is needed.
    ///
    /// What stays without being needed must not lose its child: it would look like a leaf.
    private func pruneUnneeded(
        _ sequence: SequenceNumber, _ number: DocumentNumber, in writer: borrowing Writer
    ) throws(CofferError) {
        var unneeded: [SequenceNumber] = []
        var next = try writer.tables.trees.revision(sequence: sequence, inDocument: number)
        while let revision = next {
            let need = try need(
                for: revision.sequence, generation: revision.id.generation, number, in: writer.tables)
            if need == .unknown { return }
            if need == .needed { break }
            unneeded.append(revision.sequence)
            next = try writer.tables.trees.parent(of: revision)
        }
        for sequence in unneeded { try writer.records.trees.deleteRevision(sequence) }
    }

    private func line(
        from revision: RevisionReference, _ number: DocumentNumber, downTo generation: Int,
        in tables: borrowing Snapshot
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
        for sequence: SequenceNumber, generation: Int, _ number: DocumentNumber, in tables: borrowing Snapshot
    ) throws(CofferError) -> Need {
        let leaves = try tables.trees.leaves(
            ofDocument: number, generations: generation..<(generation + depth), limit: Self.leafLimit + 1)
        for leaf in leaves.prefix(Self.leafLimit) {
            if leaf == sequence { return .needed }
            guard let id = try tables.trees.revision(sequence: leaf, inDocument: number)?.id else { continue }
            let leafReference = RevisionReference(sequence: leaf, id: id)
            let line = try line(from: leafReference, number, downTo: generation, in: tables)
            if line.last?.sequence == sequence { return .needed }
        }
        return leaves.count > Self.leafLimit ? .unknown : .unneeded
    }

    // MARK: Whole trees

    /// Prunes what is too old in a document, whatever its tree.
    ///
    /// Takes time in proportion to its revisions.
    func pruneTree(_ number: DocumentNumber, in writer: borrowing Writer) throws(CofferError) {
        var tree = try DocumentTree(number).load(from: writer.tables)
        for revision in tree.prune(to: depth) { try writer.records.trees.deleteRevision(revision.sequence) }
    }

    /// Makes this the depth, and prunes what is too old then in all documents.
    static func setDepth(_ depth: Int, in writer: borrowing Writer) throws(CofferError) {
        try writer.change { () throws(CofferError) in
            // One that can't be is mended so.
            let before = (try? writer.state.revisionTreeDepth(in: writer.tables)) ?? .max
            try writer.records.trees.note(depth: depth)
            writer.state.noteRevisionTreeDepth(depth)
            guard depth < before else { return }
            let pruning = Pruning(to: depth)
            for (number, generation) in try writer.tables.latestGenerations() where generation > depth {
                try pruning.pruneLine(number, upTo: generation, in: writer)
            }
            for number in try writer.tables.branchedDocuments() { try pruning.pruneTree(number, in: writer) }
        }
    }
}
