package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// The statements of one connection for when documents expire. Times are milliseconds since 1970.
package struct ExpirationTables: ~Copyable {
    private let find, findNext, findDue, save, remove, removeStrays: Statement

    init(_ connection: borrowing Connection) {
        find = Statement(connection, "SELECT time FROM expirations WHERE id = ?1")
        // The index only says where to look: a document is purged when its own row says so. What else an older page of the
        // index says, put back by whoever can write the disk, means nothing.
        findNext = Statement(
            connection,
            """
            SELECT i.time
            FROM expirations AS i INDEXED BY expirations_by_time CROSS JOIN expirations AS e NOT INDEXED ON e.id = i.id
            WHERE typeof(i.time) = 'integer' AND +e.time = i.time ORDER BY i.time LIMIT 1
            """)
        findDue = Statement(
            connection,
            """
            SELECT i.id
            FROM expirations AS i INDEXED BY expirations_by_time CROSS JOIN expirations AS e NOT INDEXED ON e.id = i.id
            WHERE i.time <= ?1 AND typeof(i.time) = 'integer' AND +e.time = i.time ORDER BY i.time LIMIT ?2
            """)
        save = Statement(connection, "INSERT OR REPLACE INTO expirations (id, time) VALUES (?1, ?2)")
        remove = Statement(connection, "DELETE FROM expirations WHERE id = ?1")
        removeStrays = Statement(
            connection,
            """
            DELETE FROM expirations WHERE time <= ?1 AND typeof(time) = 'integer'
                AND NOT EXISTS (SELECT 1 FROM documents AS d WHERE d.id = expirations.id)
            """)
    }

    /// When the document expires; nil for never.
    package func time(of document: DocumentID) throws(CofferError) -> Int64? {
        try find.bind(1, document.text)
        return try find.first { $0.integer(0) }
    }

    /// When the next document expires; nil when none does.
    package func next() throws(CofferError) -> Int64? { try findNext.first { $0.integer(0) } }

    /// Up to `limit` documents that have expired by `time`.
    package func due(by time: Int64, limit: Int) throws(CofferError) -> [DocumentID] {
        defer { findDue.reset() }
        try findDue.bind(1, time)
        try findDue.bind(2, Int64(limit))
        var due: [DocumentID] = []
        while try findDue.step() { if let id = try? DocumentID(findDue.text(0)) { due.append(id) } }
        return due
    }

    /// Removes rows without a document that are due, which would be found for ever.
    package func removeStrays(by time: Int64) throws(CofferError) {
        try removeStrays.bind(1, time)
        try removeStrays.run()
    }

    package func set(_ document: DocumentID, _ time: Int64?) throws(CofferError) {
        if let time {
            try save.bind(1, document.text)
            try save.bind(2, time)
            try save.run()
        } else {
            try remove.bind(1, document.text)
            try remove.run()
        }
    }
}
