package import CofferModel
package import CofferSealing
package import CofferSQLite
internal import Synchronization

/// A row of `documents`.
package struct DocumentRow: Equatable, Sendable {
    /// The sequence of the document's first revision.
    package var number: DocumentNumber
    /// The sequence of the winning revision.
    package var winner: SequenceNumber
    package var flags: DocumentFlags

    package init(number: DocumentNumber, winner: SequenceNumber, flags: DocumentFlags) {
        self.number = number
        self.winner = winner
        self.flags = flags
    }
}

/// A row of `revisions`. Its body is nil when compaction dropped it, or when it was not asked for.
package struct RevisionRow: Sendable {
    package var sequence: SequenceNumber
    package var document: DocumentNumber
    /// The parent's sequence; nil at the root. There is no such revision where the parent was pruned.
    package var parent: SequenceNumber?
    package var isDeletion: Bool
    package var id: RevisionID
    package var body: [UInt8]?

    package init(
        sequence: SequenceNumber, document: DocumentNumber, parent: SequenceNumber? = nil, isDeletion: Bool,
        id: RevisionID, body: [UInt8]? = nil
    ) {
        self.sequence = sequence
        self.document = document
        self.parent = parent
        self.isDeletion = isDeletion
        self.id = id
        self.body = body
    }
}

extension DocumentRow {
    /// The row of the document that has this winner.
    package init(of winner: RevisionRow, _ flags: DocumentFlags) {
        self.init(number: winner.document, winner: winner.sequence, flags: flags)
    }
}

extension RevisionRow {
    /// The revision in the statement's first columns: sequence, document, parent, flags, generation, suffix.
    init(
        _ statement: Statement, subject: @autoclosure () -> String, body: [UInt8]? = nil
    ) throws(CofferError) {
        sequence = statement.number(0)
        document = statement.number(1)
        parent = statement.isNull(2) ? nil : statement.number(2)
        isDeletion = RevisionFlags(rawValue: statement.integer(3)).contains(.isDeletion)
        id = try statement.revisionID(4, sequence: sequence, subject: subject())
        self.body = body
    }
}

extension Statement {
    /// Binds what stands after the hyphen of a revision id, as it is stored.
    package func bind(_ index: Int32, _ suffix: RevisionID.Suffix) throws(CofferError) {
        switch suffix {
        case .digest(let digest): try bind(index, digest.high, digest.low)
        case .text(let text): try bind(index, text)
        }
    }

    /// The revision id in this column and the next.
    package func revisionID(
        _ column: Int32, sequence: SequenceNumber, subject: @autoclosure () -> String
    ) throws(CofferError) -> RevisionID {
        let suffix: RevisionID.Suffix? =
            if let digest = words(column + 1) {
                .digest(RevisionDigest(high: digest.high, low: digest.low))
            } else {
                isBlob(column + 1) ? nil : .text(text(column + 1))
            }
        guard let suffix, let id = try? RevisionID(generation: integer(column), suffix: suffix) else {
            throw CofferError(.damaged, of: subject(), "revision \(sequence) has no revision id")
        }
        return id
    }
}

/// One connection and the statements that read through it, prepared once.
///
/// Has one owner, a ``Writer``, a ``Reader`` or a function that opened it, and is lent by borrowing: the compiler lets nobody
/// keep it for longer than the call, or hand it to another thread.
package struct Snapshot: ~Copyable {
    let connection: Connection
    private let beginning, ending: Statement
    private let findDocument: Statement
    let findWinner: Statement
    private let findRevision: Statement
    private let findRevisionID: Statement
    private let listDocuments: Statement
    private let countDocuments: Statement
    private let findLastSequence: Statement
    private let findDepth: Statement
    private let probe: Statement
    package let attachments: AttachmentTables
    package let compaction: CompactionTables
    package let lists: ListTables
    package let local: LocalTables
    package let expirations: ExpirationTables
    package let trees: TreeTables
    package let indexes: IndexTables
    /// Atomic, since whoever is lent the tables can change nothing else of them.
    private let listedRowCount = Atomic(0)

    /// Without this, the compiler would write out the end of each of some sixty statements wherever a snapshot may end, and take
    /// seconds for one function.
    deinit {}

    init(_ connection: consuming Connection) {
        beginning = Statement(connection, "BEGIN")
        ending = Statement(connection, "COMMIT")
        indexes = IndexTables(connection)
        attachments = AttachmentTables(connection)
        compaction = CompactionTables(connection)
        lists = ListTables(connection)
        local = LocalTables(connection)
        expirations = ExpirationTables(connection)
        trees = TreeTables(connection)
        findDocument = Statement(connection, "SELECT number, winner, flags FROM documents WHERE id = ?1")
        // A winner that is not there must show as damage, not as a document that is not there. So must one that is another
        // document's: whoever can write the disk can put an older page back, in which the sequence meant something else.
        findWinner = Statement(
            connection,
            """
            SELECT r.sequence, r.document, r.parent, r.flags, r.generation, r.suffix, r.digest, r.body, d.flags
            FROM documents AS d LEFT JOIN revisions AS r
                ON r.sequence = d.winner AND r.document = d.number AND r.id = d.id
            WHERE d.id = ?1
            """)
        findRevision = Statement(
            connection,
            """
            SELECT sequence, document, parent, flags, generation, suffix, digest, body
            FROM revisions WHERE sequence = ?1 AND id = ?2
            """)
        findRevisionID = Statement(connection, "SELECT generation, suffix, flags FROM revisions WHERE sequence = ?1")
        listDocuments = Statement(
            connection, "SELECT id FROM documents WHERE id > ?1 AND flags & 1 = 0 ORDER BY id LIMIT ?2")
        countDocuments = Statement(connection, "SELECT count(*) FROM documents WHERE flags & 1 = 0")
        // Purged revisions may have been the last, and no number is given twice.
        findLastSequence = Statement(
            connection,
            """
            SELECT max(
                coalesce((SELECT max(sequence) FROM revisions), 0),
                coalesce((SELECT value FROM info WHERE key = 'last_sequence'), 0))
            """)
        findDepth = Statement(connection, "SELECT value FROM info WHERE key = 'depth'")
        probe = Statement(connection, "SELECT 1 FROM info LIMIT 1")
        self.connection = connection
    }

    /// From here on every read sees what was committed when the first of them began, until ``endReading()``.
    func beginReading() throws(CofferError) { try beginning.run() }

    func endReading() throws(CofferError) { try ending.run() }

    /// Has all reads of `body` see one moment, and checks afterwards that no page failed. Outside of any transaction.
    ///
    /// - Throws: what `body` throws, `damaged` (500).
    package func read<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        try beginReading()
        do throws(CofferError) {
            let value = try body(self)
            try confirmReads()
            try endReading()
            return value
        } catch {
            // Nothing was written. Where SQLite has ended it already, there is nothing to end.
            if connection.isInTransaction { try? endReading() }
            throw error
        }
    }

    /// Fails if any page of this transaction failed its check, even where SQLite reported success.
    package func confirmReads() throws(CofferError) {
        guard try probe.first({ _ in true }) != nil else {
            throw CofferError(.damaged, of: connection.subject, "the database lost a row that is always there")
        }
    }

    /// Notes that a list went through so many rows.
    package func noteListed(_ rowCount: Int) { listedRowCount.add(rowCount, ordering: .relaxed) }

    /// How many that were since the last call.
    package func takeListedRowCount() -> Int { listedRowCount.exchange(0, ordering: .relaxed) }

    package func document(_ id: DocumentID) throws(CofferError) -> DocumentRow? {
        try findDocument.bind(1, id.text)
        return try findDocument.first {
            DocumentRow(
                number: $0.number(0), winner: $0.number(1), flags: DocumentFlags(rawValue: $0.integer(2)))
        }
    }

    /// The document's row and winning revision with its body, or nil when there is no such document.
    package func winner(of id: DocumentID) throws(CofferError) -> (row: DocumentRow, revision: RevisionRow)? {
        try findWinner.bind(1, id.text)
        return try findWinner.first { (statement) throws(CofferError) in
            guard !statement.isNull(0) else { throw missing("the current revision of document \(id.text)") }
            let winner = try revision(statement, bodyColumns: (6, 7))
            return (DocumentRow(of: winner, DocumentFlags(rawValue: statement.integer(8))), winner)
        }
    }

    /// The document's revision with its body, which must be there.
    package func revision(sequence: SequenceNumber, of document: DocumentID) throws(CofferError) -> RevisionRow {
        guard let found = try revision(ifThere: sequence, of: document) else { throw missing("revision \(sequence)") }
        return found
    }

    /// The document's revision with its body; nil if it was pruned or purged.
    package func revision(ifThere sequence: SequenceNumber, of document: DocumentID) throws(CofferError) -> RevisionRow?
    {
        try findRevision.bind(1, sequence)
        try findRevision.bind(2, document.text)
        return try findRevision.first { (statement) throws(CofferError) in
            try revision(statement, bodyColumns: (6, 7))
        }
    }

    /// The id of a document that uses this content, and the body of the latest of its revisions that does.
    package func firstUse(ofAttachment number: ContentNumber) throws(CofferError) -> (document: String, body: [UInt8])?
    {
        let use = Statement(
            connection,
            """
            SELECT r.id, r.body FROM attachment_uses AS u JOIN revisions AS r ON r.sequence = u.revision
            WHERE u.attachment = ?1 ORDER BY u.revision DESC LIMIT 1
            """)
        defer { use.finalize() }
        try use.bind(1, number)
        return try use.first { ($0.text(0), $0.bytes(1)) }
    }

    /// The revision's id alone. The revision must be there.
    package func revisionID(sequence: SequenceNumber) throws(CofferError) -> RevisionID {
        try findRevisionID.bind(1, sequence)
        let found = try findRevisionID.first { (statement) throws(CofferError) in
            try statement.revisionID(0, sequence: sequence, subject: connection.subject)
        }
        guard let found else { throw missing("revision \(sequence)") }
        return found
    }

    /// Whether the revision is there.
    package func hasRevision(sequence: SequenceNumber) throws(CofferError) -> Bool {
        try findRevisionID.bind(1, sequence)
        return try findRevisionID.first { _ in true } ?? false
    }

    /// The revision's flags alone. The revision must be there.
    package func flags(sequence: SequenceNumber) throws(CofferError) -> RevisionFlags {
        try findRevisionID.bind(1, sequence)
        guard let flags = try findRevisionID.first({ RevisionFlags(rawValue: $0.integer(2)) }) else {
            throw missing("revision \(sequence)")
        }
        return flags
    }

    /// The ids of up to `limit` documents that are not deleted, in the order of their bytes, from the first after `id`.
    package func documentIDs(after id: String, limit: Int) throws(CofferError) -> [String] {
        try listDocuments.bind(1, id)
        try listDocuments.bind(2, Int64(limit))
        return try listDocuments.all { $0.text(0) }
    }

    /// How many documents are not deleted.
    package func documentCount() throws(CofferError) -> Int {
        try countDocuments.first { Int($0.integer(0)) } ?? 0
    }

    /// The highest sequence that was ever used, 0 in a database where nothing was saved.
    package func lastSequence() throws(CofferError) -> SequenceNumber {
        let last: SequenceNumber = try findLastSequence.first { $0.number(0) } ?? 0
        guard Schema.counts.contains(last) else {
            throw CofferError(.damaged, of: connection.subject, "its last sequence number is out of range")
        }
        return last
    }

    /// How many revisions of one line are kept.
    package func revisionTreeDepth() throws(CofferError) -> Int {
        guard let depth = try findDepth.first({ Int($0.integer(0)) }) else { return Schema.defaultRevisionTreeDepth }
        guard depth >= 1 else {
            throw CofferError(.damaged, of: connection.subject, "the number of revisions that it keeps is out of range")
        }
        return depth
    }

    // MARK: Rows

    func revision(
        _ statement: Statement, bodyColumns: (digest: Int32, body: Int32)
    ) throws(CofferError) -> RevisionRow {
        let body = statement.bytesIfAny(bodyColumns.body)
        if let body {
            let digest = statement.isNull(bodyColumns.digest) ? nil : statement.bytes(bodyColumns.digest)
            guard try BodyDigest.matches(digest, of: body) else {
                throw CofferError(
                    .damaged, of: connection.subject,
                    "the body of revision \(statement.integer(0)) is not what was written")
            }
        }
        return try RevisionRow(statement, subject: connection.subject, body: body)
    }

    package func missing(_ what: String) -> CofferError {
        CofferError(.damaged, of: connection.subject, "\(what) is missing")
    }
}

/// The check of a body in its row: see ``Schema``.
package enum BodyDigest {
    /// What the row carries: the first 16 bytes of the body's SHA-256, or nil for a body that cannot overflow.
    package static func of(_ body: [UInt8]) throws(CofferError) -> [UInt8]? {
        guard body.count > Schema.longestBodyWithoutDigest else { return nil }
        return try Digest.sha256Value(of: body).first16
    }

    package static func matches(_ digest: [UInt8]?, of body: [UInt8]) throws(CofferError) -> Bool {
        try of(body) == digest
    }

    /// The same of what stands in the column of a row.
    static func matches(_ row: Statement, _ column: Int32, of body: RawSpan) throws(CofferError) -> Bool {
        guard body.byteCount > Schema.longestBodyWithoutDigest else { return row.isNull(column) }
        guard let (high, low) = row.words(column) else { return false }
        let digest = try Digest.sha256Value(of: body)
        return digest.word0 == high && digest.word1 == low
    }
}
