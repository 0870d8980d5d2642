package import CofferModel
package import CofferSealing
internal import CofferSQLite
package import CofferVault

/// The database that rows are salvaged into, and beside its own tables those that hold, while it is being made, what the old
/// one said of rows that may be lost. Nothing is in memory, and nothing in other files.
package final class SalvageTables {
    /// What the new store has, and the connection.
    package let documents: Snapshot
    package let trees: TreeTables
    package let treeChanges: TreeChanges
    private let attachmentChanges: AttachmentChanges
    private let insertRevision, findRevision, findRevisionID, nextRevision, dropBody: Statement
    let findBodiless, findChild: Statement
    private let insertLater, findLater: Statement
    private let insertGroup, findGroup, findClaim: Statement
    private let insertEntry, noteDocument, insertLocalDocument, insertLocalID, insertExpiration, refuse: Statement
    private let insertContent, findContent, findAttachment, insertAttachment, proveAttachment: Statement

    /// `salvage_groups` says which document has a number. The origin of an expiration is 0 in its table and 1 in the index, and
    /// 2 more in an older version of a page. All of them are gone at the end.
    private static let creation: StaticString = """
        CREATE TABLE salvage_documents (
            id TEXT NOT NULL, number INTEGER NOT NULL, winner INTEGER NOT NULL, flags INTEGER NOT NULL,
            PRIMARY KEY (id, number)
        ) WITHOUT ROWID;
        CREATE INDEX salvage_numbers ON salvage_documents (number);
        CREATE TABLE salvage_later (
            sequence INTEGER PRIMARY KEY, document INTEGER NOT NULL, generation INTEGER NOT NULL, suffix NOT NULL
        );
        CREATE TABLE salvage_groups (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
        CREATE TABLE salvage_contents (
            digest PRIMARY KEY, number INTEGER NOT NULL, length INTEGER NOT NULL, sha256 BLOB, header BLOB
        ) WITHOUT ROWID;
        CREATE TABLE salvage_locals (id TEXT PRIMARY KEY) WITHOUT ROWID;
        CREATE TABLE salvage_expirations (
            id TEXT NOT NULL, time INTEGER NOT NULL, origin INTEGER NOT NULL, PRIMARY KEY (id, time, origin)
        ) WITHOUT ROWID;
        CREATE TABLE salvage_refused (sequence INTEGER PRIMARY KEY, id TEXT, detail TEXT NOT NULL);
        """

    private static let removal: StaticString = """
        DROP TABLE salvage_documents;
        DROP TABLE salvage_later;
        DROP TABLE salvage_groups;
        DROP TABLE salvage_contents;
        DROP TABLE salvage_locals;
        DROP TABLE salvage_expirations;
        DROP TABLE salvage_refused;
        """

    /// In an empty database, in the transaction under way.
    init(_ connection: consuming Connection) throws(CofferError) {
        trees = TreeTables(connection)
        treeChanges = TreeChanges(connection)
        attachmentChanges = AttachmentChanges(connection)
        try connection.execute(Self.creation)
        insertRevision = Statement(
            connection,
            """
            INSERT OR IGNORE INTO revisions (sequence, document, parent, flags, generation, suffix, digest, id, body)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """)
        findRevision = Statement(
            connection, "SELECT 1 FROM revisions WHERE sequence = ?1 AND generation = ?2 AND suffix = ?3 AND id = ?4")
        findRevisionID = Statement(
            connection, "SELECT document, generation, suffix FROM revisions WHERE sequence = ?1")
        nextRevision = Statement(
            connection,
            """
            SELECT sequence, document, parent, flags, generation, suffix, digest IS NOT NULL, id, body FROM revisions
            WHERE sequence > ?1 ORDER BY sequence LIMIT 1
            """)
        dropBody = Statement(connection, "UPDATE revisions SET body = NULL, digest = NULL WHERE sequence = ?1")
        insertLater = Statement(
            connection,
            "INSERT OR IGNORE INTO salvage_later (sequence, document, generation, suffix) VALUES (?1, ?2, ?3, ?4)")
        findLater = Statement(
            connection, "SELECT document, generation, suffix FROM salvage_later WHERE sequence = ?1")
        insertGroup = Statement(connection, "INSERT OR IGNORE INTO salvage_groups (number, id) VALUES (?1, ?2)")
        findGroup = Statement(connection, "SELECT id FROM salvage_groups WHERE number = ?1")
        insertEntry = Statement(
            connection, "INSERT INTO documents (id, number, winner, flags) VALUES (?1, ?2, ?3, ?4)")
        findClaim = Statement(
            connection,
            "SELECT max(number = ?1 AND id = ?2) FROM salvage_documents WHERE number = ?1 OR id = ?2")
        noteDocument = Statement(
            connection,
            "INSERT OR IGNORE INTO salvage_documents (id, number, winner, flags) VALUES (?1, ?2, ?3, ?4)")
        insertLocalDocument = Statement(
            connection,
            "INSERT OR IGNORE INTO local_documents (number, generation, digest, id, body) VALUES (?1, ?2, ?3, ?4, ?5)")
        insertLocalID = Statement(connection, "INSERT OR IGNORE INTO salvage_locals (id) VALUES (?1)")
        insertExpiration = Statement(
            connection, "INSERT OR IGNORE INTO salvage_expirations (id, time, origin) VALUES (?1, ?2, ?3)")
        refuse = Statement(
            connection, "INSERT OR IGNORE INTO salvage_refused (sequence, id, detail) VALUES (?1, ?2, ?3)")
        insertContent = Statement(
            connection,
            """
            INSERT OR IGNORE INTO salvage_contents (digest, number, length, sha256, header)
            VALUES (?1, ?2, ?3, ?4, ?5)
            """)
        findContent = Statement(
            connection, "SELECT number, length, sha256, header, digest FROM salvage_contents WHERE digest = ?1")
        findAttachment = Statement(connection, "SELECT number FROM attachments WHERE digest = ?1")
        insertAttachment = Statement(
            connection, "INSERT INTO attachments (digest, length, sha256, header) VALUES (?1, ?2, NULL, NULL)")
        proveAttachment = Statement(
            connection, "UPDATE attachments SET sha256 = ?2, header = ?3 WHERE number = ?1")
        findBodiless = Statement(
            connection,
            """
            SELECT sequence, document, generation FROM revisions WHERE body IS NULL AND sequence <= ?1
            ORDER BY sequence DESC LIMIT 1
            """)
        findChild = Statement(
            connection,
            """
            SELECT 1 FROM revisions INDEXED BY later_revisions
            WHERE document = ?1 AND document <> sequence AND generation = ?2 AND parent = ?3
            """)
        documents = Snapshot(connection)
    }

    var connection: Connection { _read { yield documents.connection } }

    /// Removes what was only there for the work.
    func removeNotes() throws(CofferError) { try connection.execute(Self.removal) }

    // MARK: What was found

    /// - Parameter isNewest: whether the row stands in the newest version of its page. Of older ones only what is not there
    ///   by now counts.
    package func add(_ found: FoundRevision, isNewest: Bool) throws(CofferError) {
        guard found.isIntact else {
            return try refuse(found.sequence, found.documentID, "its body is not what was written")
        }
        if try insert(found) || !isNewest { return }
        // A document's first revision has its number: of two in one place, one of which is that, the other is not what it says.
        if found.sequence == found.document.firstSequence, let other = try identity(of: found.sequence)?.document,
            other != found.document
        {
            try remove(found.sequence)
            try refuse(found.sequence, nil, "it is in the place of a document's first revision")
            _ = try insert(found)
            return
        }
        try findRevision.bind(1, found.sequence)
        try findRevision.bind(2, Int64(found.id.generation))
        try findRevision.bind(3, found.id.suffix)
        try findRevision.bind(4, found.documentID)
        guard try findRevision.first({ _ in true }) == nil else { return }
        try refuse(found.sequence, found.documentID, "another revision has its place")
    }

    /// Adds a revision's row unless there is one with its sequence, or with its id in this document.
    package func insert(_ revision: FoundRevision) throws(CofferError) -> Bool {
        try insertRevision.bindRevision(
            revision.id, revision.flags, sequence: revision.sequence, documentID: revision.documentID,
            number: revision.document, parent: revision.parent, body: revision.body)
        try insertRevision.run()
        return connection.changedRowCount == 1
    }

    private func bind(_ index: Int32, _ bytes: [UInt8]?, to statement: Statement) throws(CofferError) {
        if let bytes { try statement.bind(index, bytes) } else { try statement.bindNull(index) }
    }

    package func add(_ id: String, _ row: DocumentRow) throws(CofferError) {
        try noteDocument.bind(1, id)
        try noteDocument.bind(2, row.number)
        try noteDocument.bind(3, row.winner)
        try noteDocument.bind(4, row.flags.rawValue)
        try noteDocument.run()
    }

    package func addLater(_ sequence: SequenceNumber, ofDocument number: DocumentNumber, _ id: RevisionID)
        throws(CofferError)
    {
        try insertLater.bind(1, sequence)
        try insertLater.bind(2, number)
        try insertLater.bind(3, Int64(id.generation))
        try insertLater.bind(4, id.suffix)
        try insertLater.run()
    }

    package func add(_ row: AttachmentRow) throws(CofferError) {
        try insertContent.bind(1, row.key)
        try insertContent.bind(2, row.number)
        try insertContent.bind(3, Int64(row.byteCount))
        try bind(4, row.proof?.sha256, to: insertContent)
        try bind(5, row.proof?.header, to: insertContent)
        try insertContent.run()
    }

    package func add(_ document: FoundLocalDocument) throws(CofferError) {
        try insertLocalDocument.bind(1, document.number)
        try insertLocalDocument.bind(2, document.generation)
        try bind(3, try BodyDigest.of(document.body), to: insertLocalDocument)
        try insertLocalDocument.bind(4, document.id)
        try insertLocalDocument.bind(5, document.body)
        try insertLocalDocument.run()
    }

    package func addLocalID(_ id: String) throws(CofferError) {
        try insertLocalID.bind(1, id)
        try insertLocalID.run()
    }

    /// - Parameter isNewest: as of a revision.
    package func addExpiration(of id: String, _ time: Int64, isIndex: Bool, isNewest: Bool) throws(CofferError) {
        try insertExpiration.bind(1, id)
        try insertExpiration.bind(2, time)
        try insertExpiration.bind(3, (isIndex ? 1 : 0) + (isNewest ? 0 : 2))
        try insertExpiration.run()
    }

    /// Notes why a revision is not taken, the first time.
    package func refuse(_ sequence: SequenceNumber, _ documentID: String?, _ detail: String) throws(CofferError) {
        // Nobody saved that as a revision.
        guard Schema.counts.contains(sequence) else { return }
        try refuse.bind(1, sequence)
        if let documentID { try refuse.bind(2, documentID) } else { try refuse.bindNull(2) }
        try refuse.bind(3, detail)
        try refuse.run()
    }

    // MARK: Revisions

    /// The revision with the lowest sequence above this one. It is intact.
    package func revision(after sequence: SequenceNumber) throws(CofferError) -> FoundRevision? {
        try nextRevision.bind(1, sequence)
        return try nextRevision.first { (row) throws(CofferError) in
            let stored = try RevisionRow(row, subject: connection.subject)
            return FoundRevision(
                sequence: stored.sequence, document: stored.document, parent: stored.parent,
                flags: RevisionFlags(rawValue: row.integer(3)), id: stored.id, documentID: row.text(7),
                body: row.isNull(8) ? nil : row.bytes(8), hasDigest: row.integer(6) != 0)
        }
    }

    /// Which revision has this sequence: the one that was taken, or else the one that the index of the old database names.
    package func identity(of sequence: SequenceNumber) throws(CofferError) -> (
        document: DocumentNumber, id: RevisionID
    )? {
        for statement in [findRevisionID, findLater] {
            try statement.bind(1, sequence)
            let found = try statement.first { (row) throws(CofferError) in
                (
                    row.number(0) as DocumentNumber,
                    try row.revisionID(1, sequence: sequence, subject: connection.subject)
                )
            }
            if let found { return found }
        }
        return nil
    }

    package func dropBody(_ sequence: SequenceNumber) throws(CofferError) {
        try dropBody.bind(1, sequence)
        try dropBody.run()
    }

    package func remove(_ sequence: SequenceNumber) throws(CofferError) {
        try treeChanges.deleteRevision(sequence)
    }

    // MARK: Documents

    /// What the table of documents says of which number a document has.
    package enum Claim {
        case same, other
        /// Nothing, neither of the document nor of the number.
        case none
    }

    package func claim(_ number: DocumentNumber, _ id: String) throws(CofferError) -> Claim {
        try findClaim.bind(1, number)
        try findClaim.bind(2, id)
        return try findClaim.first { $0.isNull(0) ? .none : $0.integer(0) == 1 ? .same : .other } ?? .none
    }

    /// The id of the document with this number; nil if nobody has said.
    package func documentID(ofNumber number: DocumentNumber) throws(CofferError) -> String? {
        try findGroup.bind(1, number)
        return try findGroup.first { $0.text(0) }
    }

    /// - Returns: false when the document has another number.
    package func adopt(_ number: DocumentNumber, _ id: String) throws(CofferError) -> Bool {
        try insertGroup.bind(1, number)
        try insertGroup.bind(2, id)
        try insertGroup.run()
        return connection.changedRowCount == 1
    }

    /// Adds a row to `documents`.
    package func insertDocument(_ id: String, _ row: DocumentRow) throws(CofferError) {
        try insertEntry.bind(1, id)
        try insertEntry.bind(2, row.number)
        try insertEntry.bind(3, row.winner)
        try insertEntry.bind(4, row.flags.rawValue)
        try insertEntry.run()
    }

    // MARK: Contents

    /// Notes that a revision uses a content, which is not here yet.
    package func use(_ digest: String, byteCount: Int, by sequence: SequenceNumber) throws(CofferError) {
        try attachmentChanges.insertUse(
            of: try number(of: AttachmentKey(digest), byteCount: byteCount), by: sequence)
    }

    private func number(of key: AttachmentKey, byteCount: Int) throws(CofferError) -> ContentNumber {
        try findAttachment.bind(1, key)
        if let number: ContentNumber = try findAttachment.first({ $0.number(0) }) { return number }
        try insertAttachment.bind(1, key)
        try insertAttachment.bind(2, Int64(byteCount))
        try insertAttachment.run()
        return ContentNumber(connection.lastInsertedRowID)
    }

    /// Adds a row for a content that no revision names, and returns its number.
    package func add(_ content: ContentDigest) throws(CofferError) -> ContentNumber {
        try number(of: .sha1(content.sha1), byteCount: content.byteCount)
    }

    /// What the old database says of a content; nil if its row is lost.
    package func content(_ key: AttachmentKey) throws(CofferError) -> AttachmentRow? {
        try findContent.bind(1, key)
        return try findContent.first { AttachmentRow($0) }
    }

    /// Notes that a content is here.
    package func prove(_ number: ContentNumber, _ proof: AttachmentRow.Proof) throws(CofferError) {
        try proveAttachment.bind(1, number)
        try proveAttachment.bind(2, proof.sha256)
        try proveAttachment.bind(3, proof.header)
        try proveAttachment.run()
    }
}
