internal import CSQLCipher
package import CofferSealing

extension Connection {
    /// Copies everything that is in this database into the file at `path`, encrypted under `key`, or readable without one:
    /// see ``export(to:protection:cacheByteCount:while:check:)``.
    package func export(
        to path: String, key: SymmetricKey?, cacheByteCount: Int, while goesOn: @escaping () -> Bool,
        check: () throws(CofferError) -> Void
    ) throws(CofferError) {
        try export(
            to: path, protection: key.map { PageProtection.sqlCipher($0, .portable) } ?? PageProtection.none,
            cacheByteCount: cacheByteCount, while: goesOn, check: check)
    }

    /// Copies everything that is in this database into the file at `path`, whose pages become protected as `protection` says:
    /// an empty one, or for sealed pages one that has an empty database (``SealedPages/writeEmptyDatabase()``). For a
    /// connection that was opened for ``Access/exporting``.
    ///
    /// Made with `sqlcipher_export`, the one way that crosses from and to encryption on all versions (and without SQLCipher
    /// as it does it), and inside of a transaction: on its own it would copy a page that fails its check as zeros and report success. What it leaves out
    /// is set here (`auto_vacuum`) or by the caller (`user_version`). The file is not made durable.
    ///
    /// - Parameters:
    ///   - goesOn: asked every few milliseconds; false ends the copying with `cancelled` (499).
    ///   - check: run before the copy ends, in the snapshot that was copied.
    /// - Throws: what `check` throws; `damaged`, `ioFailed` (500), `noSpace` (507). The connection is good for nothing but
    ///   to be closed then.
    package func export(
        to path: String, protection: PageProtection, cacheByteCount: Int, while goesOn: @escaping () -> Bool,
        check: () throws(CofferError) -> Void
    ) throws(CofferError) {
        try attach(path, protection)
        switch protection {
        case .none: try execute("PRAGMA next.page_size = 4096")
        case .sqlCipher(_, let profile):
            precondition(profile == .portable, "copies are portable")
            try execute("PRAGMA next.cipher_page_size = 4096")
            try execute("PRAGMA next.cipher_hmac_algorithm = HMAC_SHA1")
            try execute("PRAGMA next.cipher_kdf_algorithm = PBKDF2_HMAC_SHA1")
        case .sealed: break
        }
        // Whoever made the file makes it durable as a whole, and throws it away when anything fails before.
        try execute("PRAGMA next.synchronous = OFF")
        try execute("PRAGMA next.journal_mode = OFF")
        // Changes a sealed file, which begins so, and for which there are no journals.
        try execute("PRAGMA next.auto_vacuum = INCREMENTAL")
        try setCache(byteCount: cacheByteCount, of: "next")

        ask(goesOn)
        try execute("BEGIN")
        // The copy reads the schema by statements that SQLite doesn't prepare again. This one is, where another connection
        // has changed the schema since this connection read it, and begins the snapshot that the others read.
        try execute("SELECT name FROM main.sqlite_master LIMIT 1")
        if try Library.load().cipherVersion != nil {
            let export = Statement(self, "SELECT sqlcipher_export('next')")
            _ = try export.step()
            export.finalize()
        } else {
            try unsafe inside { (_) throws(CofferError) in try SchemaCopy(handle).run() }
        }
        try check()
        try execute("COMMIT")
        ask(nil)
        try execute("DETACH next")
    }

    /// Asks `goesOn` every few milliseconds while a statement runs; false ends the statement with `cancelled` (499).
    package func ask(_ goesOn: (() -> Bool)?) {
        let question = goesOn.map(ProgressQuestion.init)
        handle.question = question
        let answer = unsafe question == nil ? nil : ProgressQuestion.answer
        let context = unsafe question.map { unsafe Unmanaged.passUnretained($0).toOpaque() }
        unsafe sqlcipher_progress_handler(handle.pointer, 10_000, answer, context)
    }

    /// The key goes by value and never as SQL text. None is a blob without bytes: NULL would mean the key of this database.
    private func attach(_ path: String, _ protection: PageProtection) throws(CofferError) {
        let attach = Statement(self, "ATTACH ?1 AS next KEY ?2")
        defer { attach.finalize() }
        try attach.bind(1, DatabaseURI.of(path, vfs: protection.vfs))
        guard case .sqlCipher(let key, _) = protection else {
            try attach.bind(2, [])
            return try attach.run()
        }
        let specification = key.hexSpecification()
        try unsafe specification.withBytes { (bytes) throws(CofferError) in
            try unsafe attach.bindUncopied(2, bytes)
            try attach.run()
            try attach.bind(2, [])
        }
    }
}

/// What a long statement asks while it runs.
final class ProgressQuestion {
    private let goesOn: () -> Bool

    /// Whether the answer once was to stop. What fails then was interrupted: see ``DatabaseHandle/error(_:)``.
    private(set) var hasStopped = false

    init(_ goesOn: @escaping () -> Bool) { self.goesOn = goesOn }

    private func ask() -> Bool {
        if !goesOn() { hasStopped = true }
        return !hasStopped
    }

    static let answer: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { context in
        guard let context = unsafe context else { return 0 }
        return unsafe Unmanaged<ProgressQuestion>.fromOpaque(context).takeUnretainedValue().ask() ? 0 : 1
    }
}

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
