package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// A revision that is there: how it is found, and what it is called.
package struct RevisionReference: Sendable {
    package var sequence: SequenceNumber
    package var id: RevisionID

    package init(sequence: SequenceNumber, id: RevisionID) {
        self.sequence = sequence
        self.id = id
    }
}

/// A leaf of a document that has more than one.
package struct StoredLeaf: Sendable {
    package var rank: LeafRank
    package var sequence: SequenceNumber

    package init(rank: LeafRank, sequence: SequenceNumber) {
        self.rank = rank
        self.sequence = sequence
    }
}

/// The reading statements of one connection that go through a document's revisions, prepared once.
///
/// Each takes about the same time however many revisions the document has, but for those that return them.
package struct TreeTables: ~Copyable {
    private let subject: String
    private let find: Statement
    private let findBodiless: Statement
    private let list: Statement
    private let findLeaf: Statement
    private let listBestLeaves: Statement
    private let listLeaves: Statement
    private let listLeavesOfGenerations: Statement
    private let listOfGeneration: Statement
    private let listUpToGeneration: Statement
    private let findSent, findForeign: Statement

    init(_ connection: borrowing Connection) {
        subject = connection.subject
        // The first revision of a document is not in the index. Where that leads is read by its number, and compared: see
        // AttachmentTables.attachment.
        find = Statement(
            connection,
            """
            SELECT sequence, 1 FROM revisions WHERE sequence = ?1 AND generation = ?2 AND suffix = ?3
            UNION ALL
            SELECT i.sequence, r.document IS i.document AND r.generation IS i.generation AND r.suffix IS i.suffix
            FROM revisions AS i INDEXED BY later_revisions LEFT JOIN revisions AS r NOT INDEXED ON r.sequence = i.sequence
            WHERE i.document = ?1 AND i.document <> i.sequence AND i.generation = ?2 AND i.suffix = ?3
            """)
        findBodiless = Statement(
            connection,
            "SELECT sequence, document, parent, flags, generation, suffix FROM revisions WHERE sequence = ?1")
        list = Statement(
            connection,
            """
            SELECT sequence, document, parent, flags, generation, suffix, 1 FROM revisions WHERE sequence = ?1
            UNION ALL
            SELECT r.sequence, r.document, r.parent, r.flags, r.generation, r.suffix,
                r.document IS i.document AND r.generation IS i.generation AND r.suffix IS i.suffix
            FROM revisions AS i INDEXED BY later_revisions LEFT JOIN revisions AS r NOT INDEXED ON r.sequence = i.sequence
            WHERE i.document = ?1 AND i.document <> i.sequence
            """)
        findLeaf = Statement(connection, "SELECT sequence FROM leaves WHERE document = ?1 AND rank = ?2")
        listBestLeaves = Statement(
            connection, "SELECT rank, sequence FROM leaves WHERE document = ?1 ORDER BY rank DESC LIMIT 2")
        listLeaves = Statement(
            connection, "SELECT rank, sequence FROM leaves WHERE document = ?1 ORDER BY rank DESC")
        listLeavesOfGenerations = Statement(
            connection,
            """
            SELECT sequence, 1 FROM leaves WHERE document = ?1 AND rank >= ?2 AND rank < ?3
            UNION ALL
            SELECT sequence, 1 FROM leaves WHERE document = ?1 AND rank >= ?4 AND rank < ?5
            LIMIT ?6
            """)
        listOfGeneration = Statement(
            connection,
            """
            SELECT sequence, 1 FROM revisions WHERE sequence = ?1 AND generation = ?2
            UNION ALL
            SELECT i.sequence, r.document IS i.document AND r.generation IS i.generation
            FROM revisions AS i INDEXED BY later_revisions LEFT JOIN revisions AS r NOT INDEXED ON r.sequence = i.sequence
            WHERE i.document = ?1 AND i.document <> i.sequence AND i.generation = ?2
            LIMIT ?3
            """)
        listUpToGeneration = Statement(
            connection,
            """
            SELECT sequence, 1 FROM revisions WHERE sequence = ?1 AND generation <= ?2
            UNION ALL
            SELECT i.sequence, r.document IS i.document AND r.generation IS i.generation
            FROM revisions AS i INDEXED BY later_revisions LEFT JOIN revisions AS r NOT INDEXED ON r.sequence = i.sequence
            WHERE i.document = ?1 AND i.document <> i.sequence AND i.generation <= ?2
            """)
        findSent = Statement(
            connection,
            """
            SELECT generation, 1 FROM revisions WHERE sequence = ?1 AND sequence <= ?2
            UNION ALL
            SELECT i.generation, r.document IS i.document AND r.generation IS i.generation
            FROM revisions AS i INDEXED BY later_revisions LEFT JOIN revisions AS r NOT INDEXED ON r.sequence = i.sequence
            WHERE i.document = ?1 AND i.document <> i.sequence AND i.sequence <= ?2
            ORDER BY 1 DESC LIMIT 1
            """)
        findForeign = Statement(
            connection,
            """
            SELECT generation, 1 FROM revisions WHERE sequence = ?1 AND flags & ?2
            UNION ALL
            SELECT i.generation, r.document IS i.document AND r.generation IS i.generation
            FROM revisions AS i INDEXED BY later_revisions LEFT JOIN revisions AS r NOT INDEXED ON r.sequence = i.sequence
            WHERE i.document = ?1 AND i.document <> i.sequence AND (r.flags IS NULL OR r.flags & ?2)
            ORDER BY 1 DESC LIMIT 1
            """)
    }

    /// The sequence of the document's revision with this id, if there is one.
    package func sequence(of id: RevisionID, inDocument number: DocumentNumber) throws(CofferError) -> SequenceNumber? {
        try find.bind(1, number)
        try find.bind(2, Int64(id.generation))
        try find.bind(3, id.suffix)
        return try find.first { (row) throws(CofferError) in try sequence(row, matches: 1) }
    }

    /// The sequence in the first column, where the row that the index led to is the one that it means, as column `matches` says.
    private func sequence(_ row: Statement, matches: Int32) throws(CofferError) -> SequenceNumber {
        SequenceNumber(try matched(row, matches))
    }

    private func matched(_ row: Statement, _ matches: Int32) throws(CofferError) -> Int64 {
        guard row.integer(matches) != 0 else {
            throw CofferError(
                .damaged, of: subject, "the row of revision \(row.integer(0)) belongs to another revision")
        }
        return row.integer(0)
    }

    /// The document's revision without its body; nil if it was pruned.
    package func revision(sequence: SequenceNumber, inDocument number: DocumentNumber) throws(CofferError)
        -> RevisionRow?
    {
        try findBodiless.bind(1, sequence)
        let found = try findBodiless.first { (statement) throws(CofferError) in
            try RevisionRow(statement, subject: subject)
        }
        guard found.map({ $0.document == number }) ?? true else {
            throw CofferError(.damaged, of: subject, "revision \(sequence) belongs to another document")
        }
        return found
    }

    /// The revision and its ancestors without their bodies, the newest first, as far back as they are there.
    ///
    /// - Parameter limit: how many at most.
    package func history(
        from sequence: SequenceNumber, inDocument number: DocumentNumber, limit: Int = .max
    ) throws(CofferError) -> [RevisionRow] {
        var history: [RevisionRow] = []
        var next = limit > 0 ? try revision(sequence: sequence, inDocument: number) : nil
        while let revision = next {
            history.append(revision)
            next = history.count < limit ? try parent(of: revision) : nil
        }
        return history
    }

    /// The ids of the revision's ancestors, the newest first, as far back as they are there.
    package func appendAncestors(of revision: RevisionRow, to ids: inout [RevisionID]) throws(CofferError) {
        var next = try parent(of: revision)
        while let ancestor = next {
            ids.append(ancestor.id)
            next = try parent(of: ancestor)
        }
    }

    /// The revision that this one follows, without its body; nil if there isn't one, or it was pruned.
    package func parent(of child: RevisionRow) throws(CofferError) -> RevisionRow? {
        guard let sequence = child.parent, let parent = try revision(sequence: sequence, inDocument: child.document)
        else { return nil }
        // It was there before its children, and is of the generation before: else a line could go on for ever.
        guard parent.sequence < child.sequence, parent.id.generation == child.id.generation - 1 else {
            throw CofferError(
                .damaged, of: subject, "revision \(child.sequence) has an impossible parent")
        }
        return parent
    }

    /// All revisions of a document without their bodies, parents before their children.
    package func revisions(ofDocument number: DocumentNumber) throws(CofferError) -> [RevisionRow] {
        try list.bind(1, number)
        let all = try list.all { (row) throws(CofferError) in
            _ = try sequence(row, matches: 6)
            return try RevisionRow(row, subject: subject)
        }
        return all.sorted { $0.sequence < $1.sequence }
    }

    // MARK: Leaves of documents that have more than one

    /// Whether nothing follows the revision.
    package func isLeaf(_ revision: RevisionReference, ofDocument number: DocumentNumber) throws(CofferError) -> Bool {
        for isDeletion in [false, true] {
            try findLeaf.bind(1, number)
            try findLeaf.bind(2, LeafRank(revision.id, isDeletion: isDeletion).bytes)
            if try findLeaf.first({ $0.number(0) }) == revision.sequence { return true }
        }
        return false
    }

    /// All leaves, the winner first.
    package func leaves(ofDocument number: DocumentNumber) throws(CofferError) -> [StoredLeaf] {
        try leaves(listLeaves, number)
    }

    /// The two best leaves, the winner first.
    package func bestLeaves(ofDocument number: DocumentNumber) throws(CofferError) -> [StoredLeaf] {
        try leaves(listBestLeaves, number)
    }

    private func leaves(_ statement: Statement, _ number: DocumentNumber) throws(CofferError) -> [StoredLeaf] {
        try statement.bind(1, number)
        return try statement.all { (row) throws(CofferError) in
            guard let rank = LeafRank(bytes: row.bytes(0)) else {
                throw CofferError(.damaged, of: subject, "a leaf of document \(number) has no revision id")
            }
            return StoredLeaf(rank: rank, sequence: row.number(1))
        }
    }

    /// The sequences of up to `limit` leaves of these generations.
    package func leaves(
        ofDocument number: DocumentNumber, generations: Range<Int>, limit: Int
    ) throws(CofferError) -> [SequenceNumber] {
        let statement = listLeavesOfGenerations
        try statement.bind(1, number)
        try statement.bind(2, LeafRank.lowest(isDeletion: true, generation: generations.lowerBound))
        try statement.bind(3, LeafRank.lowest(isDeletion: true, generation: generations.upperBound))
        try statement.bind(4, LeafRank.lowest(isDeletion: false, generation: generations.lowerBound))
        try statement.bind(5, LeafRank.lowest(isDeletion: false, generation: generations.upperBound))
        try statement.bind(6, Int64(limit))
        return try sequences(statement)
    }

    // MARK: Revisions by generation

    /// The sequences of up to `limit` of the document's revisions of that generation.
    package func sequences(ofDocument number: DocumentNumber, generation: Int, limit: Int) throws(CofferError)
        -> [SequenceNumber]
    {
        try listOfGeneration.bind(1, number)
        try listOfGeneration.bind(2, Int64(generation))
        try listOfGeneration.bind(3, Int64(limit))
        return try sequences(listOfGeneration)
    }

    /// The sequences of the document's revisions of that generation and those before.
    package func sequences(ofDocument number: DocumentNumber, upToGeneration generation: Int) throws(CofferError)
        -> [SequenceNumber]
    {
        try listUpToGeneration.bind(1, number)
        try listUpToGeneration.bind(2, Int64(generation))
        return try sequences(listUpToGeneration)
    }

    /// The highest generation of the document's revisions whose sequence is no higher.
    package func generation(ofDocument number: DocumentNumber, upToSequence sequence: SequenceNumber)
        throws(CofferError) -> Int?
    {
        try generation(findSent, number, sequence.rawValue)
    }

    /// The highest generation of the document's revisions that came from a peer.
    package func foreignGeneration(ofDocument number: DocumentNumber) throws(CofferError) -> Int? {
        try generation(findForeign, number, RevisionFlags.isForeign.rawValue)
    }

    private func generation(
        _ statement: Statement, _ number: DocumentNumber, _ value: Int64
    ) throws(CofferError) -> Int? {
        try statement.bind(1, number)
        try statement.bind(2, value)
        return try statement.first { (row) throws(CofferError) in Int(try matched(row, 1)) }
    }

    private func sequences(_ statement: Statement) throws(CofferError) -> [SequenceNumber] {
        try statement.all { (row) throws(CofferError) in try sequence(row, matches: 1) }
    }
}
