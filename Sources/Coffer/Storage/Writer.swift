internal import CofferModel
internal import CofferSealing
internal import CofferSQLite
internal import CofferVault

/// The one connection that writes, and its statements. Belongs to whoever holds the writer's lock.
final class Writer {
    let connection: Connection
    let tables: DocumentTables

    private let beginning, committing, rollingBack: Statement
    private let saving, releasing, rollingBackToSave: Statement
    private let insertDocument, updateDocument, insertRevision: Statement
    let insertAttachment, updateAttachment, insertUse: Statement

    /// How many transactions are nested, 0 outside of one.
    private(set) var depth = 0

    /// Why the transactions from `depth` inwards can only be rolled back.
    private var failure: (error: CofferError, depth: Int)?

    /// Frames in the log from which a checkpoint that readers kept from being complete is tried again.
    var nextCheckpoint = 0

    private(set) var lastSequence: Int64

    /// Where content files belong that it has rows for.
    let attachments: AttachmentStore

    /// Content files that the transaction under way may install, by their SHA-1, and those that it will.
    private(set) var stagedFiles: [[UInt8]: StagedAttachment] = [:]
    private(set) var filesToInstall: [StagedAttachment] = []
    /// How many were to be installed as each nested transaction began.
    private var installCounts: [Int] = []

    /// What those who watch will be told of the transaction under way.
    var changes = PendingChanges()

    /// The statements of purges, which are rare.
    private(set) lazy var purging = PurgeTables(connection)

    /// Whether the transaction under way, or one that it took back, has changed when documents expire.
    var hasChangedExpirations = false

    /// What takes back in memory what the transaction under way did there, and how much of it there was as each nested one
    /// began.
    private var undoing: [() -> Void] = []
    private var undoingCounts: [Int] = []

    /// Reused for each revision's id: setting a digest up costs more than a short message.
    var digest = StreamingDigest(.sha256)

    /// - Parameter lastSequence: the highest that is in use.
    init(_ connection: Connection, lastSequence: Int64, attachments: AttachmentStore) {
        self.connection = connection
        tables = DocumentTables(connection)
        beginning = Statement(connection, "BEGIN IMMEDIATE")
        committing = Statement(connection, "COMMIT")
        rollingBack = Statement(connection, "ROLLBACK")
        // Savepoints of one name nest: RELEASE and ROLLBACK TO mean the innermost.
        saving = Statement(connection, "SAVEPOINT nested")
        releasing = Statement(connection, "RELEASE nested")
        rollingBackToSave = Statement(connection, "ROLLBACK TO nested")
        insertDocument = Statement(
            connection, "INSERT OR IGNORE INTO documents (id, number, winner, flags) VALUES (?1, ?2, ?2, ?3)")
        updateDocument = Statement(connection, "UPDATE documents SET winner = ?2, flags = ?3 WHERE id = ?1")
        insertRevision = Statement(
            connection,
            """
            INSERT INTO revisions (sequence, document, parent, flags, generation, suffix, digest, id, body)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """)
        insertAttachment = Statement(
            connection, "INSERT INTO attachments (digest, length, sha256, header) VALUES (?1, ?2, ?3, ?4)")
        updateAttachment = Statement(
            connection, "UPDATE attachments SET length = ?2, sha256 = ?3, header = ?4 WHERE number = ?1")
        insertUse = Statement(
            connection, "INSERT OR IGNORE INTO attachment_uses (revision, attachment) VALUES (?1, ?2)")
        self.lastSequence = lastSequence
        self.attachments = attachments
    }

    // MARK: Transactions

    func begin() throws(CofferError) {
        if depth == 0 {
            failure = nil
            try beginning.run()
        } else {
            try checkIntact()
            try saving.run()
        }
        installCounts.append(filesToInstall.count)
        undoingCounts.append(undoing.count)
        changes.begin(lastSequence: lastSequence)
        depth += 1
    }

    /// Ends the innermost transaction, which is rolled back when that fails. The outermost makes its changes durable.
    func commit() throws(CofferError) {
        precondition(depth > 0, "nothing to commit")
        do throws(CofferError) {
            try checkIntact()
            if depth == 1 {
                try tables.confirmReads()
                try committing.run()
            } else {
                try releasing.run()
            }
        } catch {
            try? rollback()
            throw error
        }
        installCounts.removeLast()
        undoingCounts.removeLast()
        changes.commit()
        depth -= 1
        if depth == 0 { undoing = [] }
    }

    /// Undoes the innermost transaction.
    func rollback() throws(CofferError) {
        precondition(depth > 0, "nothing to roll back")
        depth -= 1
        filesToInstall.removeSubrange(installCounts.removeLast()...)
        changes.rollBack()
        let undone = undoing[undoingCounts.removeLast()...]
        undoing.removeLast(undone.count)
        for undo in undone.reversed() { undo() }
        // SQLite has rolled back everything by itself after some failures.
        guard connection.isInTransaction else { return }
        if depth == 0 { return try rollingBack.run() }
        do throws(CofferError) {
            try rollingBackToSave.run()
            try releasing.run()
        } catch {
            failure = (error, depth: 1)
            throw error
        }
        // What was half done is undone.
        if let failure, failure.depth > depth { self.failure = nil }
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
            if !connection.isInTransaction { failure = (error, depth: 1) }
            throw error
        }
    }

    /// Whether a read or write of the file failed in the transaction, so that nobody knows what the disk holds.
    var hasFailedIO: Bool { failure?.error.code == .ioFailed }

    private func checkIntact() throws(CofferError) {
        if let failure { throw failure.error }
        guard connection.isInTransaction else {
            let error = CofferError(.ioFailed, of: connection.subject, "the transaction was rolled back by itself")
            failure = (error, depth: 1)
            throw error
        }
    }

    /// Has `undo` run on this thread if the innermost transaction is rolled back, or one around it.
    func whenRolledBack(_ undo: @escaping () -> Void) {
        if depth > 0 { undoing.append(undo) }
    }

    /// Forgets all content files, once the outermost transaction has ended.
    func forgetFiles() {
        stagedFiles = [:]
        filesToInstall = []
    }

    /// Notes that the transaction may install this file. One that was staged before the key was changed is encrypted again.
    func stage(_ file: StagedAttachment) throws(CofferError) {
        stagedFiles[file.digest.sha1] = try file.moved(to: attachments)
    }

    /// Whether a content's file is there, and the one that its row means, as far as that shows without reading it.
    func contentIsThere(_ content: ContentDigest, header: [UInt8]) -> Bool {
        (try? attachments.open(content, header: header, subject: connection.subject)) != nil
    }

    /// Has the file installed when the outermost transaction commits.
    func install(_ file: StagedAttachment) { filesToInstall.append(file) }

    /// Runs `change`; should it fail, the innermost transaction around it can only be rolled back.
    func change<Value>(_ change: () throws(CofferError) -> Value) throws(CofferError) -> Value {
        if let failure { throw failure.error }
        do throws(CofferError) {
            return try change()
        } catch {
            failure = (error, depth: connection.isInTransaction ? depth : 1)
            throw error
        }
    }

    // MARK: Changes

    /// Adds a document with its first revision, unless there is one with this id, deleted or not.
    ///
    /// - Returns: the new revision's sequence, or nil when there is such a document.
    func insertNewDocument(
        _ document: DocumentID, revisionID: RevisionID, _ content: RevisionContent
    ) throws(CofferError) -> Int64? {
        try change { () throws(CofferError) in
            let sequence = lastSequence + 1
            try insertDocument.bind(1, document.text)
            try insertDocument.bind(2, sequence)
            try insertDocument.bind(3, 0)
            try insertDocument.run()
            guard connection.changedRowCount == 1 else { return nil }
            return try insertRevision(
                of: document, number: sequence, parent: nil, isDeletion: false, id: revisionID, content)
        }
    }

    /// Adds a revision to a document that is there, and makes `row` what it says then.
    ///
    /// - Parameter row: given the new revision's sequence, the document's row.
    /// - Returns: the new revision's sequence.
    func insertRevision(
        of document: DocumentID, number: Int64, parent: Int64, isDeletion: Bool, id: RevisionID,
        _ content: RevisionContent, row: (Int64) throws(CofferError) -> DocumentRow
    ) throws(CofferError) -> Int64 {
        try change { () throws(CofferError) in
            let sequence = try insertRevision(
                of: document, number: number, parent: parent, isDeletion: isDeletion, id: id, content)
            let row = try row(sequence)
            try updateDocument.bind(1, document.text)
            try updateDocument.bind(2, row.winner)
            try updateDocument.bind(3, row.flags.rawValue)
            try updateDocument.run()
            return sequence
        }
    }

    private func insertRevision(
        of document: DocumentID, number: Int64, parent: Int64?, isDeletion: Bool, id: RevisionID,
        _ content: RevisionContent
    ) throws(CofferError) -> Int64 {
        let sequence = lastSequence + 1
        try insertRevision.bind(1, sequence)
        try insertRevision.bind(2, number)
        try insertRevision.bind(3, parent)
        var flags: RevisionFlags = isDeletion ? .isDeletion : []
        if content.hasAttachments { flags.insert(.hasAttachments) }
        try insertRevision.bind(4, flags.rawValue)
        try insertRevision.bind(5, Int64(id.generation))
        switch id.suffix {
        case .digest(let digest): try insertRevision.bind(6, digest.bytes)
        case .text(let text): try insertRevision.bind(6, text)
        }
        if let digest = BodyDigest.of(content.body.bytes) {
            try insertRevision.bind(7, digest)
        } else {
            try insertRevision.bindNull(7)
        }
        try insertRevision.bind(8, document.text)
        try insertRevision.bind(9, content.body.bytes)
        try insertRevision.run()
        lastSequence = sequence
        return sequence
    }
}
