internal import CofferModel
internal import CofferSealing
internal import CofferRecords

/// Keeps of the revisions that were found those that are what they say, and makes the tables that follow from them.
struct RevisionCheck {
    let tables: SalvageTables
    let protection: PageSource.Protection
    let monitor: CopyMonitor

    func run() throws(CofferError) {
        // Parents come before their children.
        var last: SequenceNumber = 0
        while let revision = try tables.revision(after: last) {
            try monitor.checkCancelled()
            last = revision.sequence
            try check(revision)
        }
        try removeBodilessLeaves(upTo: last)
        try buildDocuments()
    }

    private func check(_ revision: FoundRevision) throws(CofferError) {
        if let objection = try objection(to: revision) {
            try tables.remove(revision.sequence)
            return try tables.refuse(revision.sequence, revision.documentID, objection)
        }
        guard let bytes = revision.body else { return }
        let body = try DocumentBody(json: bytes, valueLimit: JSONLimits.storedValueCount).body
        let parent = try parent(of: revision)
        let made = try RevisionID.make(
            parent: parent, isDeletion: revision.flags.contains(.isDeletion), body: body)
        let isProven = made == revision.id && (parent != nil || revision.parent == nil)
        let isOwn = !revision.flags.contains(.isForeign)
        if isOwn && !isProven && (parent != nil || revision.parent == nil) {
            try tables.remove(revision.sequence)
            return try tables.refuse(revision.sequence, revision.documentID, "its id doesn't match its content")
        }
        if protection == .unproven && !isProven && !revision.hasDigest {
            // It may be needed as an ancestor: the ids of those that follow vouch for its id.
            try tables.dropBody(revision.sequence)
            return try tables.refuse(
                revision.sequence, revision.documentID, "nothing proves its content, now that the salt is lost")
        }
        // A body that names contents in a way that Coffer doesn't is still what its id says.
        guard let content = try? RevisionBody(body, subject: revision.documentID) else { return }
        for reference in content.references {
            try tables.use(reference.digest, byteCount: reference.byteCount, by: revision.sequence)
        }
    }

    /// Why a revision can't be what it says it is.
    private func objection(to revision: FoundRevision) throws(CofferError) -> String? {
        if let id = try tables.documentID(ofNumber: revision.document) {
            guard id.utf8.elementsEqual(revision.documentID.utf8) else {
                return "its number belongs to another document"
            }
        } else {
            switch try tables.claim(revision.document, revision.documentID) {
            case .same: break
            case .other: return "the table of documents has another document with its number, or another number for it"
            case .none:
                if protection == .unproven {
                    return "nothing proves which document it belongs to, now that the salt is lost"
                }
            }
            guard try tables.adopt(revision.document, revision.documentID) else {
                return "another document has its id"
            }
        }
        if revision.sequence != revision.document.firstSequence,
            let first = try tables.identity(of: revision.document.firstSequence), first.document != revision.document
        {
            return "its document's number belongs to another revision"
        }
        if let sequence = try tables.trees.sequence(of: revision.id, inDocument: revision.document),
            sequence != revision.sequence
        {
            return "it exists twice"
        }
        guard let parent = revision.parent else {
            let isFirst = revision.id.generation == 1 || revision.flags.contains(.isForeign)
            return isFirst ? nil : "it has no parent"
        }
        if let found = try tables.identity(of: parent) {
            guard found.document == revision.document, found.id.generation == revision.id.generation - 1 else {
                return "its parent belongs to another document, or has the wrong generation"
            }
        }
        return nil
    }

    /// The id of the parent, if anything still says it.
    private func parent(of revision: FoundRevision) throws(CofferError) -> RevisionID? {
        guard let parent = revision.parent else { return nil }
        return try tables.identity(of: parent)?.id
    }

    // MARK: What follows

    /// Removes revisions without content that nothing follows any more: a leaf has content.
    private func removeBodilessLeaves(upTo last: SequenceNumber) throws(CofferError) {
        var next = last
        while true {
            try monitor.checkCancelled()
            guard let revision = try tables.bodilessRevision(upTo: next) else { return }
            if try !tables.isFollowed(revision) { try tables.remove(revision.sequence) }
            next = revision.sequence.advanced(by: -1)
        }
    }

    /// Fills `documents` and `leaves`.
    private func buildDocuments() throws(CofferError) {
        try tables.forEachDocument { (number, id) throws(CofferError) in
            try monitor.checkCancelled()
            let leaves = try leaves(ofDocument: number)
            guard let winner = leaves.first else { return }
            var flags: DocumentFlags = winner.rank.isDeletion ? .isDeleted : []
            if leaves.count > 1 {
                flags.insert(.isBranched)
                if !leaves[1].rank.isDeletion { flags.insert(.isInConflict) }
                for leaf in leaves { try tables.treeChanges.insert(leaf, ofDocument: number) }
            }
            try tables.insertDocument(id, DocumentRow(number: number, winner: winner.sequence, flags: flags))
        }
    }

    /// The leaves of a document, the winner first.
    private func leaves(ofDocument number: DocumentNumber) throws(CofferError) -> [StoredLeaf] {
        let revisions = try tables.trees.revisions(ofDocument: number).filter { $0.document == number }
        let parents = Set(revisions.compactMap(\.parent))
        return revisions.filter { !parents.contains($0.sequence) }
            .map { StoredLeaf(rank: LeafRank($0.id, isDeletion: $0.isDeletion), sequence: $0.sequence) }
            .sorted { $1.rank.bytes.lexicographicallyPrecedes($0.rank.bytes) }
    }
}
