internal import CofferSealing
internal import CofferSQLite

/// The identifier that replication uses for a database: a row of `info`, 16 random bytes.
///
/// Unlike the store's UUID it is not the same in a copy: a backup has none, and gets one when it is first opened for
/// writing.
package enum DatabaseIdentity {
    package static let byteCount = 16

    /// - Returns: nil in a backup that was not opened for writing yet.
    static func read(from connection: borrowing Connection) throws(CofferError) -> [UInt8]? {
        let selection = Statement(connection, "SELECT value FROM info WHERE key = 'identity'")
        defer { selection.finalize() }
        let found = try selection.first { $0.bytes(0) }
        guard found == nil || found?.count == byteCount else {
            throw CofferError(.damaged, of: connection.subject, "the database's own UUID is invalid")
        }
        return found
    }

    /// Gives the database an identity that no other has.
    static func renew(in connection: borrowing Connection) throws(CofferError) {
        let insertion = Statement(connection, "INSERT OR REPLACE INTO info (key, value) VALUES ('identity', ?1)")
        defer { insertion.finalize() }
        try insertion.bind(1, try randomBytes(count: byteCount))
        try insertion.run()
    }

    static func remove(from connection: borrowing Connection) throws(CofferError) {
        try connection.execute("DELETE FROM info WHERE key = 'identity'")
    }
}
