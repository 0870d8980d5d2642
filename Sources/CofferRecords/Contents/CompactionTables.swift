internal import CofferModel
package import CofferSealing
internal import CofferSQLite
internal import CofferVault

/// The reading statements of one connection for compactions.
package struct CompactionTables: ~Copyable {
    private let listBranched, listReplaced, findNext, findPosition, findReclaimable: Statement

    init(_ connection: borrowing Connection) {
        listBranched = Statement(connection, "SELECT DISTINCT document FROM leaves")
        listReplaced = Statement(
            connection,
            """
            SELECT DISTINCT parent.sequence FROM revisions AS child JOIN revisions AS parent
                ON parent.sequence = child.parent
            WHERE child.sequence > ?1 AND child.sequence <= ?2 AND parent.body IS NOT NULL
            """)
        findNext = Statement(
            connection, "SELECT sequence FROM revisions WHERE sequence > ?1 ORDER BY sequence LIMIT 1")
        findPosition = Statement(connection, "SELECT value FROM info WHERE key = 'compacted'")
        findReclaimable = Statement(connection, "SELECT value FROM info WHERE key = 'reclaimable'")
    }

    /// The numbers of documents with more than one leaf.
    package func branchedDocuments() throws(CofferError) -> [DocumentNumber] {
        try listBranched.all { $0.number(0) }
    }

    /// The revisions with a body that one with a sequence between these replaced.
    package func replaced(after first: SequenceNumber, upTo last: SequenceNumber) throws(CofferError)
        -> [SequenceNumber]
    {
        try listReplaced.bind(1, first)
        try listReplaced.bind(2, last)
        return try listReplaced.all { $0.number(0) }
    }

    /// The first sequence after this one that a revision has.
    package func nextSequence(after last: SequenceNumber) throws(CofferError) -> SequenceNumber? {
        try findNext.bind(1, last)
        return try findNext.first { $0.number(0) }
    }

    /// The last sequence that a compaction has come to.
    package func position() throws(CofferError) -> SequenceNumber {
        SequenceNumber(try noted(findPosition))
    }

    /// About how many bytes a compaction would give back, as far as it was noted.
    package func reclaimable() throws(CofferError) -> Int { Int(try noted(findReclaimable)) }

    /// A value that is not a count was never written here.
    private func noted(_ statement: Statement) throws(CofferError) -> Int64 {
        let number = try statement.first { $0.integer(0) } ?? 0
        return Schema.counts.contains(number) ? number : 0
    }
}

/// The writing statements for compactions.
package struct CompactionChanges: ~Copyable {
    private let findDocument, findRow, removeRow, insertRow, dropUses, findUnused, removeAttachment, noteInfo,
        touchInfo: Statement
    private let countPages, countFreePages: Statement

    init(_ connection: borrowing Connection) {
        findDocument = Statement(
            connection,
            """
            SELECT r.document, d.number, d.winner, d.flags FROM revisions AS r LEFT JOIN documents AS d ON d.id = r.id
            WHERE r.sequence = ?1 AND r.body IS NOT NULL
            """)
        findRow = Statement(
            connection, "SELECT document, parent, flags, generation, suffix, id FROM revisions WHERE sequence = ?1")
        removeRow = Statement(connection, "DELETE FROM revisions WHERE sequence = ?1")
        insertRow = Statement(
            connection,
            """
            INSERT INTO revisions (sequence, document, parent, flags, generation, suffix, id)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """)
        dropUses = Statement(connection, "DELETE FROM attachment_uses WHERE revision = ?1")
        findUnused = Statement(
            connection,
            """
            SELECT number, length, sha256, header, digest FROM attachments AS a
            WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM attachment_uses AS u WHERE u.attachment = a.number)
            """)
        removeAttachment = Statement(connection, "DELETE FROM attachments WHERE number = ?1")
        noteInfo = Statement(connection, "INSERT OR REPLACE INTO info (key, value) VALUES (?1, ?2)")
        touchInfo = Statement(connection, "UPDATE info SET value = value WHERE key = 'sequence'")
        countPages = Statement(connection, "PRAGMA page_count")
        countFreePages = Statement(connection, "PRAGMA freelist_count")
    }

    /// The document of a revision with a body; nil if there isn't one, or its id does not find its document: then
    /// nothing is known of it, and nothing is dropped.
    package func document(of sequence: SequenceNumber) throws(CofferError) -> (
        number: DocumentNumber, row: DocumentRow
    )? {
        try findDocument.bind(1, sequence)
        let found = try findDocument.first { row in
            row.isNull(1) || row.integer(0) != row.integer(1)
                ? nil
                : DocumentRow(
                    number: row.number(1), winner: row.number(2), flags: DocumentFlags(rawValue: row.integer(3)))
        }
        guard let row = found ?? nil else { return nil }
        return (row.number, row)
    }

    /// Drops the body of a revision that is there.
    ///
    /// The row is removed and inserted again, not updated: SQLite joins pages that have become empty only where rows are
    /// removed, so that an update of rows that fit in their pages would free nothing.
    package func drop(_ sequence: SequenceNumber) throws(CofferError) {
        try findRow.bind(1, sequence)
        let isThere = try findRow.first { (row) throws(CofferError) in
            try insertRow.bind(1, sequence)
            try insertRow.bind(2, row.integer(0))
            try insertRow.bind(3, row.isNull(1) ? nil : row.integer(1))
            try insertRow.bind(4, row.integer(2))
            try insertRow.bind(5, row.integer(3))
            if row.isBlob(4) { try insertRow.bind(6, row.bytes(4)) } else { try insertRow.bind(6, row.text(4)) }
            try insertRow.bind(7, row.text(5))
            return true
        }
        guard isThere == true else { return }
        try removeRow.bind(1, sequence)
        try removeRow.run()
        try insertRow.run()
        try dropUses.bind(1, sequence)
        try dropUses.run()
    }

    /// Removes the rows of contents that no revision uses, of those with these numbers.
    ///
    /// - Returns: the SHA-1s of those that are here, and the bytes of all.
    package func removeUnused(_ numbers: [ContentNumber]) throws(CofferError) -> (sha1s: [[UInt8]], byteCount: Int) {
        var removed: (sha1s: [[UInt8]], byteCount: Int) = ([], 0)
        for number in numbers {
            try findUnused.bind(1, number)
            let found = try findUnused.first { (row) throws(CofferError) in try AttachmentRow(row).checked() }
            guard let found else { continue }
            try removeAttachment.bind(1, number)
            try removeAttachment.run()
            if let content = found.content {
                removed.sha1s.append(content.sha1)
                removed.byteCount += content.byteCount
            }
        }
        return removed
    }

    package func note(position: SequenceNumber) throws(CofferError) {
        try note("compacted", position.rawValue)
    }

    package func note(reclaimable byteCount: Int) throws(CofferError) { try note("reclaimable", Int64(byteCount)) }

    /// Changes something, so that there is a commit.
    package func touch() throws(CofferError) {
        try touchInfo.run()
    }

    private func note(_ key: String, _ value: Int64) throws(CofferError) {
        try noteInfo.bind(1, key)
        try noteInfo.bind(2, value)
        try noteInfo.run()
    }

    /// How many pages the database has, and how many of them are free.
    package func pages() throws(CofferError) -> (all: Int, free: Int) {
        (
            try countPages.first { Int($0.integer(0)) } ?? 0,
            try countFreePages.first { Int($0.integer(0)) } ?? 0
        )
    }
}
