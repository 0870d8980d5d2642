internal import CSQLCipher
internal import CofferSealing

/// Copies tables and indexes from `main` to `next`, where the library has no `sqlcipher_export`: as that does, and SQLite's own
/// VACUUM.
struct SchemaCopy {
    private let handle: DatabaseHandle

    init(_ handle: DatabaseHandle) { self.handle = handle }

    /// Throws `damaged` for views, triggers and virtual tables, which Coffer makes none of.
    func run() throws(CofferError) {
        let others = try run(
            """
            SELECT name FROM main.sqlite_master
                WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'
            """)
        guard others.isEmpty else {
            throw CofferError(.damaged, of: handle.subject, "a schema with more than tables and indexes")
        }
        // Tables, their rows, and only then indexes, which are filled in one go. `substr` begins behind "CREATE TABLE " and the
        // like, which SQLite writes the same way whatever the statement said.
        let tables = try run(
            """
            SELECT 'CREATE TABLE next.' || substr(sql, 14) FROM main.sqlite_master
                WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
            """)
        let rows = try run(
            """
            SELECT 'INSERT INTO next.' || quote(name) || ' SELECT * FROM main.' || quote(name)
                FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
            """)
        let indexes = try run(
            """
            SELECT 'CREATE INDEX next.' || substr(sql, 14) FROM main.sqlite_master
                WHERE sql LIKE 'CREATE INDEX %'
            UNION ALL
            SELECT 'CREATE UNIQUE INDEX next.' || substr(sql, 21) FROM main.sqlite_master
                WHERE sql LIKE 'CREATE UNIQUE INDEX %'
            """)
        for statement in tables + rows + indexes { _ = try run(statement) }
    }

    /// Runs one statement, and returns the first column of its rows. What a schema has behind a first statement isn't run.
    private func run(_ sql: String) throws(CofferError) -> [String] {
        var statement: OpaquePointer?
        defer { _ = unsafe sqlcipher_finalize(statement) }
        let prepared = unsafe sqlcipher_prepare_v2(handle.pointer, sql, -1, &statement, nil)
        guard prepared == Int32(SQLCIPHER_OK) else { throw handle.error(prepared) }
        var texts: [String] = []
        while true {
            let code = unsafe sqlcipher_step(statement)
            if code == Int32(SQLCIPHER_DONE) { return texts }
            guard code == Int32(SQLCIPHER_ROW) else { throw handle.error(code) }
            let start = unsafe sqlcipher_column_blob(statement, 0)
            let bytes = unsafe UnsafeRawBufferPointer(start: start, count: Int(sqlcipher_column_bytes(statement, 0)))
            unsafe texts.append(String(decoding: bytes, as: UTF8.self))
        }
    }
}
