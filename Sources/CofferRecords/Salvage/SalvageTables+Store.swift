internal import CofferModel
internal import CofferSQLite
package import CofferSealing
package import CofferVault

// What a salvage reads back from the new store as it is being made, and what it writes at the end.

extension SalvageTables {
    /// In the empty file that the new store has, in one transaction that ``finish()`` commits.
    package convenience init(in file: DatabaseFile, _ manifest: Manifest) throws(CofferError) {
        try file.begin()
        let connection = try file.connect(.create, cacheByteCount: 16 << 20)
        try Schema.build(in: connection, manifest)
        try connection.execute("PRAGMA journal_mode = OFF; BEGIN")
        try self.init(connection)
    }

    /// Commits all, without what was only there for the work, and closes the file complete, with nothing beside it.
    package func finish() throws(CofferError) {
        try removeNotes()
        try connection.execute("COMMIT; PRAGMA incremental_vacuum")
        try connection.switchToWriteAheadLog()
        try connection.close()
    }

    package func close() throws(CofferError) { try connection.close() }

    // MARK: Revisions

    /// A revision of which only the id is there.
    package struct BodilessRevision {
        package let sequence: SequenceNumber
        fileprivate let document: DocumentNumber
        fileprivate let generation: Int64
    }

    /// The last revision without a body, up to this sequence.
    package func bodilessRevision(upTo last: SequenceNumber) throws(CofferError) -> BodilessRevision? {
        try findBodiless.bind(1, last)
        return try findBodiless.first {
            BodilessRevision(sequence: $0.number(0), document: $0.number(1), generation: $0.integer(2))
        }
    }

    /// Whether a revision has it as its parent.
    package func isFollowed(_ revision: BodilessRevision) throws(CofferError) -> Bool {
        try findChild.bind(1, revision.document)
        try findChild.bind(2, revision.generation.addingSaturated(1))
        try findChild.bind(3, revision.sequence)
        return try findChild.first { _ in true } != nil
    }

    /// Hands out each document's number and id, in the order of the numbers.
    package func forEachDocument(
        _ body: (_ number: DocumentNumber, _ id: String) throws(CofferError) -> Void
    ) throws(CofferError) {
        let groups = Statement(connection, "SELECT number, id FROM salvage_groups ORDER BY number")
        defer { groups.finalize() }
        while try groups.step() { try body(groups.number(0), groups.text(1)) }
    }

    /// The highest sequence that the old database said of any revision.
    package func lastNotedSequence() throws(CofferError) -> SequenceNumber {
        let find = Statement(
            connection,
            """
            SELECT max(
                coalesce((SELECT max(sequence) FROM salvage_later), 0),
                coalesce((SELECT max(sequence) FROM salvage_refused), 0),
                coalesce((SELECT max(winner) FROM salvage_documents), 0))
            """)
        defer { find.finalize() }
        return try find.first { $0.number(0) } ?? 0
    }

    // MARK: Contents

    /// How many contents revisions name, and their lengths as these state them.
    package func contentSum() throws(CofferError) -> ContentSum {
        let sum = Statement(connection, "SELECT count(*), total(length) FROM attachments")
        defer { sum.finalize() }
        return try sum.first { ContentSum(count: Int($0.integer(0)), byteCount: Int($0.integer(1))) } ?? ContentSum()
    }

    /// Hands out each content that a revision names by its SHA-1.
    package func forEachUsedContent(
        _ body: (_ number: ContentNumber, _ byteCount: Int, _ sha1: [UInt8]) throws(CofferError) -> Void
    ) throws(CofferError) {
        let all = Statement(connection, "SELECT number, length, digest FROM attachments ORDER BY number")
        defer { all.finalize() }
        while try all.step() {
            guard all.isBlob(2) else { continue }
            try body(all.number(0), Int(all.integer(1)), all.bytes(2))
        }
    }

    /// The ids of the documents that have a content, sorted.
    package func documents(using attachment: ContentNumber) throws(CofferError) -> [String] {
        let owners = Statement(
            connection,
            """
            SELECT DISTINCT r.id FROM attachment_uses AS u JOIN revisions AS r ON r.sequence = u.revision
            WHERE u.attachment = ?1 ORDER BY r.id
            """)
        defer { owners.finalize() }
        try owners.bind(1, attachment)
        return try owners.all { $0.text(0) }
    }

    /// What the files of contents would be called that revisions name and that are not here.
    package func namesOfMissingContents(by naming: AttachmentNaming) throws(CofferError) -> Set<String> {
        let all = Statement(connection, "SELECT digest FROM attachments WHERE sha256 IS NULL")
        defer { all.finalize() }
        var names: Set<String> = []
        while try all.step() {
            if all.isBlob(0) { names.insert(try naming.name(of: all.bytes(0))) }
        }
        return names
    }

    // MARK: The rest

    /// Takes the times at which documents expire that are the documents' here.
    ///
    /// - Parameter areProven: whether a code vouches for each; otherwise the table and its index must say the same.
    /// - Returns: the ids of the documents whose times were not taken.
    package func takeExpirations(areProven: Bool) throws(CofferError) -> [String] {
        let insert = Statement(
            connection,
            """
            INSERT OR IGNORE INTO expirations (id, time)
            SELECT s.id, s.time FROM salvage_expirations AS s JOIN documents AS d ON d.id = s.id
            WHERE ?1 OR EXISTS (
                SELECT 1 FROM salvage_expirations AS t WHERE t.id = s.id AND t.time = s.time AND t.origin <> s.origin)
            ORDER BY s.origin
            """)
        let lost = Statement(
            connection,
            """
            SELECT DISTINCT s.id FROM salvage_expirations AS s JOIN documents AS d ON d.id = s.id
            WHERE NOT EXISTS (SELECT 1 FROM expirations AS e WHERE e.id = s.id)
            """)
        defer {
            insert.finalize()
            lost.finalize()
        }
        try insert.bind(1, areProven ? 1 : 0)
        try insert.run()
        return try lost.all { $0.text(0) }
    }

    package func insertLabel(_ label: String, of slot: KeySlot.ID) throws(CofferError) {
        try KeyLabels.insert(label, of: slot, in: connection)
    }

    /// Views and declared indexes, without entries, as after an opening that finds those damaged.
    package func insertIndexes(_ indexes: Set<FoundIndex>) throws(CofferError) {
        guard !indexes.isEmpty else { return }
        try connection.execute(IndexSchema.creation)
        let changes = IndexChanges(connection)
        var names: Set<[UInt8]> = []
        for index in indexes.sorted(by: { ($0.kind.rawValue, $0.name) < ($1.kind.rawValue, $1.name) })
        where names.insert([UInt8(index.kind.rawValue)] + Array(index.name.utf8)).inserted {
            try changes.insert(index.kind, index.name, definition: index.definition)
        }
    }

    /// Sees that no revision gets a number up to this one.
    package func keep(_ lastSequence: SequenceNumber) throws(CofferError) {
        try PurgeChanges(connection).keep(lastSequence)
    }

    /// What is in the new store.
    package struct Counts {
        package let revisions: Int
        package let localDocuments: Int
        package let contents: ContentSum
    }

    package func counts() throws(CofferError) -> Counts {
        let count = Statement(
            connection,
            """
            SELECT (SELECT count(*) FROM revisions), (SELECT count(*) FROM local_documents),
                (SELECT count(*) FROM attachments WHERE sha256 IS NOT NULL),
                (SELECT sum(length) FROM attachments WHERE sha256 IS NOT NULL)
            """)
        defer { count.finalize() }
        let found = try count.first { row in
            Counts(
                revisions: Int(row.integer(0)), localDocuments: Int(row.integer(1)),
                contents: ContentSum(count: Int(row.integer(2)), byteCount: Int(row.integer(3))))
        }
        guard let found else { preconditionFailure("a selection of counts has a row") }
        return found
    }
}
