internal import CofferModel
package import CofferSealing
internal import CofferSQLite

/// The statements of one connection that read views and declared indexes, prepared as they are needed.
package struct IndexTables: ~Copyable {
    private let subject: String
    private let findVersion, findIndex, listIndexes, findDebts, listFailures: Statement
    private let forward, backward, forwardWithRests, backwardWithRests: Statement
    private let findTable, findAbandoned: Statement
    package let texts: TextTables
    private let listAll, countStraysByKey, countStraysByDocument: Statement

    init(_ connection: borrowing Connection) {
        subject = connection.subject
        texts = TextTables(connection)
        findVersion = Statement(connection, "SELECT value FROM info WHERE key = 'index_version'")
        findIndex = Statement(
            connection,
            """
            SELECT e.number, e.name, e.definition, e.sequence, e.entries, e.changes, e.flags,
                e.kind IS i.kind AND e.name IS i.name
            FROM indexes AS i LEFT JOIN indexes AS e NOT INDEXED ON e.number = i.number
            WHERE i.kind = ?1 AND i.name = ?2
            """)
        listIndexes = Statement(
            connection,
            """
            SELECT e.number, e.name, e.definition, e.sequence, e.entries, e.changes, e.flags,
                e.kind IS i.kind AND e.name IS i.name
            FROM indexes AS i LEFT JOIN indexes AS e NOT INDEXED ON e.number = i.number
            WHERE i.kind = ?1 ORDER BY i.name
            """)
        findDebts = Statement(connection, "SELECT document, id FROM index_debts WHERE owner = ?1 LIMIT ?2")
        // The index alone gives the order, but among entries that are equal in what it has of them. What it leads to is read by
        // its number, and compared: see AttachmentTables.attachment.
        forward = Statement(
            connection,
            """
            SELECT e.number, e.sequence, i.key, i.id, CASE WHEN ?6 THEN e.value END, e.digest,
                e.owner IS i.owner AND e.key IS i.key AND e.id IS i.id
            FROM index_entries AS i INDEXED BY entries_by_key LEFT JOIN index_entries AS e NOT INDEXED ON e.number = i.number
            WHERE i.owner = ?1 AND (i.key, i.id) >= (?2, ?3) AND (i.key, i.id) <= (?4, ?5)
            ORDER BY i.key, i.id, i.number
            """)
        backward = Statement(
            connection,
            """
            SELECT e.number, e.sequence, i.key, i.id, CASE WHEN ?6 THEN e.value END, e.digest,
                e.owner IS i.owner AND e.key IS i.key AND e.id IS i.id
            FROM index_entries AS i INDEXED BY entries_by_key LEFT JOIN index_entries AS e NOT INDEXED ON e.number = i.number
            WHERE i.owner = ?1 AND (i.key, i.id) >= (?2, ?3) AND (i.key, i.id) <= (?4, ?5)
            ORDER BY i.key DESC, i.id DESC, i.number DESC
            """)
        forwardWithRests = Statement(
            connection,
            """
            SELECT e.number, e.sequence, i.key, i.id, e.value, e.digest,
                e.owner IS i.owner AND e.key IS i.key AND e.id IS i.id, e.key_rest, e.id_rest
            FROM index_entries AS i INDEXED BY entries_by_key LEFT JOIN index_entries AS e NOT INDEXED ON e.number = i.number
            WHERE i.owner = ?1 AND (i.key, i.id) >= (?2, ?3) AND (i.key, i.id) <= (?4, ?5)
            ORDER BY i.key, i.id, i.number
            """)
        backwardWithRests = Statement(
            connection,
            """
            SELECT e.number, e.sequence, i.key, i.id, e.value, e.digest,
                e.owner IS i.owner AND e.key IS i.key AND e.id IS i.id, e.key_rest, e.id_rest
            FROM index_entries AS i INDEXED BY entries_by_key LEFT JOIN index_entries AS e NOT INDEXED ON e.number = i.number
            WHERE i.owner = ?1 AND (i.key, i.id) >= (?2, ?3) AND (i.key, i.id) <= (?4, ?5)
            ORDER BY i.key DESC, i.id DESC, i.number DESC
            """)
        findAbandoned = Statement(connection, "SELECT 1 FROM info WHERE key = 'index_abandoned'")
        listAll = Statement(
            connection,
            """
            SELECT number, sequence, key, id, value, digest, 1, key_rest, id_rest FROM index_entries NOT INDEXED
            """)
        countStraysByKey = Statement(
            connection,
            """
            SELECT count(*)
            FROM index_entries AS i INDEXED BY entries_by_key LEFT JOIN index_entries AS e NOT INDEXED ON e.number = i.number
            WHERE i.owner >= 0 AND NOT (e.owner IS i.owner AND e.key IS i.key AND e.id IS i.id)
            """)
        countStraysByDocument = Statement(
            connection,
            """
            SELECT count(*)
            FROM index_entries AS i INDEXED BY entries_of_document LEFT JOIN index_entries AS e NOT INDEXED
                ON e.number = i.number
            WHERE i.document >= 0 AND NOT (e.document IS i.document AND e.owner IS i.owner)
            """)
        findTable = Statement(
            connection, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'indexes'")
        // A function that failed for a document leaves an entry without a key.
        listFailures = Statement(
            connection,
            """
            SELECT i.id, e.id_rest, e.owner IS i.owner AND e.key IS NULL AND e.id IS i.id
            FROM index_entries AS i INDEXED BY entries_by_key LEFT JOIN index_entries AS e NOT INDEXED ON e.number = i.number
            WHERE i.owner = ?1 AND i.key IS NULL
            ORDER BY i.id, e.id_rest LIMIT ?2
            """)
    }

    /// Whether the tables are there, and of the version that this code knows.
    package func areUsable() throws(CofferError) -> Bool {
        try findVersion.first { $0.integer(0) } == IndexSchema.version
    }

    /// Whether there were indexes once whose tables are to be rebuilt: those of another version, or that were damaged.
    package func needRemaking() throws(CofferError) -> Bool {
        guard try findTable.first({ _ in true }) != nil else { return false }
        return try !areUsable()
    }

    /// Whether pages of damaged entries stay in the file without a use.
    package func haveAbandonedPages() throws(CofferError) -> Bool {
        try findAbandoned.first { _ in true } ?? false
    }

    /// The index of that name; nil if there isn't one. The tables must be there.
    package func index(_ kind: IndexKind, _ name: String) throws(CofferError) -> IndexRow? {
        try findIndex.bind(1, kind.rawValue)
        try findIndex.bind(2, name)
        return try findIndex.first { (statement) throws(CofferError) in try row(statement) }
    }

    /// All indexes of a kind, by the bytes of their names. The tables must be there.
    package func indexes(_ kind: IndexKind) throws(CofferError) -> [IndexRow] {
        try listIndexes.bind(1, kind.rawValue)
        return try listIndexes.all { (statement) throws(CofferError) in try row(statement) }
    }

    private func row(_ statement: Statement) throws(CofferError) -> IndexRow {
        guard statement.integer(7) != 0 else {
            throw CofferError(.damaged, of: subject, "the row of an index belongs to another index")
        }
        for column: Int32 in [0, 3, 4, 5] where !Schema.counts.contains(statement.integer(column)) {
            throw CofferError(.damaged, of: subject, "the row of an index holds impossible values")
        }
        return IndexRow(
            number: statement.number(0), name: statement.text(1), definition: statement.text(2),
            sequence: statement.number(3), entryCount: Int(statement.integer(4)), changeCount: statement.integer(5),
            hasRests: statement.integer(6) & 1 != 0)
    }

    /// Up to `limit` documents whose entries are to be rebuilt, though they have no new revision.
    package func debts(of index: IndexNumber, limit: Int) throws(CofferError) -> [(
        document: DocumentNumber, id: String
    )] {
        try findDebts.bind(1, index)
        try findDebts.bind(2, Int64(limit))
        return try findDebts.all { ($0.number(0), $0.text(1)) }
    }

    /// Up to `limit` ids of documents for which the index's function failed, by their bytes.
    package func failures(of index: IndexNumber, limit: Int) throws(CofferError) -> [String] {
        defer { listFailures.reset() }
        try listFailures.bind(1, index)
        try listFailures.bind(2, Int64(limit))
        var ids: [String] = []
        while try listFailures.step() {
            try checkRow(listFailures, matches: 2)
            let rest = listFailures.isNull(1) ? nil : listFailures.bytes(1)
            let id = SplitBytes(start: listFailures.bytes(0), rest: rest).bytes
            ids.append(String(decoding: id, as: UTF8.self))
        }
        return ids
    }

    /// Entries of an index from one place to another, in order.
    ///
    /// - Parameters:
    ///   - range: the places of its first entry and of its last, if there were such.
    ///   - visit: returns whether to go on.
    package func entries(
        of index: IndexRow, in range: EntryRange, descending: Bool, loadsValues: Bool,
        _ visit: (IndexEntry) throws(CofferError) -> Bool
    ) throws(CofferError) {
        if index.hasRests {
            return try entriesWithRests(of: index, in: range, descending: descending, visit)
        }
        let statement = descending ? backward : forward
        defer { statement.reset() }
        try bind(statement, index, range)
        try statement.bind(6, loadsValues ? 1 : 0)
        while try statement.step() {
            guard try visit(entry(statement, loadsValue: loadsValues)) else { return }
        }
    }

    /// The same where entries have rests, which the index has not: those that are equal in what it has are sorted here.
    private func entriesWithRests(
        of index: IndexRow, in range: EntryRange, descending: Bool,
        _ visit: (IndexEntry) throws(CofferError) -> Bool
    ) throws(CofferError) {
        let statement = descending ? backwardWithRests : forwardWithRests
        defer { statement.reset() }
        try bind(statement, index, range.widened)
        var run: (start: EntryPosition, entries: [IndexEntry])?
        func end() throws(CofferError) -> Bool {
            let sorted = (run?.entries ?? []).sorted { ($0.place, $0.number) < ($1.place, $1.number) }
            run = nil
            for entry in descending ? sorted.reversed() : sorted where range.contains(entry) {
                guard try visit(entry) else { return false }
            }
            return true
        }
        while try statement.step() {
            let start = EntryPosition(key: statement.bytes(2), id: statement.bytes(3)).startOfRun
            let entry = try entryWithRests(statement)
            if run?.start != start {
                guard try end() else { return }
                run = (start, [])
            }
            run?.entries.append(entry)
        }
        _ = try end()
    }

    private func bind(_ statement: Statement, _ index: IndexRow, _ range: EntryRange) throws(CofferError) {
        try statement.bind(1, index.number)
        try statement.bind(2, range.lower.key)
        try statement.bind(3, range.lower.id)
        try statement.bind(4, range.upper.key)
        try statement.bind(5, range.upper.id)
    }

    /// Reads what is known of all indexes: fails where any of it can't be read.
    package func readDefinitions() throws(CofferError) {
        for kind in [IndexKind.view, .properties, .text] {
            for row in try indexes(kind) { _ = try debts(of: row.number, limit: .max) }
        }
    }

    /// Reads all entries of all indexes, and checks them: fails where any can't be read, or isn't what SQLite's indexes say.
    package func readEverything() throws(CofferError) {
        defer { listAll.reset() }
        while try listAll.step() { _ = try entryWithRests(listAll) }
        for count in [countStraysByKey, countStraysByDocument] {
            guard try count.first({ $0.integer(0) }) == 0 else { throw stray }
        }
        try texts.readEverything()
    }

    /// Fails unless the row that the index led to is the one that it means, as column `matches` says.
    private func checkRow(_ statement: Statement, matches: Int32) throws(CofferError) {
        guard statement.integer(matches) != 0 else { throw stray }
    }

    private var stray: CofferError {
        CofferError(.damaged, of: subject, "the row of an index entry belongs to another entry")
    }

    /// The entry in the statement's columns, of an index in which none has a rest.
    private func entry(_ statement: Statement, loadsValue: Bool) throws(CofferError) -> IndexEntry {
        try checkRow(statement, matches: 6)
        let (key, id) = (statement.bytes(2), statement.bytes(3))
        guard loadsValue && !statement.isNull(4) else {
            return IndexEntry(
                number: statement.number(0), sequence: statement.number(1), key: key, id: id, value: nil)
        }
        return try checked(statement, SplitBytes(start: key, rest: nil), SplitBytes(start: id, rest: nil))
    }

    private func entryWithRests(_ statement: Statement) throws(CofferError) -> IndexEntry {
        try checkRow(statement, matches: 6)
        return try checked(
            statement, SplitBytes(start: statement.bytes(2), rest: statement.isNull(7) ? nil : statement.bytes(7)),
            SplitBytes(start: statement.bytes(3), rest: statement.isNull(8) ? nil : statement.bytes(8)))
    }

    private func checked(
        _ statement: Statement, _ key: SplitBytes, _ id: SplitBytes
    ) throws(CofferError) -> IndexEntry {
        let value = statement.isNull(4) ? nil : statement.bytes(4)
        guard try (statement.isNull(5) ? nil : statement.bytes(5)) == EntryDigest.of(key, id, value) else {
            throw CofferError(
                .damaged, of: subject, "entry \(statement.integer(0)) of an index is not what was written")
        }
        return IndexEntry(
            number: statement.number(0), sequence: statement.number(1), key: key.bytes, id: id.bytes, value: value)
    }
}

/// Entries from one place to another, both included.
package struct EntryRange: Equatable, Sendable {
    package var lower: EntryPosition
    package var upper: EntryPosition

    package init(lower: EntryPosition, upper: EntryPosition) {
        self.lower = lower
        self.upper = upper
    }

    /// Whether the entry is in it.
    package func contains(_ entry: IndexEntry) -> Bool { lower <= entry.place && entry.place <= upper }

    /// A range of what the index has of places that has all of this one.
    fileprivate var widened: EntryRange {
        EntryRange(
            lower: lower.startOfRun,
            upper: upper.key.count < IndexSchema.indexedByteCount && upper.id.count < IndexSchema.indexedByteCount
                ? upper
                : EntryPosition(key: SplitBytes(upper.key).start, id: EntryPosition.afterIDs))
    }
}

extension EntryPosition {
    /// The first of the places that the index doesn't tell from this one.
    fileprivate var startOfRun: EntryPosition {
        let limit = IndexSchema.indexedByteCount
        if key.count >= limit { return EntryPosition(key: Array(key[..<limit])) }
        return id.count >= limit ? EntryPosition(key: key, id: Array(id[..<limit])) : self
    }
}

extension IndexEntry {
    /// Its path.
    package var place: EntryPosition { EntryPosition(key: key, id: id) }
}

extension EntryPosition: Comparable {
    package static func < (left: EntryPosition, right: EntryPosition) -> Bool {
        let order = compareBytes(left.key.span, right.key.span)
        return order == 0 ? compareBytes(left.id.span, right.id.span) < 0 : order < 0
    }
}

/// The check of an entry in its row: see ``IndexSchema``.
package enum EntryDigest {
    /// What the row carries: the first 16 bytes of the SHA-256 of what may overflow, or nil if nothing can.
    package static func of(_ key: SplitBytes, _ id: SplitBytes, _ value: [UInt8]?) throws(CofferError) -> [UInt8]? {
        let count = (key.rest?.count ?? 0) + (id.rest?.count ?? 0) + (value?.count ?? 0)
        guard count > Schema.longestBodyWithoutDigest else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 16)
        for part in [key.rest, id.rest] {
            unsafe withUnsafeBytes(of: UInt64(part?.count ?? 0).bigEndian) { unsafe bytes.append(contentsOf: $0) }
            bytes += part ?? []
        }
        return try Digest.sha256Value(of: bytes + (value ?? [])).first16
    }
}
