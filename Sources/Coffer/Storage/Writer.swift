internal import CofferModel
internal import CofferSealing
internal import CofferSQLite
internal import CofferVault

/// The one connection that writes, and its statements.
///
/// Can't be copied: ``WriterOwner`` has it, and lends it to whoever holds its lock.
struct Writer: ~Copyable {
    /// What it reads with, in the transaction under way; has the connection.
    let tables: DocumentTables

    /// What it knows of the transaction under way, and of the database.
    let state: WriterState

    private let beginning, committing, rollingBack: Statement
    private let saving, releasing, rollingBackToSave: Statement
    private let insertDocument, updateDocument, insertRevision: Statement
    let insertAttachment, updateAttachment, insertUse: Statement
    let treeChanges: TreeChanges
    let purging: PurgeTables
    let indexing: IndexChanges
    let numbering: RowNumbers
    let compacting: CompactionChanges

    /// Where content files belong that it has rows for.
    let attachments: AttachmentStore

    /// The content files that the transaction under way will install.
    let installation: Installation

    init(_ tables: consuming DocumentTables, _ counts: WriterCounts, attachments: AttachmentStore) throws(CofferError) {
        state = try WriterState(counts)
        beginning = Statement(tables.connection, "BEGIN IMMEDIATE")
        committing = Statement(tables.connection, "COMMIT")
        rollingBack = Statement(tables.connection, "ROLLBACK")
        // Savepoints of one name nest: RELEASE and ROLLBACK TO mean the innermost.
        saving = Statement(tables.connection, "SAVEPOINT nested")
        releasing = Statement(tables.connection, "RELEASE nested")
        rollingBackToSave = Statement(tables.connection, "ROLLBACK TO nested")
        insertDocument = Statement(
            tables.connection, "INSERT OR IGNORE INTO documents (id, number, winner, flags) VALUES (?1, ?2, ?3, ?4)")
        updateDocument = Statement(
            tables.connection, "UPDATE documents SET winner = ?2, flags = ?3 WHERE id = ?1")
        insertRevision = Statement(
            tables.connection,
            """
            INSERT INTO revisions (sequence, document, parent, flags, generation, suffix, digest, id, body)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """)
        insertAttachment = Statement(
            tables.connection,
            "INSERT INTO attachments (digest, length, sha256, header, number) VALUES (?1, ?2, ?3, ?4, ?5)")
        updateAttachment = Statement(
            tables.connection, "UPDATE attachments SET length = ?2, sha256 = ?3, header = ?4 WHERE number = ?1")
        insertUse = Statement(
            tables.connection, "INSERT OR IGNORE INTO attachment_uses (revision, attachment) VALUES (?1, ?2)")
        treeChanges = TreeChanges(tables.connection)
        purging = PurgeTables(tables.connection)
        indexing = IndexChanges(tables.connection)
        numbering = RowNumbers(tables.connection)
        compacting = CompactionChanges(tables.connection)
        self.attachments = attachments
        installation = Installation(attachments)
        self.tables = tables
    }

    /// Its connection, to run what is rare.
    var connection: Connection { _read { yield tables.connection } }

    // MARK: Transactions

    func begin() throws(CofferError) {
        if state.depth == 0 {
            state.failure = nil
            try beginning.run()
        } else {
            try checkIntact()
            try saving.run()
        }
        state.installCounts.append(installation.files.count)
        state.undoingCounts.append(state.undoing.count)
        state.changes.begin(lastSequence: state.lastSequence)
        state.depth += 1
    }

    /// Ends the innermost transaction, which is rolled back when that fails. The outermost makes its changes durable.
    func commit() throws(CofferError) {
        precondition(state.depth > 0, "nothing to commit")
        do throws(CofferError) {
            try checkIntact()
            if state.depth == 1 {
                try noteReclaimable()
                try noteNumbers()
                try tables.confirmReads()
                try committing.run()
            } else {
                try releasing.run()
            }
        } catch {
            try? rollback()
            throw error
        }
        state.installCounts.removeLast()
        state.undoingCounts.removeLast()
        state.changes.commit()
        state.depth -= 1
        if state.depth == 0 { state.undoing = [] }
    }

    /// Undoes the innermost transaction.
    func rollback() throws(CofferError) {
        precondition(state.depth > 0, "nothing to roll back")
        state.depth -= 1
        installation.rollBack(to: state.installCounts.removeLast())
        state.changes.rollBack()
        let undone = state.undoing[state.undoingCounts.removeLast()...]
        state.undoing.removeLast(undone.count)
        for undo in undone.reversed() { undo() }
        // SQLite has rolled back everything by itself after some failures.
        guard connection.isInTransaction else { return }
        if state.depth == 0 { return try rollingBack.run() }
        do throws(CofferError) {
            try rollingBackToSave.run()
            try releasing.run()
        } catch {
            state.failure = (error, depth: 1)
            throw error
        }
        // What was half done is undone.
        if let failure = state.failure, failure.depth > state.depth { state.failure = nil }
    }

    /// Runs a part of the transaction under way, reads included.
    ///
    /// Some failures make SQLite roll back the whole transaction by itself: also those of reads, since making room for a
    /// page may mean writing another. Whatever ran after that would be a transaction of its own, so nothing does.
    func withinTransaction<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        try checkIntact()
        do throws(CofferError) {
            return try body()
        } catch {
            if !connection.isInTransaction { state.failure = (error, depth: 1) }
            throw error
        }
    }

    /// Whether a read or write of the file failed in the transaction, so that nobody knows what the disk holds.
    var hasFailedIO: Bool { state.failure?.error.code == .ioFailed }

    private func checkIntact() throws(CofferError) {
        if let failure = state.failure { throw failure.error }
        guard connection.isInTransaction else {
            let error = CofferError(.ioFailed, of: connection.subject, "SQLite rolled the transaction back")
            state.failure = (error, depth: 1)
            throw error
        }
    }

    /// Has `undo` run on this thread if the innermost transaction is rolled back, or one around it.
    func whenRolledBack(_ undo: @escaping () -> Void) {
        if state.depth > 0 { state.undoing.append(undo) }
    }

    /// Forgets all content files, once the outermost transaction has ended.
    func forgetFiles() { state.stagedFiles = [:] }

    /// Notes that the transaction may install this file. One that was staged before the key was changed is encrypted again.
    func stage(_ file: StagedAttachment) throws(CofferError) {
        state.stagedFiles[file.digest.sha1] = try file.moved(to: attachments)
    }

    /// The file of this SHA-1 that came last of those that the transaction may install.
    func stagedFile(_ sha1: [UInt8]) -> StagedAttachment? { state.stagedFiles[sha1] }

    /// The file that has the content of this SHA-1 until the transaction has ended.
    func readableFile(_ sha1: [UInt8]) -> StagedAttachment? { installation.file(of: sha1) ?? state.stagedFiles[sha1] }

    /// Forgets a file that the transaction doesn't install, since the content is there or another file has it.
    func forget(_ file: StagedAttachment) {
        let sha1 = file.digest.sha1
        state.stagedFiles[sha1] = installation.file(of: sha1)
    }

    /// Whether a content's file is there, and the one that its row means, as far as that shows without reading it.
    ///
    /// - Throws: `ioFailed` (500) when that can't be told: what is there must not be replaced then.
    func contentIsThere(_ content: ContentDigest, header: [UInt8]) throws(CofferError) -> Bool {
        do throws(CofferError) {
            _ = try attachments.open(content, header: header, subject: connection.subject)
            return true
        } catch  where error.code == .damaged {
            return false
        }
    }

    /// Runs `change`; should it fail, the innermost transaction around it can only be rolled back.
    func change<Value>(_ change: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        if let failure = state.failure { throw failure.error }
        try checkNotInFunction()
        do throws(CofferError) {
            return try change()
        } catch {
            state.failure = (error, depth: connection.isInTransaction ? state.depth : 1)
            throw error
        }
    }

    /// - Throws: `invalidArgument` (400) in a validation or a view's function, which can't write.
    func checkNotInFunction() throws(CofferError) {
        guard state.isInFunction else { return }
        throw CofferError(.invalidArgument, of: connection.subject, "validations and view functions can't write")
    }

    // MARK: Rows

    /// Adds a document's row, unless there is a document with this id, deleted or not.
    ///
    /// - Returns: whether it was added.
    func insert(_ row: DocumentRow, of document: DocumentID) throws(CofferError) -> Bool {
        try insertDocument.bind(1, document.text)
        try insertDocument.bind(2, row.number)
        try insertDocument.bind(3, row.winner)
        try insertDocument.bind(4, row.flags.rawValue)
        try insertDocument.run()
        return connection.changedRowCount == 1
    }

    /// Makes a document's row say this.
    func update(_ row: DocumentRow, of document: DocumentID) throws(CofferError) {
        try updateDocument.bind(1, document.text)
        try updateDocument.bind(2, row.winner)
        try updateDocument.bind(3, row.flags.rawValue)
        try updateDocument.run()
    }

    /// The sequence that the next revision gets.
    var nextSequence: Int64 { state.lastSequence + 1 }

    /// Adds a revision's row.
    ///
    /// - Parameter number: the document's; nil for its first revision.
    /// - Returns: the revision's sequence.
    func insert(
        _ revision: NewRevision, of document: DocumentID, number: Int64?, parent: Int64?
    ) throws(CofferError) -> Int64 {
        let sequence = nextSequence
        guard Schema.counts.contains(sequence) else {
            throw CofferError(.damaged, of: connection.subject, "all sequence numbers are used up")
        }
        try insertRevision.bind(1, sequence)
        try insertRevision.bind(2, number ?? sequence)
        try insertRevision.bind(3, parent)
        try insertRevision.bind(4, revision.flags.rawValue)
        try insertRevision.bind(5, Int64(revision.id.generation))
        try insertRevision.bind(6, revision.id.suffix)
        if let body = revision.content?.body.bytes {
            if let digest = try BodyDigest.of(body) {
                try insertRevision.bind(7, digest)
            } else {
                try insertRevision.bindNull(7)
            }
            try insertRevision.bind(9, body)
        } else {
            try insertRevision.bindNull(7)
            try insertRevision.bindNull(9)
        }
        try insertRevision.bind(8, document.text)
        try insertRevision.run()
        state.lastSequence = sequence
        return sequence
    }
}

/// What a writer knows of the transaction under way, and of the database.
///
/// A class, since the writer is lent to be read alone. It leads to no connection.
final class WriterState {
    /// How many transactions are nested, 0 outside of one.
    fileprivate(set) var depth = 0

    /// Why the transactions from `depth` inwards can only be rolled back.
    fileprivate var failure: (error: CofferError, depth: Int)?

    /// Frames in the log from which a checkpoint that readers kept from being complete is tried again.
    var nextCheckpoint = 0

    /// The highest sequence that is in use.
    fileprivate(set) var lastSequence: Int64

    /// The numbers of rows that it has given.
    var numbers = GivenNumbers()

    /// How many revisions of one line are kept, once it was asked for.
    var knownDepth: Int?

    /// What peers are known to have, once it was asked for.
    var knownPeers: PeerKnowledge?

    /// Content files that the transaction under way may install, by their SHA-1.
    fileprivate var stagedFiles: [[UInt8]: StagedAttachment] = [:]
    /// How many were to be installed as each nested transaction began.
    fileprivate var installCounts: [Int] = []

    /// What those who watch will be told of the transaction under way.
    var changes = PendingChanges()

    /// Whether a function of the app's is looking at what is about to be changed: nothing else is changed meanwhile.
    var isInFunction = false

    /// Whether the tables of indexes are known to be there, and not to be.
    var hasIndexTables: Bool?

    /// About how many bytes a compaction would give back, and what the database has noted of it.
    var reclaimableByteCount = 0
    var notedReclaimableByteCount = 0
    /// How many of these bytes there must be before a compaction is tried again.
    var nextCompactionByteCount = 0

    /// Whether the transaction under way, or one that it took back, has changed when documents expire.
    var hasChangedExpirations = false

    /// What takes back in memory what the transaction under way did there, and how much of it there was as each nested one
    /// began.
    fileprivate var undoing: [() -> Void] = []
    fileprivate var undoingCounts: [Int] = []

    /// Reused for each revision's id: setting a digest up costs more than a short message.
    var digest: StreamingDigest

    init(_ counts: WriterCounts) throws(CofferError) {
        digest = try StreamingDigest(.sha256)
        lastSequence = counts.lastSequence
        reclaimableByteCount = counts.reclaimableByteCount
        notedReclaimableByteCount = counts.notedReclaimableByteCount
        nextCompactionByteCount = counts.nextCompactionByteCount
    }

    /// What a writer that takes the place of this one begins with, between transactions.
    var counts: WriterCounts {
        WriterCounts(
            lastSequence: lastSequence, reclaimableByteCount: reclaimableByteCount,
            notedReclaimableByteCount: notedReclaimableByteCount, nextCompactionByteCount: nextCompactionByteCount)
    }
}

/// What a writer begins with: see ``WriterState``.
struct WriterCounts: Sendable {
    var lastSequence: Int64
    var reclaimableByteCount: Int
    var notedReclaimableByteCount: Int
    var nextCompactionByteCount = 0
}

/// A revision that is to get a row.
struct NewRevision {
    let id: RevisionID
    let isDeletion: Bool
    /// Nil for an ancestor of which only the id is known.
    let content: RevisionContent?
    /// Whether another database gave it its id.
    var isForeign = false

    fileprivate var flags: RevisionFlags {
        var flags: RevisionFlags = []
        if isDeletion { flags.insert(.isDeletion) }
        if content?.attachments.isEmpty == false { flags.insert(.hasAttachments) }
        if isForeign { flags.insert(.isForeign) }
        return flags
    }
}
