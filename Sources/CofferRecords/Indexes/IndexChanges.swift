package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// The writer's statements for views and declared indexes. The tables must be there: see ``IndexSchema``.
package struct IndexChanges: ~Copyable {
    private let subject: String
    private let insertIndex, noteNumber, redefine, restart, advance, removeIndex: Statement
    private let insertEntry, countEntries, listKeys, removeEntries, removeAllEntries: Statement
    package let texts: TextChanges
    private let insertDebt, removeDebt, removeDebts, removeDebtsOfIndex, countRemoved: Statement

    init(_ connection: borrowing Connection) {
        subject = connection.subject
        texts = TextChanges(connection)
        insertIndex = Statement(
            connection,
            """
            INSERT INTO indexes (number, kind, name, definition, sequence, entries, changes, flags)
            SELECT coalesce((SELECT value FROM info WHERE key = 'last_index'), 0) + 1, ?1, ?2, ?3, 0, 0, 0, 0
            """)
        // No number is given twice: whoever knows an index by it would take another for it.
        noteNumber = Statement(
            connection,
            "INSERT OR REPLACE INTO info (key, value) SELECT 'last_index', max(number) FROM indexes")
        redefine = Statement(
            connection,
            """
            UPDATE indexes SET definition = ?2, sequence = 0, entries = 0, changes = changes + 1, flags = 0
            WHERE number = ?1
            """)
        restart = Statement(
            connection,
            "UPDATE indexes SET sequence = 0, entries = 0, changes = changes + 1, flags = 0 WHERE number = ?1")
        advance = Statement(
            connection,
            """
            UPDATE indexes SET sequence = ?2, entries = entries + ?3, changes = changes + 1, flags = flags | ?4
            WHERE number = ?1
            """)
        removeIndex = Statement(connection, "DELETE FROM indexes WHERE number = ?1")
        insertEntry = Statement(
            connection,
            """
            INSERT INTO index_entries (owner, document, sequence, digest, key, id, key_rest, id_rest, value, number)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            """)
        countEntries = Statement(
            connection,
            """
            SELECT i.owner, count(e.key), min(e.document IS i.document AND e.owner IS i.owner)
            FROM index_entries AS i INDEXED BY entries_of_document LEFT JOIN index_entries AS e NOT INDEXED
                ON e.number = i.number
            WHERE i.document = ?1 GROUP BY i.owner
            """)
        listKeys = Statement(
            connection,
            """
            SELECT e.key, e.key_rest, e.id, e.id_rest, e.document IS i.document AND e.owner IS i.owner
            FROM index_entries AS i INDEXED BY entries_of_document LEFT JOIN index_entries AS e NOT INDEXED
                ON e.number = i.number
            WHERE i.document = ?1 AND i.owner = ?2
            """)
        removeEntries = Statement(connection, "DELETE FROM index_entries WHERE document = ?1 AND owner = ?2")
        // What the index leads to is this index's, and no other's.
        removeAllEntries = Statement(
            connection,
            """
            DELETE FROM index_entries WHERE number IN (
                SELECT e.number
                FROM index_entries AS i INDEXED BY entries_by_key JOIN index_entries AS e NOT INDEXED ON e.number = i.number
                WHERE i.owner = ?1 AND e.owner = i.owner)
            """)
        insertDebt = Statement(
            connection, "INSERT OR REPLACE INTO index_debts (owner, document, id) SELECT number, ?1, ?2 FROM indexes")
        removeDebt = Statement(connection, "DELETE FROM index_debts WHERE owner = ?1 AND document = ?2")
        removeDebts = Statement(connection, "DELETE FROM index_debts WHERE document = ?1")
        removeDebtsOfIndex = Statement(connection, "DELETE FROM index_debts WHERE owner = ?1")
        countRemoved = Statement(
            connection, "UPDATE indexes SET entries = entries - ?2, changes = changes + 1 WHERE number = ?1")
    }

    // MARK: Indexes

    package func insert(_ kind: IndexKind, _ name: String, definition: String) throws(CofferError) {
        try insertIndex.bind(1, kind.rawValue)
        try insertIndex.bind(2, name)
        try insertIndex.bind(3, definition)
        try insertIndex.run()
        try noteNumber.run()
    }

    /// Gives the index another definition, and empties it.
    package func redefine(_ index: IndexNumber, as definition: String) throws(CofferError) {
        try empty(index)
        try redefine.bind(1, index)
        try redefine.bind(2, definition)
        try redefine.run()
    }

    /// Empties an index, as it was before it was first brought up to date.
    package func restart(_ index: IndexNumber) throws(CofferError) {
        try empty(index)
        try restart.bind(1, index)
        try restart.run()
    }

    package func remove(_ index: IndexNumber) throws(CofferError) {
        try empty(index)
        try removeIndex.bind(1, index)
        try removeIndex.run()
    }

    private func empty(_ index: IndexNumber) throws(CofferError) {
        for statement in [removeAllEntries, removeDebtsOfIndex] {
            try statement.bind(1, index)
            try statement.run()
        }
        try texts.empty(index)
    }

    /// Notes that the index has the documents up to `sequence`.
    package func advance(_ index: IndexNumber, to sequence: SequenceNumber, entryDelta: Int, hasRests: Bool)
        throws(CofferError)
    {
        try advance.bind(1, index)
        try advance.bind(2, sequence)
        try advance.bind(3, Int64(entryDelta))
        try advance.bind(4, hasRests ? 1 : 0)
        try advance.run()
    }

    // MARK: Entries

    /// - Parameters:
    ///   - number: of the entry's row.
    ///   - key: nil notes that the index's function failed for the document.
    package func insert(
        _ number: Int64, of index: IndexNumber, document: DocumentNumber, sequence: SequenceNumber, key: SplitBytes?,
        id: SplitBytes,
        value: [UInt8]?
    ) throws(CofferError) {
        try insertEntry.bind(1, index)
        try insertEntry.bind(2, document)
        try insertEntry.bind(3, sequence)
        try bind(4, try EntryDigest.of(key ?? SplitBytes([]), id, value))
        try bind(5, key?.start)
        try insertEntry.bind(6, id.start)
        try bind(7, key?.rest)
        try bind(8, id.rest)
        try bind(9, value)
        try insertEntry.bind(10, number)
        try insertEntry.run()
    }

    private func bind(_ column: Int32, _ bytes: [UInt8]?) throws(CofferError) {
        if let bytes { try insertEntry.bind(column, bytes) } else { try insertEntry.bindNull(column) }
    }

    /// The places of a document's entries in an index; a key of nil if its function failed.
    package func places(of document: DocumentNumber, in index: IndexNumber) throws(CofferError) -> [EntryPosition?] {
        defer { listKeys.reset() }
        try listKeys.bind(1, document)
        try listKeys.bind(2, index)
        var places: [EntryPosition?] = []
        while try listKeys.step() {
            guard listKeys.integer(4) != 0 else { throw stray(document) }
            guard !listKeys.isNull(0) else {
                places.append(nil)
                continue
            }
            let key = SplitBytes(start: listKeys.bytes(0), rest: listKeys.isNull(1) ? nil : listKeys.bytes(1))
            let id = SplitBytes(start: listKeys.bytes(2), rest: listKeys.isNull(3) ? nil : listKeys.bytes(3))
            places.append(EntryPosition(key: key.bytes, id: id.bytes))
        }
        return places
    }

    private func stray(_ document: DocumentNumber) -> CofferError {
        CofferError(.damaged, of: subject, "an index entry of document \(document) belongs to another document")
    }

    /// Removes a document's entries from an index, which ``places(of:in:)`` has looked at in this transaction.
    package func removeEntries(of document: DocumentNumber, from index: IndexNumber) throws(CofferError) {
        try removeEntries.bind(1, document)
        try removeEntries.bind(2, index)
        try removeEntries.run()
    }

    // MARK: Documents that change without a new revision

    /// Removes a document that is purged from all indexes.
    package func forget(_ document: DocumentNumber) throws(CofferError) {
        var counts: [(index: IndexNumber, count: Int64)] = []
        try countEntries.bind(1, document)
        defer { countEntries.reset() }
        while try countEntries.step() {
            guard countEntries.integer(2) != 0 else { throw stray(document) }
            counts.append((countEntries.number(0), countEntries.integer(1)))
        }
        countEntries.reset()
        for (index, count) in counts {
            try removeEntries(of: document, from: index)
            try noteRemoval(of: count, from: index)
        }
        for (index, number) in try texts.numbers(of: document) {
            try texts.remove(number, from: index)
            try noteRemoval(of: 1, from: index)
        }
        try removeDebts.bind(1, document)
        try removeDebts.run()
    }

    private func noteRemoval(of count: Int64, from index: IndexNumber) throws(CofferError) {
        try countRemoved.bind(1, index)
        try countRemoved.bind(2, count)
        try countRemoved.run()
    }

    /// Notes that a document's entries are to be rebuilt in all indexes.
    package func owe(_ document: DocumentNumber, _ id: DocumentID) throws(CofferError) {
        try insertDebt.bind(1, document)
        try insertDebt.bind(2, id.text)
        try insertDebt.run()
    }

    package func removeDebt(of index: IndexNumber, _ document: DocumentNumber) throws(CofferError) {
        try removeDebt.bind(1, index)
        try removeDebt.bind(2, document)
        try removeDebt.run()
        // One that stays would be paid for ever.
        guard removeDebt.changedRowCount == 1 else {
            throw CofferError(.damaged, of: subject, "a document's debt to an index is not what was written")
        }
    }
}
