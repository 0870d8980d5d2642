internal import CSQLCipher
package import CofferSealing

/// One connection to a database file, keyed before anything is read. Closes with its life.
///
/// It has one owner and can't be copied: whoever opens it hands it on whole, or lends it for the length of a call. Two
/// threads in one connection damage a healthy file even where SQLite locks itself, since they share one transaction. What
/// the compiler can't see, such as a ``Statement`` that is kept for too long, ``Occupancy`` notices, and stops the process.
package struct Connection: ~Copyable {
    /// How the file is opened.
    package enum Access: Sendable {
        /// A new, empty file, that the caller has made.
        case create
        case readWrite
        /// Reads, and can copy everything into another file, which is all that it may write.
        case exporting
        /// Reads, through the write-ahead log if there is one. SQLite may make or change the `-shm` file beside it.
        case readOnly
        /// Reads a file that nothing changes and that has no write-ahead log. No file is made or changed.
        case immutable
    }

    /// How the pages of an encrypted file are laid out.
    package enum PageProfile: Sendable {
        /// Coffer's own: see FORMAT.md.
        case portable
        /// SQLCipher 3's defaults, as Couchbase Lite 1.x uses them: like the portable one, but with pages of 1024 bytes.
        case sqlCipher3
    }

    let handle: DatabaseHandle

    /// What errors say that they happened to.
    package var subject: String { handle.subject }

    /// Frames in the write-ahead log after the last commit on this connection, 0 if it made none since the log was emptied.
    package var logFrameCount: Int { handle.logFrameCount }

    /// Opens the database file at `path`, which must exist.
    ///
    /// With a key, every page is encrypted in the portable profile, unless `profile` is another: AES-256-CBC with
    /// HMAC-SHA-1 a page of 4096 bytes, as SQLCipher 3.4.1 and 4.x both read it.
    ///
    /// - Throws: `encryptionUnavailable` (501), `ioFailed` (500) when the file cannot be opened, `damaged` (500) when its
    ///   first page is not one that was written under this key.
    package init(
        path: String, subject: String, access: Access, key: SymmetricKey?, profile: PageProfile = .portable,
        cacheByteCount: Int
    ) throws(CofferError) {
        try self.init(
            path: path, subject: subject, access: access,
            protection: key.map { PageProtection.sqlCipher($0, profile) } ?? PageProtection.none,
            cacheByteCount: cacheByteCount)
    }

    /// Opens the database file at `path`, which must exist, and whose pages are protected as `protection` says.
    ///
    /// For sealed pages, `path` is theirs, and a new file has an empty database already
    /// (``SealedPages/writeEmptyDatabase()``). What they are opened to is in their own cache; `cacheByteCount` limits what
    /// this connection keeps beside it: pages that it writes.
    ///
    /// - Throws: `encryptionUnavailable` (501), `ioFailed` (500) when the file cannot be opened, `damaged` (500) when its
    ///   first page is not one that was written under this key.
    package init(
        path: String, subject: String, access: Access, protection: PageProtection, cacheByteCount: Int
    ) throws(CofferError) {
        handle = DatabaseHandle(subject: subject)
        let library = try Library.load()
        if protection.isSQLCipher { try library.requireEncryption() }
        let name = access.isURI ? DatabaseURI.of(path, isImmutable: access == .immutable) : path
        try open(name, flags: access.flags, vfs: protection.vfs)
        switch protection {
        case .none: break
        case .sqlCipher(let key, let profile): try apply(key, profile)
        case .sealed(let pages):
            handle.sealedPages = pages
            guard pages.areOf(handle) else {
                throw CofferError(.busy, of: subject, "another file was opened at its path")
            }
        }
        try configure(access, protection, cacheByteCount: cacheByteCount)
    }

    /// A database in memory, for questions about the library.
    init(inMemoryOf subject: String) throws(CofferError) {
        handle = DatabaseHandle(subject: subject)
        try Library.loadCode()
        try open(":memory:", flags: SQLCIPHER_OPEN_READWRITE, vfs: nil)
    }

    private func open(_ name: String, flags: Int, vfs: String?) throws(CofferError) {
        let code = unsafe sqlcipher_open_v2(name, &handle.pointer, Int32(flags | SQLCIPHER_OPEN_NOMUTEX), vfs)
        try check(code)
        _ = unsafe sqlcipher_extended_result_codes(handle.pointer, 1)
        _ = unsafe sqlcipher_busy_timeout(handle.pointer, Self.longestLockMilliseconds)
    }

    /// Connections of one process lock the log's index for an instant now and then, as when one finds it half changed by
    /// another's commit. They wait for each other this long at most: far longer than any of them takes.
    private static let longestLockMilliseconds: Int32 = 10_000

    /// Gives SQLCipher the raw key as `x'<64 hex digits>'`, never as SQL text: statements outlive their use in memory.
    ///
    /// 64 digits and not 96: with the salt in the key, SQLCipher would not check the salt in the file.
    private func apply(_ key: SymmetricKey, _ profile: PageProfile) throws(CofferError) {
        let specification = key.hexSpecification()
        try unsafe specification.withBytes { bytes throws(CofferError) in
            // sqlite3_key_v2 never fails on a wrong key. The first read of the file does.
            try check(unsafe sqlcipher_key_v2(handle.pointer, "main", bytes.baseAddress, Int32(bytes.count)))
        }
        // The portable profile. SQLCipher 3 knows only the first, and ignores the others, whose values are its own.
        switch profile {
        case .portable: try execute("PRAGMA main.cipher_page_size = 4096")
        case .sqlCipher3: try execute("PRAGMA main.cipher_page_size = 1024")
        }
        try execute("PRAGMA main.cipher_hmac_algorithm = HMAC_SHA1")
        try execute("PRAGMA main.cipher_kdf_algorithm = PBKDF2_HMAC_SHA1")
    }

    private func configure(
        _ access: Access, _ protection: PageProtection, cacheByteCount: Int
    ) throws(CofferError) {
        try execute("PRAGMA temp_store = MEMORY")
        // Has SQLite borrow pages from the cache that all connections share. How many bytes it is says nothing there.
        if protection.isSealed { try execute("PRAGMA mmap_size = 2147418112") }
        if protection.isSQLCipher {
            // SQLCipher 4.6 and later write a line about every failed check to standard error otherwise.
            try execute("PRAGMA cipher_log_level = NONE")
        } else {
            // All the pages that a file can have. Below that (a quarter of it in SQLite 3.15, by default) a damaged page's
            // pointer to one beyond is reported as "full", as if the disk were.
            try execute("PRAGMA max_page_count = 2147483647")
        }
        try setCache(byteCount: cacheByteCount)
        switch access {
        case .create:
            switch protection {
            case .none: try execute("PRAGMA page_size = 4096")
            case .sqlCipher: break
            // Journals in files are refused: they would hold plaintext.
            case .sealed: try execute("PRAGMA journal_mode = MEMORY")
            }
            // Whoever makes a file makes it durable as a whole, and throws it away when anything fails before.
            try execute("PRAGMA synchronous = OFF")
            // Set before the first table, so that space is given back later without holding the store in memory.
            try execute("PRAGMA auto_vacuum = INCREMENTAL")
        case .readWrite:
            try execute("PRAGMA fullfsync = 1")
            // 16 MiB, what a log usually grows to: a longer one, of a large transaction, is cut when it starts again.
            try execute("PRAGMA journal_size_limit = 16777216")
            // Checkpoints are made on purpose, by the writer alone: see checkpoint().
            unsafe sqlcipher_wal_hook(handle.pointer, Self.noteCommit, Unmanaged.passUnretained(handle).toOpaque())
        case .exporting:
            unsafe sqlcipher_wal_hook(handle.pointer, nil, nil)
        case .readOnly, .immutable:
            try execute("PRAGMA query_only = 1")
            unsafe sqlcipher_wal_hook(handle.pointer, nil, nil)
        }
    }

    private static let noteCommit:
        @convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
            context, _, _, frameCount in
            guard let context = unsafe context else { return 0 }
            unsafe Unmanaged<DatabaseHandle>.fromOpaque(context).takeUnretainedValue().logFrameCount = Int(frameCount)
            return 0
        }

    // MARK: Running

    /// Runs one or more statements that take no values and whose rows nobody needs.
    package func execute(_ sql: StaticString) throws(CofferError) {
        try unsafe inside { (pointer) throws(CofferError) in
            try check(unsafe sqlcipher_exec(pointer, sql.utf8Start, nil, nil, nil))
        }
    }

    /// Runs SQL that had to be put together. Only numbers and names from a closed set may go into it, never a value.
    func execute(assembled sql: String) throws(CofferError) {
        try unsafe inside { (pointer) throws(CofferError) in
            try check(unsafe sqlcipher_exec(pointer, sql, nil, nil, nil))
        }
    }

    /// Runs statements that change the schema's own table, in a transaction, and has all connections read it again.
    ///
    /// Dangerous: what a table held that is taken out so stays in the file, without a use. For tables whose pages can't be
    /// read, which is what dropping them would begin with.
    package func changeSchemaDirectly(_ sql: StaticString) throws(CofferError) {
        try execute("PRAGMA writable_schema = ON; BEGIN IMMEDIATE")
        do throws(CofferError) {
            try execute(sql)
            let version = try Statement(self, "PRAGMA schema_version").first { $0.integer(0) } ?? 0
            try execute(assembled: "PRAGMA schema_version = \(version + 1)")
            try execute("COMMIT")
        } catch {
            // What the failure left of the transaction ends with the connection, which is of no more use.
            try? execute("ROLLBACK")
            throw error
        }
    }

    /// Limits the page cache to `byteCount` bytes. Memory is taken as pages are read, not at once.
    package func setCache(byteCount: Int) throws(CofferError) {
        try setCache(byteCount: byteCount, of: "main")
    }

    func setCache(byteCount: Int, of schema: StaticString) throws(CofferError) {
        try execute(assembled: "PRAGMA \(schema).cache_size = -\(max(64, byteCount / 1024))")
    }

    /// Rows that the last insert, update or delete changed.
    package var changedRowCount: Int { unsafe Int(sqlcipher_changes(handle.pointer)) }

    /// The rowid of the last row inserted.
    package var lastInsertedRowID: Int64 { unsafe sqlcipher_last_insert_rowid(handle.pointer) }

    /// Whether a transaction is under way.
    package var isInTransaction: Bool { unsafe handle.pointer != nil && sqlcipher_get_autocommit(handle.pointer) == 0 }

    /// Whether a new connection of the file's own format writes ahead. Returns the journal mode in force.
    package func switchToWriteAheadLog() throws(CofferError) {
        let statement = Statement(self, "PRAGMA journal_mode = WAL")
        defer { statement.finalize() }
        guard try statement.step(), statement.text(0) == "wal" else {
            throw CofferError(.ioFailed, of: subject, "the file system does not support a write-ahead log")
        }
    }

    /// Copies the log into the database file, as far as no reader needs it, and empties it.
    ///
    /// Empties, and not only lets the next commit overwrite it: SQLite reads a log that a crash leaves up to its first
    /// damaged frame, so what counts in one although the file has it already could bring an old state back.
    ///
    /// - Parameters:
    ///   - patience: how long it waits for those who read from the log. They read on meanwhile, and new ones begin.
    ///   - keepingLength: whether the log's file may stay as long as it is, up to 32 MiB. Its frames don't count any more,
    ///     and commits write over them, which takes the disk less than a file that grows.
    /// - Returns: whether the log is empty now.
    package func checkpoint(patience: Duration, keepingLength: Bool = false) throws(CofferError) -> Bool {
        try check(unsafe sqlcipher_keep_log(handle.pointer, keepingLength ? 1 : 0))
        _ = unsafe sqlcipher_busy_timeout(handle.pointer, Int32(patience / .milliseconds(1)))
        defer { _ = unsafe sqlcipher_busy_timeout(handle.pointer, Self.longestLockMilliseconds) }
        let code = try unsafe inside { (pointer) throws(CofferError) in
            unsafe sqlcipher_wal_checkpoint_v2(pointer, nil, Int32(SQLCIPHER_CHECKPOINT_TRUNCATE), nil, nil)
        }
        // A reader in the way is not a failure: the next checkpoint goes on from there.
        if code & 0xFF == Int32(SQLCIPHER_BUSY) { return false }
        try check(code)
        handle.logFrameCount = 0
        return true
    }

    /// The first bytes of a log that a checkpoint emptied and whose length it kept: what stands behind them is in the
    /// database file.
    package static let emptiedLogHeader = Array(SQLCIPHER_EMPTIED_LOG.utf8)

    // MARK: Closing

    /// Finalizes all statements and closes. The last writer to close copies the log into the file and removes it. Does
    /// nothing the second time, and statements say `closed` (500) from then on.
    ///
    /// - Throws: what a commit left undone by then says; the connection is closed all the same.
    package func close() throws(CofferError) { try handle.close() }

    /// Lets go of the file without another read or write of it, as a crash would.
    ///
    /// For use after a failed write: closing would copy a log into the file that may not be what was written. The memory
    /// and descriptors of the connection stay taken until the process ends; so does its part of the shared log index. A
    /// transaction under way is undone, which writes nothing.
    package func abandon() { handle.abandon() }

    // MARK: Which thread is inside

    /// Notes that the calling thread has the connection until ``vacate()``: for whoever lends it for longer than a call.
    ///
    /// Stops the process where another thread is inside.
    package func occupy() { handle.occupancy.occupy() }

    /// Ends what ``occupy()`` began, on the same thread.
    package func vacate() { handle.occupancy.leave() }

    /// Runs `body`, which calls SQLite, while no other thread is inside.
    func inside<Value>(_ body: (OpaquePointer?) throws(CofferError) -> Value) throws(CofferError) -> Value {
        let isEntered = handle.occupancy.enter()
        defer { if isEntered { handle.occupancy.leave() } }
        return unsafe try body(handle.pointer)
    }

    /// Throws what `code` means unless it is `SQLITE_OK`.
    func check(_ code: Int32) throws(CofferError) {
        if code != Int32(SQLCIPHER_OK) { throw handle.error(code) }
    }
}

extension Connection.Access {
    fileprivate var flags: Int {
        switch self {
        // Never SQLITE_OPEN_CREATE: whoever makes a file gives it its owner and mode first.
        // A file that is attached is opened as the first one was.
        case .create, .readWrite: SQLCIPHER_OPEN_READWRITE
        case .exporting: SQLCIPHER_OPEN_READWRITE | SQLCIPHER_OPEN_URI
        case .readOnly: SQLCIPHER_OPEN_READONLY
        case .immutable: SQLCIPHER_OPEN_READONLY | SQLCIPHER_OPEN_URI
        }
    }

    /// Whether files are named by URIs, which say more than a path.
    fileprivate var isURI: Bool { self == .exporting || self == .immutable }
}
