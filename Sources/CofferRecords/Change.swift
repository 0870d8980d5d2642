package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// The one connection that writes, and its statements: rows, and transactions that nest. It knows no rule of revisions.
///
/// Has one owner, and is lent by borrowing, as a ``Snapshot`` is.
package struct Change: ~Copyable {
    /// What it reads with, in the transaction under way; has the connection.
    package let snapshot: Snapshot

    private let beginning, committing, rollingBack: Statement
    private let saving, releasing, rollingBackToSave: Statement
    private let insertDocument, updateDocument, insertRevision, updateRevision: Statement

    package let attachments: AttachmentChanges
    package let trees: TreeChanges
    package let purging: PurgeChanges
    package let indexes: IndexChanges
    package let numbers: RowNumbers
    package let compaction: CompactionChanges

    /// As ``Snapshot`` has one.
    deinit {}

    package init(_ snapshot: consuming Snapshot) {
        beginning = Statement(snapshot.connection, "BEGIN IMMEDIATE")
        committing = Statement(snapshot.connection, "COMMIT")
        rollingBack = Statement(snapshot.connection, "ROLLBACK")
        // Savepoints of one name nest: RELEASE and ROLLBACK TO mean the innermost.
        saving = Statement(snapshot.connection, "SAVEPOINT nested")
        releasing = Statement(snapshot.connection, "RELEASE nested")
        rollingBackToSave = Statement(snapshot.connection, "ROLLBACK TO nested")
        insertDocument = Statement(
            snapshot.connection, "INSERT OR IGNORE INTO documents (id, number, winner, flags) VALUES (?1, ?2, ?3, ?4)")
        updateDocument = Statement(
            snapshot.connection, "UPDATE documents SET winner = ?2, flags = ?3 WHERE id = ?1")
        insertRevision = Statement(
            snapshot.connection,
            """
            INSERT INTO revisions (sequence, document, parent, flags, generation, suffix, digest, id, body)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """)
        updateRevision = Statement(
            snapshot.connection, "UPDATE revisions SET digest = ?2, body = ?3, flags = flags | ?4 WHERE sequence = ?1")
        attachments = AttachmentChanges(snapshot.connection)
        trees = TreeChanges(snapshot.connection)
        purging = PurgeChanges(snapshot.connection)
        indexes = IndexChanges(snapshot.connection)
        numbers = RowNumbers(snapshot.connection)
        compaction = CompactionChanges(snapshot.connection)
        self.snapshot = snapshot
    }

    /// What errors say that they happened to.
    package var subject: String { snapshot.subject }

    // MARK: Transactions

    /// Whether a transaction is under way. SQLite rolls one back on its own after some failures.
    package var isInTransaction: Bool { snapshot.connection.isInTransaction }

    /// Begins the outermost transaction, which no other connection may be in.
    package func begin() throws(CofferError) { try beginning.run() }

    /// Commits the outermost transaction, after a last look at whether any page that was read failed its check.
    package func commit() throws(CofferError) {
        try snapshot.confirmReads()
        try committing.run()
    }

    package func rollBack() throws(CofferError) { try rollingBack.run() }

    /// Begins a transaction inside of the one under way.
    package func beginNested() throws(CofferError) { try saving.run() }

    package func commitNested() throws(CofferError) { try releasing.run() }

    package func rollBackNested() throws(CofferError) {
        try rollingBackToSave.run()
        try releasing.run()
    }

    /// Whether each commit is on the disk when it returns, or only what a checkpoint has copied.
    package func synchronizeCommits(_ everyOne: Bool) throws(CofferError) {
        if everyOne {
            try snapshot.connection.execute("PRAGMA synchronous = FULL")
        } else {
            try snapshot.connection.execute("PRAGMA synchronous = NORMAL")
        }
    }

    // MARK: The log

    /// Frames in the write-ahead log after the last commit, 0 if there was none since it was emptied.
    package var logFrameCount: Int { snapshot.connection.logFrameCount }

    /// Copies the log into the database file, as far as no reader needs it, and empties it.
    ///
    /// - Parameters:
    ///   - patience: how long it waits for those who read from the log.
    ///   - keepingLength: whether the log's file may stay as long as it is, up to 32 MiB.
    /// - Returns: whether the log is empty now.
    package func checkpoint(patience: Duration, keepingLength: Bool) throws(CofferError) -> Bool {
        try snapshot.connection.checkpoint(patience: patience, keepingLength: keepingLength)
    }

    /// Gives the file system back up to 2 MiB of free pages.
    package func giveBackPages() throws(CofferError) {
        try snapshot.connection.execute("PRAGMA incremental_vacuum(512)")
    }

    // MARK: Rows

    /// Adds a document's row, unless there is a document with this id, deleted or not.
    ///
    /// - Returns: whether it was added.
    package func insert(_ row: DocumentRow, of document: DocumentID) throws(CofferError) -> Bool {
        try insertDocument.bind(1, document.text)
        try insertDocument.bind(2, row.number)
        try insertDocument.bind(3, row.winner)
        try insertDocument.bind(4, row.flags.rawValue)
        try insertDocument.run()
        return snapshot.connection.changedRowCount == 1
    }

    /// Makes a document's row say this.
    package func update(_ row: DocumentRow, of document: DocumentID) throws(CofferError) {
        try updateDocument.bind(1, document.text)
        try updateDocument.bind(2, row.winner)
        try updateDocument.bind(3, row.flags.rawValue)
        try updateDocument.run()
    }

    /// Adds a revision's row.
    ///
    /// - Parameters:
    ///   - number: the document's.
    ///   - parent: the parent's sequence; nil at the root.
    ///   - body: nil for an ancestor of which only the id is known.
    package func insertRevision(
        _ id: RevisionID, _ flags: RevisionFlags, sequence: SequenceNumber, of document: DocumentID,
        number: DocumentNumber,
        parent: SequenceNumber?, body: [UInt8]?
    ) throws(CofferError) {
        try insertRevision.bindRevision(
            id, flags, sequence: sequence, documentID: document.text, number: number, parent: parent, body: body)
        try insertRevision.run()
    }

    /// Gives a revision another body, and more flags.
    package func update(
        _ sequence: SequenceNumber, body: [UInt8], adding flags: RevisionFlags
    ) throws(CofferError) {
        try updateRevision.bind(1, sequence)
        try updateRevision.bindBody(body, digest: 2, body: 3)
        try updateRevision.bind(4, flags.rawValue)
        try updateRevision.run()
    }
}

extension Statement {
    /// Binds a revision's row: sequence, document, parent, flags, generation, suffix, digest, id, body.
    func bindRevision(
        _ id: RevisionID, _ flags: RevisionFlags, sequence: SequenceNumber, documentID: String, number: DocumentNumber,
        parent: SequenceNumber?, body: [UInt8]?
    ) throws(CofferError) {
        try bind(1, sequence)
        try bind(2, number)
        try bind(3, parent)
        try bind(4, flags.rawValue)
        try bind(5, Int64(id.generation))
        try bind(6, id.suffix)
        if let body {
            try bindBody(body, digest: 7, body: 9)
        } else {
            try bindNull(7)
            try bindNull(9)
        }
        try bind(8, documentID)
    }

    /// Binds a body, and the start of its digest where its row may overflow.
    fileprivate func bindBody(_ bytes: [UInt8], digest: Int32, body: Int32) throws(CofferError) {
        if let check = try BodyDigest.of(bytes) { try bind(digest, check) } else { try bindNull(digest) }
        try bind(body, bytes)
    }
}
